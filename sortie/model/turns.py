"""What an agent tells while and after it works on one prompt."""

from __future__ import annotations

from dataclasses import dataclass

from sortie.model.errors import ErrorKind, HostTrouble
from sortie.model.runs import ProcessIdentity, TurnOutcome

NOTIFICATION_LIMIT = 500
"""Characters that a notification carries at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """The turn's process runs."""

    process: ProcessIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """One non-empty line of the agent's output, at most NOTIFICATION_LIMIT characters."""

    message: str


AgentEvent = Launched | Notification


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """How a turn ended; ``error_kind`` and ``message`` are None exactly when it completed.

    ``warnings`` are lines of stderr worth a look, given where the turn failed. ``trouble`` is set
    where the turn failed by its remote host, ``shortage`` where this machine ran out of something.
    """

    outcome: TurnOutcome
    error_kind: ErrorKind | None = None
    message: str | None = None
    credits: float | None = None
    tokens: int | None = None
    warnings: tuple[str, ...] = ()
    trouble: HostTrouble | None = None
    shortage: bool = False
