"""The scheduler itself: one method per kind of event, and the deadlines."""

from __future__ import annotations

import math
from typing import Self, assert_never

from msgspec.structs import replace

from sortie import facts
from sortie.model import Issue, IssueId, KnownWorkspace
from sortie.scheduler import events as ev
from sortie.scheduler.answers import question_due
from sortie.scheduler.budgets import BudgetStanding
from sortie.scheduler.candidates import GateVerdict
from sortie.scheduler.checkpoint import Checkpoint, checkpoint_of, state_of
from sortie.scheduler.claims import Cleaning, Departure, HandingOff, Held, Running, Waiting
from sortie.scheduler.clean_ups import clean_again, cleaned, drop_reopened
from sortie.scheduler.commands import OperatorEvent, obey_operator
from sortie.scheduler.decisions import Decision, StartWorker
from sortie.scheduler.demand import is_busy, slot_use
from sortie.scheduler.dispatch import dispatch
from sortie.scheduler.exits import exited
from sortie.scheduler.explanation import Explanation, explain_issue
from sortie.scheduler.forge_events import ForgeEvent, take_in
from sortie.scheduler.gates import explain
from sortie.scheduler.grants import SlotGrant, SlotUse
from sortie.scheduler.handoffs import handoff_answered
from sortie.scheduler.identifiers import RunIds
from sortie.scheduler.inheriting import Beginning, inherited_state
from sortie.scheduler.memory import Memory, TakenOver
from sortie.scheduler.policy import Policy
from sortie.scheduler.polls import begin_poll, candidates_fetched, poll_failed, put_polls_off
from sortie.scheduler.progress import (
    WorkerReport,
    host_reached,
    pause_host,
    progressed,
    workspaces_measured,
)
from sortie.scheduler.reconcile import (
    confirm_missing,
    confirm_missing_at,
    reconcile,
    refreshed,
)
from sortie.scheduler.run_start import go_on_with
from sortie.scheduler.snapshot import Backlog, Snapshot, backlog, snapshot_of
from sortie.scheduler.spending import agent_used, begin_day, limit_met, limit_passed, pass_limits
from sortie.scheduler.usage_limits import UsageLimit
from sortie.scheduler.waits import try_handoff
from sortie.scheduler.watching import watch_due
from sortie.scheduler.webhooks import webhooks_due, webhooks_wakeup_at


