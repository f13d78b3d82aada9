"""What the gates between an issue and a run look at."""

from __future__ import annotations

from msgspec import Struct

from sortie.model import HoldReason, IssueId
from sortie.scheduler.claim_table import Load, share_of_claim
from sortie.scheduler.claims import Held, Rechecking
from sortie.scheduler.grants import SlotGrant
from sortie.scheduler.state import SchedulerState


class View(Struct, frozen=True):
    """What the gates look at, at ``now`` in monotonic seconds. ``lacking`` are the rules of which
    an issue is held for want of the agent's program, where it cannot be launched now;
    ``rechecking`` the accounts with a usage limit for which an issue is being re-read.
    ``grant`` limits the slots where several schedulers share them."""

    state: SchedulerState
    load: Load
    now: float
    lacking: frozenset[str]
    rechecking: frozenset[str] = frozenset()
    grant: SlotGrant | None = None

    @property
    def slots(self) -> int:
        """How many runs there may be at once."""
        most = self.state.policy.max_concurrent_agents
        return most if self.grant is None else min(most, self.grant.usable)

    def runs_of_others(self, host: str, account: str) -> int:
        """Return how many runs on a host are of other accounts."""
        state = self.state
        here = (claim.issue for claim in state.worked() if claim.host == host)
        return sum(state.policy_for(issue).account != account for issue in here)

    def others_wanting(self, rule: str) -> int:
        """Return how many open candidates and due waits other rules have."""
        state = self.state
        issues = [candidate.issue for candidate in state.candidates.open()]
        issues += [claim.issue for _, claim in state.claims.due_in_order()]
        return sum(state.rule_of(issue) != rule for issue in issues)


def view_of(state: SchedulerState, now: float, *, besides: IssueId | None = None) -> View:
    """Return what the gates look at; the claim of the issue ``besides`` does not count.

    The view's load may be added to.
    """
    load = state.claims.load.copy()
    if besides is not None:
        load.add(share_of_claim(state.claims.find(besides)), -1)
    lacking = {
        state.rule_of(claim.issue)
        for claim in (state.claims.of_kind(Held) if state.hindrances else ())
        if claim.reason is HoldReason.AGENT_NOT_FOUND and claim.issue.id != besides
    }
    rechecking = {
        state.policy_for(claim.issue).account
        for claim in (state.claims.of_kind(Rechecking) if state.limits.all() else ())
        if claim.issue.id != besides
    }
    return View(state, load, now, frozenset(lacking), frozenset(rechecking), state.grant)
