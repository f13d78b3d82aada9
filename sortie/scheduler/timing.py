"""How long things wait, how often they are tried, and in which order issues are served."""

from __future__ import annotations

from sortie.model import (
    ErrorKind,
    HoldReason,
    Issue,
    RunStatus,
    Streak,
    Trigger,
    content_of,
    same_state,
)
from sortie.model.issues import NaturalKey, natural_key
from sortie.scheduler.policy import Policy

RETRY_BASE = 10.0
"""Seconds that the first retry after a failure waits."""

SHORTAGE_DELAY = 10.0
"""Seconds until a run that a shortage on this machine ended is tried again."""

CONTINUATION_DELAY = 1.0
"""Seconds between a run that ended well and the next of a still active issue."""

QUICK_CONTINUATIONS = 2
"""Continuations in a row, without a change of state, that wait only CONTINUATION_DELAY."""

HANDOFF_TRIES = 5
"""Failed handoffs after which an issue is held."""

ADRIFT_SLACK = 5.0
"""Seconds beyond lease and grace time that a lost host gets to end what ran there."""

OCCUPIED_DELAY = 60.0
"""Seconds before a workspace with foreign processes in it is looked at again."""

LIMIT_BASE = 300.0
"""Seconds of the first pause for a usage limit whose end is unknown."""

LIMIT_MOST = 3600.0
"""Seconds of the longest pause for a usage limit whose end is unknown."""

LONGEST_LIMIT = 35 * 86_400.0
"""Seconds that a usage limit lasts at most: plans are monthly, so a later end is an error."""

PROBE_TRUST = 120.0
"""Seconds of its turn after which a run that has met no limit shows that there is none."""

CRASHES_UNTIL_HELD = 2
"""Crashes of the daemon in a row, while it handled an issue, after which the issue is held."""

UNANSWERED_PAUSE = 10.0
"""Seconds, at most, before a tracker that gave no answer is asked about the next in the queue."""

MISSING_CONFIRMED_AFTER = 5.0
"""Seconds between the two reads that must both miss an issue before it counts as gone."""

KEPT_BASE = 60.0
"""Seconds until a workspace that was kept for the work in it is looked at again, at first."""

KEPT_MOST = 3600.0
"""Seconds until it is looked at again at most."""

WORKSPACE_CHECK_INTERVAL = 3600.0
"""Seconds between two looks at the issues of all known workspaces."""

RERUN_PATIENCE = 600.0
"""Seconds for which a check that was made again may still show its earlier failure."""

STOPPED = "an operator stopped it"
NO_SLOT = "no available orchestrator slots"

_UNRANKED = 5
_HELD_AT_ONCE = {
    ErrorKind.AGENT_NOT_FOUND: HoldReason.AGENT_NOT_FOUND,
    ErrorKind.INVALID_WORKSPACE_CWD: HoldReason.INVALID_WORKSPACE_CWD,
    ErrorKind.ADAPTER_SETTINGS: HoldReason.ADAPTER_SETTINGS,
    ErrorKind.VERIFICATION_FAILED: HoldReason.VERIFICATION_FAILED,
    ErrorKind.NO_CHANGE: HoldReason.NO_CHANGE,
}
_TRIGGERS = {RunStatus.TIMED_OUT: Trigger.TIMEOUT, RunStatus.STALLED: Trigger.STALL}
CONFIGURATION_HOLDS = frozenset(
    {HoldReason.AGENT_NOT_FOUND, HoldReason.INVALID_WORKSPACE_CWD, HoldReason.ADAPTER_SETTINGS}
)

OrderKey = tuple[int, float, NaturalKey]


def order_key(issue: Issue, continued_at: float | None = None) -> OrderKey:
    """Return the place of an issue in the queue: smaller starts first.

    Priorities 1 to 4 come first, then all else; then the older issue; then the identifier,
    in natural order. A continuation is as old as its due time ``continued_at``, in Unix seconds.
    """
    priority = issue.priority
    rank = priority if priority is not None and 1 <= priority < _UNRANKED else _UNRANKED
    if continued_at is not None:
        return (rank, continued_at, natural_key(issue.identifier))
    age = issue.created_at.timestamp() if issue.created_at else float("inf")
    return (rank, age, natural_key(issue.identifier))


def _doubled(base: float, times: int, most: float) -> float:
    """Return ``base`` seconds for the first time, twice as many each time after, up to ``most``."""
    return min(base * 2.0 ** min(times - 1, 32), most)  # the exponent keeps the power finite


def backoff(failures: int, policy: Policy) -> float:
    """Return the seconds to wait after this many failures in a row, 1 or more."""
    return _doubled(RETRY_BASE, failures, policy.max_retry_backoff)


def limit_backoff(times: int) -> float:
    """Return the seconds to wait for the unknown end of a limit, met so many times in a row."""
    return _doubled(LIMIT_BASE, times, LIMIT_MOST)


def kept_delay(tries: int) -> float:
    """Return the seconds until a workspace is looked at again that was kept so many times."""
    return _doubled(KEPT_BASE, tries, KEPT_MOST)


def adrift_delay(policy: Policy) -> float:
    """Return the seconds after which what ran on a lost host has ended itself for certain."""
    return policy.lease + policy.stop_grace + ADRIFT_SLACK


def continuation_delay(streak: Streak, policy: Policy) -> float:
    """Return the seconds before the next run of an issue that is active after a good one."""
    if streak.continuations <= QUICK_CONTINUATIONS:
        return CONTINUATION_DELAY
    return backoff(streak.continuations - QUICK_CONTINUATIONS, policy)


def after_failure(streak: Streak) -> Streak:
    """Return the streak after one more failure."""
    return Streak(failures=streak.failures + 1)


def after_continuation(streak: Streak, *, state_changed: bool) -> Streak:
    """Return the streak after a good run of an issue that is still active."""
    return Streak(continuations=1 if state_changed else streak.continuations + 1)


def after_interruption(streak: Streak, policy: Policy) -> tuple[Streak, float]:
    """Return the streak and delay after a run was cut short by the daemon's death, or its host's.

    The attempt stays, but a second interruption in a row counts as a failure.
    """
    if streak.interruptions == 0:
        return Streak(failures=streak.failures, interruptions=1), 0.0
    failed = after_failure(streak)
    return failed, backoff(failed.failures, policy)


def trigger_of(status: RunStatus) -> Trigger:
    """Return what a retry after a run of this status is counted under."""
    return _TRIGGERS.get(status, Trigger.ERROR)


def held_at_once(kind: ErrorKind) -> HoldReason | None:
    """Return why a failure of this kind parks the issue, or None where a retry may help."""
    return _HELD_AT_ONCE.get(kind)


def hold_ended_by(held: Issue, reason: HoldReason, issue: Issue) -> str | None:
    """Return what ends the hold now that the issue reads so; None keeps it.

    An operator's hold ends with a change of state only; any other with a change of content too.
    """
    if issue == held:
        return None  # it is not examined: that may be what made the daemon crash
    if not same_state(held.state, issue.state):
        return f"its state changed from {held.state} to {issue.state}"
    if reason is not HoldReason.OPERATOR and content_of(held) != content_of(issue):
        return "its content changed"
    return None
