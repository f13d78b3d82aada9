"""The state with which a scheduler begins: what it takes over from an earlier daemon."""

from __future__ import annotations

from msgspec import Struct

from sortie.scheduler.budgets import Ledger
from sortie.scheduler.grants import SlotGrant
from sortie.scheduler.identifiers import RunIds
from sortie.scheduler.memory import Memory
from sortie.scheduler.policy import Policy
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.usage_limits import UsageLimits
from sortie.scheduler.watch_table import Watched
from sortie.scheduler.workspace_index import WorkspaceIndex


class Beginning(Struct, frozen=True, kw_only=True):
    """When a scheduler begins, and with what; see Scheduler."""

    now: float
    new_run_id: RunIds
    epoch: float
    grant: SlotGrant | None


def inherited_state(memory: Memory, policy: Policy, begins: Beginning) -> SchedulerState:
    """Return the state of a scheduler that begins with what an earlier daemon has recorded."""
    now = begins.now
    state = SchedulerState(
        policy=policy,
        new_run_id=begins.new_run_id,
        epoch=begins.epoch,
        poll_at=now,
        reconcile_at=now,
        check_workspaces_at=now,
        sessions=dict(memory.sessions),
        ledger=Ledger(memory.spent, memory.spent_today),
        day=memory.day,
        limits=UsageLimits(memory.limits),
        agent_sessions=dict(memory.agent_sessions),
        deliveries=dict(memory.deliveries),
        questions=dict(memory.questions),
        workspaces=WorkspaceIndex(memory.workspaces, memory.unsaved),
        crashed=set(memory.crashed),
        rules=dict(memory.rules),
        stages=dict(memory.stages),
        paused=memory.paused,
        grant=begins.grant,
    )
    for claim in memory.claims:
        state.claims[claim.issue.id] = claim
    for taken in memory.taken_over:
        state.claims[taken.claim.issue.id] = taken.claim
        state.ledger.take_over(taken.claim.run_id, taken.spent)
    for issue, watch in memory.watches:
        if watch.former:
            state.former_watches[issue.id] = watch
            continue
        interval = policy.reactions.interval
        watched = Watched(issue=issue, watch=watch, due_at=now, interval=interval, front_since=now)
        state.watches[issue.id] = watched
    for issue_id in (*state.claims, *state.watches) if policy.rules else ():
        state.rules.setdefault(issue_id, "")  # claimed when there were no rules
    return state
