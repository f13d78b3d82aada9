"""What the orchestrator works with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Struct, field

from sortie.notifications.maker import KnownIssues
from sortie.scheduler import Decision, Event, Scheduler
from sortie.store import Store
from sortie.telemetry import Publish
from sortie.trackers import Tracker
from sortie.worker import RunContext


def tell_nobody(decisions: Sequence[Decision], known: KnownIssues) -> list[Decision]:  # noqa: ARG001
    """Make no notifications."""
    return list(decisions)


class Readiness(Struct, frozen=True, kw_only=True):
    """What a preflight found: whether runs could be recorded, placed and started now.

    ``fault`` forbids any poll and dispatch, ``hindrance`` says why no agent can be launched, and
    ``shortage`` what this machine is short of. Each is None where all is well. ``rule_hindrances``
    say the same of the agents of rules.
    """

    fault: str | None = None
    hindrance: str | None = None
    shortage: str | None = None
    rule_hindrances: Mapping[str, str] = field(default_factory=dict)


class OrchestratorContext(Struct, frozen=True, kw_only=True):
    """Ports and callables.

    ``run_context_for`` returns what a run on a host needs that a rule decides for, "" for the top
    level, by the settings in force. ``preflight``
    is made before each poll. ``wall`` returns Unix seconds. ``compares``: the tracker itself moves
    an issue only if it is still in the expected state (COMPARE_AND_SET).
    ``decide`` has the scheduler handle an event. ``notify`` adds the records of notifications to
    the decisions of a round.
    """

    store: Store
    tracker: Tracker
    publish: Publish
    run_context_for: Callable[[str, str], RunContext]
    preflight: Callable[[], Awaitable[Readiness]]
    wall: Callable[[], float]
    compares: bool = False
    decide: Callable[[Scheduler, Event, float], list[Decision]] = Scheduler.handle
    notify: Callable[[Sequence[Decision], KnownIssues], list[Decision]] = tell_nobody
