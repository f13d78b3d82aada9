"""A scheduler whose every decision is checked against the account."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from sortie import facts
from sortie.model import (
    Finish,
    Finished,
    HoldReason,
    Issue,
    IssueId,
    RunReport,
    StopReason,
    TrackerErrorKind,
    WaitKind,
    state_key,
)
from sortie.scheduler import Decision, Event, Policy, Scheduler
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import HandingOff, Waiting
from tests.scheduler.derivation import assert_derived
from tests.sim.freshness import Freshness
from tests.sim.serving import Serving
from tests.sim.system.account import Account, OpenRun, may_end, unfit
from tests.sim.system.machine import Machine, Process
from tests.sim.system.trace import Trace

HANDOFF_TRIES = 5
TOLD_WITHIN = 10.0
"""Seconds for which a slow disk may keep a stop from its worker."""
STOPPED_WITHIN = 180.0
"""Seconds in which a run that was told to stop is over: a request to the tracker that hangs, a
directory that is made slowly, a session that clings, and the last hook."""


class PlannedBugError(Exception):
    """The core crashes, because the schedule says so."""


class WatchedScheduler(Scheduler):
    """Decides as any Scheduler; what goes in and out is traced and judged."""

    def watch(self, policy: Policy, account: Account, machine: Machine, trace: Trace) -> None:
        """Begin to judge; call it once, before the first event.

        ``bug`` is an issue over which the core crashes; ``states_of`` says how many states an
        issue has been in. ``crashed`` tells that the core is out of order. ``ambush`` is told of
        each decision before anything is done about it. ``is_left_to_others`` tells whether the end
        of a process is the business of another daemon.
        """
        self.is_left_to_others: Callable[[Process], bool] = lambda _process: False
        self.ambush: Callable[[Decision], object] = lambda _decision: None
        self.bug: Callable[[], str | None] = lambda: None
        self.states_of: Callable[[IssueId], int] = lambda _issue_id: 0
        self._policy = policy
        self._account = account
        self._machine = machine
        self._trace = trace
        self._step = 0
        self.crashed = False
        self._asked_at: dict[int, int] = {}
        self._answered: set[int] = set()
        self._informed: dict[IssueId, int] = {}
        self._read: dict[IssueId, Issue] = {}
        self._freshness = Freshness()
        self._serving = Serving(self._state.epoch)
        self._serving.remember(c for c in self._state.claims.values() if isinstance(c, Waiting))

    def handle(self, event: Event, now: float) -> list[Decision]:
        """Apply one event under the account's eyes."""
        self._step += 1
        if not isinstance(event, ev.TimePassed):
            self._trace.tell("event", event)
        before = dict(self._state.claims)
        self._hear(event, now)
        decisions = super().handle(event, now)
        assert_derived(self._state)
        if self.in_hand is not None and self.in_hand.id == self.bug():
            self._trace.note("world", f"the core crashes over {self.in_hand.identifier}")
            self.crashed = True
            raise PlannedBugError(self.in_hand.identifier)
        for decision in decisions:
            self._step += 1
            self._trace.tell("decision", decision)
            self._judge(event, decision, decisions, now)
        for wrong in self._freshness.hear(event, before, self._state.claims, decisions):
            self._wrong(wrong)
        self._serving.hear(decisions, now)
        for decision in decisions:
            if isinstance(decision, do.Refresh):
                self._judge_choice(decision)
            self.ambush(decision)
        self._account.forget_idle()
        return decisions

    def forget(self) -> None:
        """Forget the questions that were answered; another answer to one is still wrong."""
        for token in self._answered:
            del self._asked_at[token]
        self._answered.clear()

    def _wrong(self, text: str) -> None:
        self._trace.wrong(text)

    # What comes in

    def _hear(self, event: Event, now: float) -> None:
        account = self._account
        match event:
            case ev.PolicyChanged(policy):
                self._policy = policy
            case ev.PauseAsked(paused):
                account.now.paused = paused
            case ev.IssuesRefreshed(token):
                if token not in self._asked_at or token in self._answered:
                    self._wrong(f"question {token} was answered twice, or never asked")
                self._answered.add(token)
                self._read |= {issue.id: issue for issue in event.issues}
            case ev.IssueMoved(run_id, issue):
                self._informed[issue.id] = self._step
                self._read[issue.id] = issue
                if run_id in account.open:
                    self._hear_reread(account.open[run_id], issue)
            case ev.TurnStarted(run_id, turn):
                account.open[run_id].turn = turn
                if account.open[run_id].may_go_on is False and turn > 1:
                    self._wrong(f"run {run_id} goes on although its issue was read as left")
                if turn == 1:
                    issue_id = account.open[run_id].start.issue.id
                    account.now.sessions[issue_id] = account.now.sessions.get(issue_id, 0) + 1
            case ev.WorkerExited(run_id, report):
                if run_id not in account.open:
                    self._wrong(f"run {run_id} exited twice, or never began")
                    return
                self._informed[account.open[run_id].start.issue.id] = self._step
                self._judge_end(account.open[run_id], report, now)
                account.end(run_id, report, self._policy, now)
                for process in self._machine.of_runs({run_id}):
                    if not self.is_left_to_others(process):
                        self._wrong(f"{process} outlives its run")
            case ev.TransitionAnswered(issue_id, token, kind):
                claim = self._state.claims.get(issue_id)
                failed = kind is not None and not kind.is_outage
                if failed and isinstance(claim, HandingOff) and claim.token == token:
                    account.now.tries[issue_id] = account.now.tries.get(issue_id, 0) + 1
            case ev.RetryAsked(issue=name):
                if (found := self._state.find(name)) is not None:
                    account.now.tries.pop(found.id, None)
            case _:
                pass

    def _hear_reread(self, run: OpenRun, issue: Issue) -> None:
        run.may_go_on = self._policy.is_active(issue)
        if run.may_go_on:
            run.left_at = None

    # What goes out

    def _judge_choice(self, question: do.Refresh) -> None:
        state, sessions = self._state, self._account.now.sessions
        limit = self._policy.max_sessions
        spent = {i for i, count in sessions.items() if 0 < limit <= count}
        listed = [candidate.issue for candidate in state.candidates.values()]
        for wrong in self._serving.out_of_turn(
            self._policy, question.token, state.claims, listed, spent
        ):
            self._wrong(wrong)

    def _judge_end(self, run: OpenRun, report: RunReport, now: float) -> None:
        """A run ends for the reason that it gives, and within bounds where it was stopped."""
        name = f"run {run.start.run_id} of {run.start.issue.identifier}"
        match report.end:
            case Finished(finish=Finish.LEFT_ACTIVE) if run.may_go_on is not False:
                self._wrong(f"{name} ended as if its issue had left its active states")
            case Finished(finish=Finish.TURNS_USED) if run.may_go_on is False:
                self._wrong(f"{name} used its turns, and its issue had left its active states")
            case _:
                pass
        if (
            run.stopped_at is not None
            and run.told_at is None
            and now > run.stopped_at + TOLD_WITHIN
        ):
            self._wrong(f"{name} was never told that it is stopped")
        if run.told_at is not None and now > run.told_at + STOPPED_WITHIN:
            self._wrong(f"{name} took {now - run.told_at:g} s to stop")

    def _judge(
        self, event: Event, decision: Decision, decisions: list[Decision], now: float
    ) -> None:
        ledger = self._account.now
        match decision:
            case do.Refresh(token):
                self._asked_at[token] = self._step
            case do.StartWorker():
                self._judge_start(event, decision, now)
                self._account.start(decision, self._policy)
            case facts.IssueReconciled(action="keep", issue=issue, reason=reason):
                self._judge_fresh(event, issue.id, "keeps a run")
                for run in self._account.open.values():
                    if run.start.issue.id == issue.id:
                        run.left_at = now if reason else None
            case do.StopWorker():
                self._judge_stop(event, decision, now)
            case facts.HoldEnded(issue=issue):
                self._account.parked.pop(issue.id, None)
            case facts.WaitEnded(issue=issue):
                self._judge_fresh(event, issue.id, "ends a wait")
            case rec.RecordRetry(issue=issue):
                if isinstance(event, ev.RetryAsked):
                    self._account.retried(issue.id)
                if issue.id in ledger.holds:
                    self._wrong(f"{issue.identifier} waits while it is held")
                self._informed[issue.id] = self._step
                ledger.waits.add(issue.id)
                self._judge_tries(decision)
            case do.HandOff(issue=issue):
                if ledger.tries.get(issue.id, 0) >= HANDOFF_TRIES:
                    self._wrong(f"{issue.identifier} is handed off once too often")
            case rec.ForgetRetry(issue_id=issue_id):
                ledger.waits.discard(issue_id)
            case rec.RecordHold(issue=issue, reason=reason):
                ledger.holds[issue.id] = (reason, issue)
                if not decision.again:
                    self._informed[issue.id] = self._step
            case rec.ForgetHold(issue_id=issue_id):
                self._judge_release(event, issue_id)
                ledger.holds.pop(issue_id, None)
            case rec.ResetBudget(issue_id=issue_id):
                self._judge_reset(issue_id, decisions, event)
                ledger.sessions.pop(issue_id, None)
            case _:
                pass

    def _judge_tries(self, wait: rec.RecordRetry) -> None:
        """Each handoff that failed is on record, so that no restart makes it a first one again."""
        tries = self._account.now.tries
        if wait.kind is not WaitKind.HANDOFF:
            tries.pop(wait.issue.id, None)
        elif wait.tries != tries.get(wait.issue.id, 0) or wait.tries >= HANDOFF_TRIES:
            self._wrong(f"handoff {wait.tries} of {wait.issue.identifier} is recorded: {tries}")

    def _judge_start(self, event: Event, start: do.StartWorker, now: float) -> None:
        account, ledger, policy, issue = self._account, self._account.now, self._policy, start.issue
        name = f"run {start.run_id[:8]} of {issue.identifier} starts"
        if not isinstance(event, ev.IssuesRefreshed) or issue not in event.issues:
            self._wrong(f"{name} without having been re-read")
            return
        self._informed[issue.id] = self._asked_at[event.token]
        if reason := unfit(issue, policy):
            self._wrong(f"{name} although {reason}")
        if ledger.paused:
            self._wrong(f"{name} while paused")
        if issue.id in ledger.holds:
            self._wrong(f"{name} while held: {ledger.holds[issue.id]}")
        if issue.id in ledger.runs.values():
            self._wrong(f"{name} beside another")
        if len(account.open) >= policy.max_concurrent_agents:
            self._wrong(f"{name} as one too many of {policy.max_concurrent_agents}")
        self._judge_state_limit(name, start)
        standing = ledger.standings.get(issue.id)
        attempt = standing.attempt if standing is not None else 0
        if start.streak.failures != attempt:
            self._wrong(f"{name} as attempt {start.streak.failures}, not {attempt}")
        if standing is not None and now < standing.not_before - 1e-6:
            self._wrong(f"{name} {standing.not_before - now:g} s before its wait is over")
        sessions = ledger.sessions.get(issue.id, 0)
        if 0 < policy.max_sessions <= sessions:
            self._wrong(f"{name} after {sessions} sessions of {policy.max_sessions}")
        if account.parked.get(issue.id) == self.states_of(issue.id):
            self._wrong(f"{name} although an operator was told that it is held")

    def _judge_state_limit(self, name: str, start: do.StartWorker) -> None:
        policy, states = self._policy, Counter[str]()
        for claim in self._state.worked():
            states[state_key(claim.issue.state)] += 1
        wanted = {state_key(start.issue.state), state_key(policy.in_progress_state or "")}
        for state in sorted(wanted):
            limit = policy.max_by_state.get(state)
            extra = 0 if state == state_key(start.issue.state) else 1
            if limit is not None and states[state] + extra > limit:
                self._wrong(f"{name} as one too many of {limit} in {state}")

    def _judge_stop(self, event: Event, stop: do.StopWorker, now: float) -> None:
        run = self._account.open.get(stop.run_id)
        if run is None:
            self._wrong(f"a run is stopped that is over: {stop.run_id}")
            return
        if run.stopped is not None:
            self._wrong(f"a run is stopped twice: {stop.run_id}")
        run.stopped, run.stopped_at = stop.reason, now
        match stop.reason:
            case StopReason.OPERATOR:
                allowed = isinstance(event, ev.StopAsked)
            case StopReason.SHUTDOWN:
                allowed = isinstance(event, ev.ShutdownRequested)
            case _ if run.turn == 0:
                allowed = isinstance(event, ev.IssuesRefreshed)
                self._judge_fresh(event, stop.issue.id, "stops a run")
            case _:
                had_its_time = (
                    run.left_at is not None and now >= run.left_at + self._policy.inactive_grace
                )
                begins_another = run.left_at is not None and isinstance(event, ev.TurnStarted)
                allowed = had_its_time or begins_another
        if not allowed:
            self._wrong(f"{stop.issue.identifier} is stopped ({stop.reason}) by {event}")

    def _judge_fresh(self, event: Event, issue_id: IssueId, what: str) -> None:
        """An answer counts only where it was asked for after the newest thing that is known."""
        if not isinstance(event, ev.IssuesRefreshed):
            return
        if self._asked_at[event.token] <= self._informed.get(issue_id, -1):
            self._wrong(f"a stale answer {what} of {issue_id}")

    def _judge_release(self, event: Event, issue_id: IssueId) -> None:
        if issue_id not in self._account.now.holds:
            self._wrong(f"{issue_id} is released that is not held")
            return
        reason, held = self._account.now.holds[issue_id]
        match event:
            case ev.RetryAsked():
                allowed = True
            case ev.TransitionAnswered(error_kind=kind):
                moved = kind is None or kind is TrackerErrorKind.CONFLICT
                allowed = reason is HoldReason.OPERATOR and moved
            case ev.CandidatesFetched(hindrance=None):
                allowed = reason is HoldReason.AGENT_NOT_FOUND
            case ev.WorkerExited():  # the hold was promised for an issue that is finished now
                newest = self._read.get(issue_id, held)
                allowed = reason is HoldReason.OPERATOR and self._policy.is_terminal(newest)
            case ev.PolicyChanged():
                kept = (HoldReason.OPERATOR, HoldReason.AGENT_BLOCKED, HoldReason.QUESTION)
                allowed = reason not in kept
            case ev.IssuesRefreshed(_, _, issues):
                read = next((issue for issue in issues if issue.id == issue_id), None)
                is_answered = reason is HoldReason.QUESTION and issue_id in event.answers
                allowed = is_answered or may_end(reason, held, read)
                self._judge_fresh(event, issue_id, "ends a hold")
            case _:
                allowed = False
        if not allowed:
            self._wrong(f"the hold ({reason}) of {issue_id} is ended by {event}")

    def _judge_reset(self, issue_id: IssueId, decisions: list[Any], event: Event) -> None:
        released = any(isinstance(d, rec.ForgetHold) and d.issue_id == issue_id for d in decisions)
        issues = event.issues if isinstance(event, ev.IssuesRefreshed) else ()
        finished = any(i.id == issue_id and self._policy.is_terminal(i) for i in issues)
        if not released and not finished and not isinstance(event, ev.WorkerExited):
            self._wrong(f"the budget of {issue_id} begins anew because of {event}")
