"""What the gates between an issue and a run look at."""

from __future__ import annotations

from msgspec import Struct

from sortie.model import HoldReason, IssueId
from sortie.scheduler.claim_table import Load, share_of_claim
from sortie.scheduler.claims import Held, Rechecking
from sortie.scheduler.state import SchedulerState


class View(Struct, frozen=True):
    """What the gates look at, at ``now`` in monotonic seconds. ``lacks_agent`` tells that an issue
    is held for want of the agent's program, where none could be launched now; ``rechecking`` that
    one was chosen and is being re-read, where a usage limit may be over."""

    state: SchedulerState
    load: Load
    now: float
    lacks_agent: bool
    rechecking: bool = False


def view_of(state: SchedulerState, now: float, *, besides: IssueId | None = None) -> View:
    """Return what the gates look at; the claim of the issue ``besides`` does not count.

    The view's load may be added to.
    """
    load = state.claims.load.copy()
    if besides is not None:
        own = state.claims.find(besides)
        load.add(share_of_claim(own, state.policy.in_progress_state), -1)
    lacks_agent = state.hindrance is not None and any(
        claim.reason is HoldReason.AGENT_NOT_FOUND and claim.issue.id != besides
        for claim in state.claims.of_kind(Held)
    )
    rechecking = state.limits.of(state.policy.account) is not None and any(
        claim.issue.id != besides for claim in state.claims.of_kind(Rechecking)
    )
    return View(state, load, now, lacks_agent, rechecking)
