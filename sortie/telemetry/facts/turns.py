"""Facts about a run's session, turns and agent."""

from __future__ import annotations

from dataclasses import dataclass

from sortie.model import ErrorKind, ProcessIdentity, RunId, TurnOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStarted:
    """The agent accepted a session; ``session_id`` is None where it has none."""

    run_id: RunId
    session_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRefused:
    """The agent accepted no session; ``timed_out``: it did not answer in time."""

    run_id: RunId
    error_kind: ErrorKind
    error: str
    timed_out: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted:
    """A turn's prompt is about to be given to the agent."""

    run_id: RunId
    turn: int
    max_turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLaunched:
    """A turn's process runs; ``seconds_since_fetch`` is None but for a run's first turn."""

    run_id: RunId
    turn: int
    process: ProcessIdentity
    seconds_since_fetch: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAnswered:
    """A turn's first byte of output came."""

    run_id: RunId
    agent: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpoke:
    """The agent wrote ``lines`` lines of output; ``message`` is the last of them."""

    run_id: RunId
    agent: str
    lines: int
    message: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCompleted:
    """A turn is over. ``timeout`` is turn, stall or read where one ran out."""

    run_id: RunId
    agent: str
    turn: int
    outcome: TurnOutcome
    seconds: float
    error_kind: ErrorKind | None = None
    error: str | None = None
    credits: float | None = None
    tokens: int | None = None
    warnings: tuple[str, ...] = ()
    timeout: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusFileRead:
    """The agent left a word in ``.sortie/status``; ``known`` tells whether it means anything."""

    run_id: RunId
    word: str
    known: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSimulated:
    """The agent's program is a simulator."""

    program: str
