"""The running daemon as HTTP asks and steers it: the one implementation of ``DaemonSource``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from heapq import nsmallest

import trio
from msgspec import Struct, field

from sortie.daemon import issue_view, issue_views
from sortie.daemon import state_view as views
from sortie.daemon.last_failures import LastFailures
from sortie.daemon.lease_views import WorkflowLease
from sortie.daemon.notification_service import NotificationService
from sortie.daemon.recent_activity import RecentActivity
from sortie.daemon.totals import RunTotals
from sortie.daemon.tracker_status import SHOWN_ISSUES, TrackerStatus
from sortie.daemon.wall_time import utc_now
from sortie.daemon.watch_views import watched_view
from sortie.daemon.webhook_views import webhook_views
from sortie.model import Issue, IssueId, RunId, StoreError
from sortie.model.asked_questions import QuestionAnswer
from sortie.model.numbers import counted
from sortie.orchestrator import Orchestrator
from sortie.resources import Shortages
from sortie.scheduler import Event
from sortie.scheduler import events as ev
from sortie.store import DayRow, Store
from sortie.telemetry.live_runs import LiveRuns
from sortie.web.dashboard.activity import ActivityView
from sortie.web.deliveries import DeliveryView, delivery_view
from sortie.web.health import Health
from sortie.web.issue import (
    ExplanationView,
    IssueView,
    WorkspaceView,
)
from sortie.web.leases import LeadershipView
from sortie.web.runs import RunView, run_view
from sortie.web.source import CommandAnswer, CommandStatus, TranscriptSource
from sortie.web.state import Counts, StateView, WorkflowView
from sortie.web.webhooks.records import KindRecord

ISSUE_RUNS = 20
"""How many runs of an issue are shown with it."""

_COMMAND_STATUSES: dict[str, CommandStatus] = {"done": 200, "unknown": 404, "conflict": 409}


class DaemonView(Struct, frozen=True, kw_only=True):
    """What views are made from, and where commands go; see DaemonSource."""

    orchestrator: Orchestrator
    store: Store
    live_runs: LiveRuns
    totals: RunTotals
    failures: LastFailures
    tracker: TrackerStatus
    transcripts: TranscriptSource
    workflow: Callable[[], WorkflowView]
    shortages: Shortages = field(default_factory=Shortages)
    recent: RecentActivity = field(default_factory=lambda: RecentActivity(utc_now))
    secrets: Callable[[], Set[str]] = frozenset
    transcripts_error: Callable[[], str | None] = lambda: None
    host_isolation: Callable[[], tuple[str, ...]] = tuple
    lease: WorkflowLease | None = None
    notifications: NotificationService | None = None
    deliveries: Callable[[str], KindRecord] = lambda _kind: KindRecord()

    def state(self) -> StateView:
        """See DaemonSource."""
        return self._state(None, SHOWN_ISSUES)

    def overview(self, waiting: int) -> StateView:
        """See DaemonSource."""
        return self._state(waiting, SHOWN_ISSUES)

    def whole_state(self) -> StateView:
        """See DaemonSource."""
        return self._state(None, sys.maxsize)

    def _state(self, first_waiting: int | None, first_kept: int) -> StateView:
        """Return the state with the first waits, and the first queued and blocked issues; all are
        counted."""
        snapshot, details = self.orchestrator.snapshot(), self.live_runs.runs()
        backlog, failure = self.orchestrator.backlog(snapshot, first_kept), self.failures.of
        waits, place = snapshot.waiting, self.workspace

        def rule(issue: Issue) -> str | None:
            return snapshot.rules.get(issue.id)

        shown = (
            waits if first_waiting is None else nsmallest(first_waiting, waits, issue_views.due_at)
        )
        return StateView(
            generated_at=utc_now(),
            status=snapshot.status,
            workflow=self.workflow(),
            counts=Counts(
                running=len(snapshot.worked),
                waiting=len(waits),
                held=len(snapshot.held),
                queued=backlog.queued,
                blocked=backlog.blocked,
                unreadable=self.tracker.unreadable_count(),
                kept=len(snapshot.kept),
                watched=len(snapshot.watched),
            ),
            running=tuple(
                issue_views.running_view(c, details.get(c.run_id), failure(c.issue))
                for c in snapshot.worked
            ),
            waiting=tuple(
                issue_views.waiting_view(c, failure(c.issue), place(c.issue.id), rule(c.issue))
                for c in shown
            ),
            held=tuple(
                issue_views.held_view(
                    c, failure(c.issue), place(c.issue.id), rule(c.issue), snapshot.questions
                )
                for c in snapshot.held
            ),
            slots=views.slots_view(snapshot),
            totals=self.totals.view(views.elapsed(snapshot)),
            queued=tuple(
                issue_views.candidate_view(k, rule(k.issue)) for k in backlog.first_queued
            ),
            blocked=tuple(
                issue_views.candidate_view(k, rule(k.issue)) for k in backlog.first_blocked
            ),
            hosts=views.host_views(snapshot),
            tracker=replace(self.tracker.view(), webhooks=webhook_views(snapshot, self.deliveries)),
            usage_limit=views.usage_limit_view(snapshot),
            today=views.today_view(snapshot),
            kept=tuple(issue_views.kept_view(claim, snapshot.policy) for claim in snapshot.kept),
            handed_off=self.recent.handed_off(),
            watched=tuple(map(watched_view, snapshot.watched)),
            lease=None if self.lease is None else self.lease.view(),
            daemons=() if self.lease is None else self.lease.daemons(),
            notifications=() if self.notifications is None else self.notifications.views(),
        )

    def workspace(self, issue_id: IssueId) -> WorkspaceView | None:
        """Return the directory that an issue was given last, if one is there."""
        known = self.orchestrator.workspaces_of(issue_id)
        return WorkspaceView(host=known[-1].host, path=known[-1].path) if known else None

    def activity(self) -> ActivityView:
        """See DaemonSource."""
        return self.recent.view()

    def health(self) -> Health:
        """See DaemonSource."""
        snapshot = self.orchestrator.snapshot()
        faults = (
            self.orchestrator.store_error,
            *self.shortages.shortages,
            *self.shortages.unknown,
            snapshot.skipped,
            snapshot.hindrance,
            snapshot.poll_error,
            self.tracker.resting(),
            None if self.tracker.tracker.is_listing else views.endless_poll(snapshot),
            views.no_usable_host(snapshot),
            views.closed_tracker(snapshot),
            "the daemon is stopping" if snapshot.draining else None,
        )
        reasons = tuple(dict.fromkeys(fault for fault in faults if fault))
        unwritten = self.transcripts_error()
        return Health(
            ready=not reasons,
            reasons=reasons,
            details=(
                *views.stop_sentences(snapshot),
                *views.host_sentences(snapshot),
                *self.host_isolation(),
                *self.tracker.budget_sentences(),
                *([f"transcripts cannot be written: {unwritten}"] if unwritten else ()),
            ),
            overdue=max(0.0, trio.current_time() - self.orchestrator.next_round_at),
        )

    async def refresh(self) -> CommandAnswer:
        """See DaemonSource."""
        return await self._command(ev.RefreshRequested, done=202)

    async def pause(self) -> CommandAnswer:
        """See DaemonSource."""
        return await self._command(lambda ask: ev.PauseAsked(True, ask))

    async def resume(self) -> CommandAnswer:
        """See DaemonSource."""
        return await self._command(lambda ask: ev.PauseAsked(False, ask))

    async def stop(self, issue: str) -> CommandAnswer:
        """See DaemonSource."""
        return await self._command(lambda ask: ev.StopAsked(issue, ask), issue)

    async def retry(self, issue: str) -> CommandAnswer:
        """See DaemonSource."""
        return await self._command(lambda ask: ev.RetryAsked(issue, ask), issue)

    async def send_again(self, notification: int | None) -> CommandAnswer:
        """See DaemonSource."""
        if self.notifications is None:
            return CommandAnswer(status=409, message="there are none: no target is named")
        try:
            done = await self.notifications.revive(notification)
        except StoreError as exc:
            return CommandAnswer(status=503, message=str(exc))
        if isinstance(done, str):
            return CommandAnswer(status=409, message=done)
        told = f"{counted(done, 'notification')} sent again" if done else "none was given up"
        return CommandAnswer(status=200, message=told)

    async def answer(self, issue: str, answer: QuestionAnswer) -> CommandAnswer:
        """See DaemonSource."""
        return await self._command(lambda ask: ev.AnswerSent(issue, answer, ask), issue)

    async def _command(
        self, event: Callable[[int], Event], issue: str = "", done: CommandStatus = 200
    ) -> CommandAnswer:
        answer = await self.orchestrator.ask(event)
        if answer is None:
            error = self.orchestrator.store_error
            message = (
                f"it could not be recorded yet{f': {error}' if error else ''}; it takes effect once"
                " it is, unless the daemon is restarted before"
            )
            return CommandAnswer(status=503, message=message)
        status = done if answer.verdict == "done" else _COMMAND_STATUSES[answer.verdict]
        is_unknown = status == 404 and issue
        message = self._unknown(issue, answer.message) if is_unknown else answer.message
        return CommandAnswer(status=status, message=message)

    def _unknown(self, name: str, sentence: str) -> str:
        """Return what to say of an issue that the scheduler does not know."""
        snapshot = self.orchestrator.snapshot()
        known = {issue.identifier for issue in snapshot.candidates}
        known |= {claim.issue.identifier for claim in snapshot.claims.values()}
        return self.tracker.explain_unknown(name, sentence, known)

    async def explain(self, issue: str) -> ExplanationView | str:
        """See DaemonSource."""
        found = self.orchestrator.explain_issue(issue)
        if isinstance(found, str):
            return self._unknown(issue, found)
        failure, place = self.failures.of(found.issue), self.workspace(found.issue.id)
        view = issue_views.explanation_view(found, failure, self.tracker.budgets(), place)
        return replace(view, delivery=await self._last_delivery(view.issue_identifier))

    async def _last_delivery(self, issue: str) -> DeliveryView | None:
        """Return what became of the work on an issue, by the newest run that tells."""
        if any(policy.has_repository for policy in self.orchestrator.snapshot().policy.every()):
            with suppress(StoreError):
                runs = await self.store.history(issue=issue, limit=ISSUE_RUNS)
                found = next((run.delivery for run in runs if run.delivery is not None), None)
                return None if found is None else delivery_view(found)
        return None

    async def history(
        self, *, issue: str | None, limit: int, before: str | None, rule: str | None = None
    ) -> Sequence[RunView]:
        """See DaemonSource."""
        last = None if before is None else RunId(before)
        rows = await self.store.history(issue=issue, limit=limit, before=last, rule=rule)
        return tuple(map(run_view, rows))

    async def leaderships(self, limit: int, before: int | None) -> Sequence[LeadershipView]:
        """See DaemonSource."""
        return () if self.lease is None else await self.lease.history(limit, before)

    async def run(self, run_id: str) -> RunView | None:
        """See DaemonSource."""
        row = await self.store.run(RunId(run_id))
        return None if row is None else run_view(row)

    async def diff(self, run_id: str) -> str | None:
        """See DaemonSource."""
        return await self.store.diff(RunId(run_id))

    async def days(self, count: int) -> Sequence[DayRow]:
        """See DaemonSource."""
        return await self.store.days(count)

    async def issue(self, issue: str) -> IssueView | str:
        """See DaemonSource."""
        found = await self.explain(issue)
        identifier = issue if isinstance(found, str) else found.issue_identifier
        runs = await self.history(issue=identifier, limit=ISSUE_RUNS, before=None)
        if not isinstance(found, str):
            return issue_view.in_hand(found, self.state(), runs)
        if not runs:
            return found
        return issue_view.past(issue, runs, self.workspace(IssueId(runs[0].issue_id)))