class Scheduler:
    """Decides which issues run, wait, are handed off, held and cleaned up.

    Call ``handle`` with one event at a time and perform what it returns. Give it TimePassed no
    later than ``wakeup_at``. All times are monotonic seconds; ``epoch`` is the Unix time at which
    they stood at 0. ``grant`` is what it may have where several share a process, None elsewhere.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        now: float,
        new_run_id: RunIds,
        memory: Memory | None = None,
        epoch: float = 0.0,
        grant: SlotGrant | None = None,
    ) -> None:
        self._state = inherited_state(
            memory or Memory(),
            policy,
            Beginning(now=now, new_run_id=new_run_id, epoch=epoch, grant=grant),
        )

    @classmethod
    def restored(cls, checkpoint: Checkpoint) -> Self:
        """Return a scheduler that decides from here on as the one did that was pictured."""
        scheduler = cls.__new__(cls)
        scheduler._state = state_of(checkpoint)
        return scheduler

    def checkpoint(self) -> Checkpoint:
        """Return a whole picture of the state, between two events."""
        return checkpoint_of(self._state)

    def going_on(self, taken: TakenOver, now: float) -> StartWorker:
        """Return what starts a run's worker that was taken over."""
        return go_on_with(self._state, taken, now)

    @property
    def drained(self) -> bool:
        """True once shutdown was requested and no worker is left."""
        return self._state.draining and not any(self._state.worked())

    @property
    def in_hand(self) -> Issue | None:
        """The issue that was looked at last; where ``handle`` raises, it may be why."""
        return self._state.in_hand

    @property
    def usage_limit(self) -> UsageLimit | None:
        """The usage limit of the agent's account, or of the first rule's that has one, None where
        none is known."""
        return self._state.usage_limit

    @property
    def idle_polls(self) -> int:
        """How many good polls in a row found nothing to do or to wait for."""
        return self._state.idle_polls

    def wakeup_at(self) -> float:
        """Return when ``handle(TimePassed())`` next has something to do; inf: no time will."""
        state = self._state
        if state.draining:
            return math.inf
        deadline = state.reconcile_at if state.polling else min(state.poll_at, state.reconcile_at)
        if state.dispatch_needed:
            deadline = min(deadline, state.no_dispatch_before)
        return min(
            deadline,
            min(state.claims.deadlines.values(), default=math.inf),
            max(min(state.claims.handoffs.values(), default=math.inf), state.tracker_paused_until),
            confirm_missing_at(state),
            state.hosts.wakeup_at(),
            state.limits.wakeup_at(),
            state.watches.wakeup_at() if state.policy.reactions.on else math.inf,
            webhooks_wakeup_at(state),
        )

    def snapshot(self, now: float) -> Snapshot:
        """Return an immutable picture of all that is claimed, waiting and held."""
        return snapshot_of(self._state, now)

    def backlog(self, snapshot: Snapshot, shown: int) -> Backlog:
        """Return what the last poll found and nothing is done about, the first ``shown`` of it.

        ``snapshot`` is one of this moment.
        """
        return backlog(self._state, snapshot.now, shown, snapshot.unfit)

    def account_limits(self) -> dict[str, UsageLimit | None]:
        """Return the accounts that the settings name, each with its usage limit if it has one."""
        every = self._state.policy.every()
        return {policy.account: self._state.limits.of(policy.account) for policy in every}

    def slot_use(self, now: float) -> SlotUse:
        """Return what is used of the slots that several schedulers share, and what is wanted."""
        return slot_use(self._state, now)

    def budget_of(self, issue: Issue) -> BudgetStanding:
        """Return what an issue and the day have used and may use."""
        return self._state.budget_of(issue)

    def explain(self, issue: Issue, now: float) -> tuple[GateVerdict, ...]:
        """Return every gate's verdict on an issue."""
        return explain(issue, self._state, now)

    def explain_issue(self, name: str, now: float) -> Explanation | str:
        """Return how an issue stands and why, by identifier or id; a sentence if unknown."""
        return explain_issue(self._state, name, now)

    def rule_of(self, issue_id: IssueId) -> str:
        """Return the rule that decides for an issue in hand, "" for the top level."""
        return self._state.rules.get(issue_id, "")

    def workspaces_of(self, issue_id: IssueId) -> tuple[KnownWorkspace, ...]:
        """Return the directories of an issue, also of one that is not in hand; the newest last."""
        return self._state.workspaces.of(issue_id)

    def handle(self, event: ev.Event, now: float) -> list[Decision]:
        """Apply one event and return what must happen because of it."""
        state = self._state
        state.out = []
        state.in_hand = None
        self._apply(event, now)
        dispatch(state, now)
        state.forget_rules()
        if isinstance(event, ev.CandidatesFetched):
            state.idle_polls = 0 if is_busy(state, now) else state.idle_polls + 1
        return state.out

    def _apply(self, event: ev.Event, now: float) -> None:
        state = self._state
        if isinstance(event, OperatorEvent):
            obey_operator(state, event, now)
            if isinstance(event, ev.RefreshRequested | ev.RetryAsked | ev.AnswerSent):
                self._on_time(now)
            return
        if isinstance(event, WorkerReport):
            progressed(state, event, now)
            return
        if isinstance(event, ForgeEvent):
            take_in(state, event, now)
            return
        match event:
            case ev.TimePassed():
                self._on_time(now)
            case ev.CandidatesFetched():
                candidates_fetched(state, event, now)
            case ev.PollFailed(error, skipped):
                poll_failed(state, error, now, skipped=skipped)
            case ev.TrackerPaused(seconds):
                state.pause_tracker(now + seconds)
            case ev.PollsPutOff(seconds):
                put_polls_off(state, now + seconds)
            case ev.WorkspacesMeasured(host, sizes):
                workspaces_measured(state, host, sizes)
            case ev.IssuesRefreshed():
                refreshed(state, event, now)
            case ev.SpendingReported():
                agent_used(state, event, now)
            case ev.UsageLimitMet():
                limit_met(state, event, now)
            case ev.UsageLimitPassed(account):
                limit_passed(state, account, now)
            case ev.WorkerExited():
                exited(state, event, now)
            case ev.TransitionAnswered():
                handoff_answered(state, event, now)
            case ev.WorkspaceCleaned():
                cleaned(state, event, now)
            case ev.HostTroubled(host, message, retry_after):
                pause_host(state, host, message, now, at_least=retry_after)
            case ev.HostReached(host):
                host_reached(state, host)
            case ev.StoreChanged(error):
                state.store_error = error
                state.dispatch_needed = True
            case ev.SlotsGranted(grant):
                state.grant = grant
                state.dispatch_needed = True
            case ev.DayBegan():
                begin_day(state, event, now)
            case _:
                assert_never(event)

    def _on_time(self, now: float) -> None:
        state = self._state
        if state.draining:
            return
        drop_reopened(state)
        for issue_id in state.claims.passed(now, handoffs=state.tracker_paused_until <= now):
            claim = state.claims[issue_id]
            state.in_hand = claim.issue
            match claim:
                case Waiting():
                    state.claims[issue_id] = replace(claim, due=True)
                    state.dispatch_needed = True
                case HandingOff():
                    try_handoff(state, claim)
                case Cleaning():
                    clean_again(state, claim, now)
                case Held():
                    question_due(state, claim, now)
                case Running(departure=Departure() as departure):
                    state.stop_departed(claim, departure)
                case _:
                    raise AssertionError(claim)
        state.in_hand = None
        changed, given_up = state.hosts.pass_time(now)
        state.dispatch_needed |= changed
        state.out.extend(facts.HostGivenUp(host=host) for host in given_up)
        pass_limits(state, now)
        if state.policy.reactions.on:
            watch_due(state, now)
        polls = state.poll_at <= now and not state.polling
        if polls or state.reconcile_at <= now:
            reconcile(state, now)
        webhooks_due(state, now)
        if polls:
            begin_poll(state, now)
        confirm_missing(state, now)
