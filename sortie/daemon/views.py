"""What the daemon shows of itself: state, gauges and health, from snapshots."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import TYPE_CHECKING, Literal

import trio

from sortie.daemon.capacity_view import host_sentences, host_views, slots_view
from sortie.daemon.last_failures import LastFailures
from sortie.daemon.recent_activity import RecentActivity
from sortie.daemon.spending_view import stops, today_view, usage_limit_view
from sortie.daemon.totals import RunTotals
from sortie.daemon.tracker_status import SHOWN, TrackerStatus
from sortie.daemon.wall_time import utc_now, wall_time
from sortie.model import LOCAL, NOTHING, UNKNOWN, IssueId, Spending, WaitKind
from sortie.model.numbers import span
from sortie.orchestrator import Orchestrator
from sortie.resources import Shortages
from sortie.scheduler import Policy, Snapshot
from sortie.scheduler.backlog import Kept
from sortie.scheduler.claims import Cleaning, HandingOff, Held, Waiting, Worked
from sortie.telemetry.live_runs import LiveRuns, RunDetails
from sortie.web.health import Health
from sortie.web.state import (
    CandidateView,
    Counts,
    FailureView,
    HeldView,
    KeptView,
    KeptWorkspaceView,
    RunningView,
    StateView,
    WaitingView,
    WorkflowView,
    WorkspaceView,
)

if TYPE_CHECKING:
    from sortie.telemetry.metrics.gauges import Gauges

POLL_LIMIT = 120.0
"""Seconds after which a poll that does not wait for the tracker is taken to hang."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonView:
    """Everything that views are made from; each of its methods returns at once.

    ``secrets`` are those in force, which nobody may be shown.
    """

    orchestrator: Orchestrator
    live_runs: LiveRuns
    totals: RunTotals
    failures: LastFailures
    tracker: TrackerStatus
    workflow: Callable[[], WorkflowView]
    shortages: Shortages = field(default_factory=Shortages)
    activity: RecentActivity = field(default_factory=lambda: RecentActivity(utc_now))
    secrets: Callable[[], Set[str]] = frozenset
    transcripts_error: Callable[[], str | None] = lambda: None
    host_isolation: Callable[[], tuple[str, ...]] = tuple

    def state(self, first_waiting: int | None = None, first_kept: int = SHOWN) -> StateView:
        """Return what ``/api/v1/state`` shows; ``first_waiting`` is how many of the waits, those
        that are due first, are enough for whoever asks every second, and ``first_kept`` how many
        of the queued and of the blocked issues. All are counted."""
        snapshot, details = self.orchestrator.snapshot(), self.live_runs.runs()
        backlog, failure = self.orchestrator.backlog(snapshot, first_kept), self.failures.of
        running = tuple(
            _running(c, details.get(c.run_id), failure(c.issue)) for c in snapshot.worked
        )
        waits, place = snapshot.waiting, self.workspace
        shown = waits if first_waiting is None else nsmallest(first_waiting, waits, _due_at)
        waiting = tuple(_waiting(c, failure(c.issue), place(c.issue.id)) for c in shown)
        held = tuple(_held(c, failure(c.issue), place(c.issue.id)) for c in snapshot.held)
        kept = tuple(_kept(claim, snapshot.policy) for claim in snapshot.kept)
        return StateView(
            generated_at=utc_now(),
            status=snapshot.status,
            workflow=self.workflow(),
            counts=Counts(
                running=len(running),
                waiting=len(waits),
                held=len(held),
                queued=backlog.queued,
                blocked=backlog.blocked,
                unreadable=self.tracker.unreadable_count(),
                kept=len(kept),
            ),
            running=running,
            waiting=waiting,
            held=held,
            slots=slots_view(snapshot),
            totals=self.totals.view(self._elapsed(snapshot)),
            queued=tuple(map(_candidate, backlog.first_queued)),
            blocked=tuple(map(_candidate, backlog.first_blocked)),
            hosts=host_views(snapshot),
            tracker=self.tracker.view(),
            usage_limit=usage_limit_view(snapshot),
            today=today_view(snapshot),
            kept=kept,
        )

    def workspace(self, issue_id: IssueId) -> WorkspaceView | None:
        """Return the directory that an issue was given last, if one is there."""
        known = self.orchestrator.workspaces_of(issue_id)
        return WorkspaceView(host=known[-1].host, path=known[-1].path) if known else None

    def gauges(self) -> Gauges:
        """Return what is read when metrics are asked for."""
        from sortie.telemetry.metrics.gauges import Gauges  # who asks has it already

        snapshot = self.orchestrator.snapshot()
        backlog = self.orchestrator.backlog(snapshot, 0)
        remote = [host for host in snapshot.policy.hosts if host != LOCAL]
        return Gauges(
            sessions_running=len(snapshot.worked),
            sessions_retrying=len(snapshot.waiting),
            issues_held=len(snapshot.held),
            workspaces_kept=sum(len(claim.kept) for claim in snapshot.kept),
            issues_queued=backlog.queued,
            issues_blocked=backlog.blocked,
            slots_available=snapshot.free,
            active_sessions_elapsed_seconds=self._elapsed(snapshot),
            dispatch_paused=snapshot.paused,
            workflow_valid=self.workflow().valid,
            store_writable=self.orchestrator.store_error is None,
            ready=self.health().ready,
            usage_limited=snapshot.limit is not None,
            daily_budget_spent=snapshot.day_spent is not None,
            spent_today=_known(snapshot.spent_today),
            ssh_host_usage={host: snapshot.by_host.get(host, 0) for host in remote},
            ssh_host_up={host: host not in snapshot.troubled for host in remote},
            tracker_budgets={b.name: (b.remaining, b.limit) for b in self.tracker.budgets()},
        )

    def health(self) -> Health:
        """Return whether the daemon does its work."""
        snapshot = self.orchestrator.snapshot()
        faults = (
            self.orchestrator.store_error,
            *self.shortages.shortages,
            *self.shortages.unknown,
            snapshot.skipped,
            snapshot.hindrance,
            snapshot.poll_error,
            self.tracker.resting(),
            None if self.tracker.tracker.is_listing else _endless_poll(snapshot),
            _no_usable_host(snapshot),
            _closed_tracker(snapshot),
            "the daemon is stopping" if snapshot.draining else None,
        )
        overdue = max(0.0, trio.current_time() - self.orchestrator.next_round_at)
        reasons = tuple(dict.fromkeys(fault for fault in faults if fault))
        return Health(
            ready=not reasons,
            reasons=reasons,
            details=(
                *stops(snapshot),
                *host_sentences(snapshot),
                *self.host_isolation(),
                *self.tracker.budget_sentences(),
                *self._transcripts(),
            ),
            overdue=overdue,
        )

    def _transcripts(self) -> tuple[str, ...]:
        error = self.transcripts_error()
        return () if error is None else (f"transcripts cannot be written: {error}",)

    def _elapsed(self, snapshot: Snapshot) -> float:
        return sum(snapshot.now - claim.since for claim in snapshot.worked)


def _endless_poll(snapshot: Snapshot) -> str | None:
    """Say that a poll does not end: a preflight may hang where the workspace root does."""
    since = snapshot.polling_since
    if since is None or snapshot.now - since < POLL_LIMIT:
        return None
    return (
        f"the poll under way has taken {span(snapshot.now - since)}; is the workspace root there?"
    )


def _no_usable_host(snapshot: Snapshot) -> str | None:
    """Say that no host can be used, if so; one that works is enough to be ready."""
    troubles = [snapshot.troubled.get(host) for host in snapshot.policy.hosts]
    messages = [trouble.message for trouble in troubles if trouble is not None]
    if len(messages) < len(troubles) or not messages:
        return None
    return f"every host is in trouble: {'; '.join(dict.fromkeys(messages))}"


def _closed_tracker(snapshot: Snapshot) -> str | None:
    """Say that the tracker takes no changes, where that keeps an issue from being handed off."""
    refusals = (c.refusal for c in snapshot.waiting if isinstance(c, HandingOff) and c.refusal)
    return next(refusals, None)


def _running(claim: Worked, details: RunDetails | None, failure: FailureView | None) -> RunningView:
    issue = claim.issue
    began = wall_time(claim.since)
    spent = details.spent.rounded() if details else NOTHING
    activity = details.activity if details else UNKNOWN
    return RunningView(
        issue_id=issue.id,
        issue_identifier=issue.identifier,
        issue_url=issue.url,
        title=issue.shown_title,
        state=issue.state,
        run_id=claim.run_id,
        session_id=details.session_id if details else None,
        attempt=claim.streak.failures,
        turn=details.turn if details else None,
        max_turns=details.max_turns if details else None,
        phase=details.phase.value if details else "starting",
        host=claim.host,
        workspace=details.workspace if details else None,
        started_at=details.started_at if details else began,
        last_event_at=details.last_event_at if details else began,
        last_message=details.last_message if details else None,
        tool=details.tool if details else None,
        model=activity.model,
        files_modified=activity.files_modified,
        files_omitted=activity.files_omitted,
        tool_uses=activity.tool_uses,
        credits=spent.credits,
        tokens=spent.tokens,
        cost_usd=spent.cost_usd,
        estimated_usd=spent.estimated_usd,
        context_share=details.context_share if details else None,
        last_failure=failure,
    )


def _due_at(claim: Waiting | HandingOff) -> tuple[float, IssueId]:
    return claim.due_at, claim.issue.id


def _waiting(
    claim: Waiting | HandingOff, failure: FailureView | None, workspace: WorkspaceView | None
) -> WaitingView:
    return WaitingView(
        issue_id=claim.issue.id,
        issue_identifier=claim.issue.identifier,
        title=claim.issue.shown_title,
        kind=_kind(claim),
        attempt=claim.tries if isinstance(claim, HandingOff) else claim.streak.failures,
        due_at=wall_time(claim.due_at),
        reason=_reason(claim),
        last_failure=failure,
        workspace=workspace,
    )


def _held(claim: Held, failure: FailureView | None, workspace: WorkspaceView | None) -> HeldView:
    return HeldView(
        issue_id=claim.issue.id,
        issue_identifier=claim.issue.identifier,
        title=claim.issue.shown_title,
        reason=claim.reason.value,
        detail=claim.detail,
        since=wall_time(claim.since),
        last_failure=failure,
        workspace=workspace,
    )


def _kept(claim: Cleaning, policy: Policy) -> KeptView:
    until = wall_time(claim.kept_since + policy.keep_unsaved)
    return KeptView(
        issue_id=claim.issue.id,
        issue_identifier=claim.issue.identifier,
        title=claim.issue.shown_title,
        workspaces=tuple(
            KeptWorkspaceView(host=at.workspace.host, path=at.workspace.path, reason=at.reason)
            for at in claim.kept
        ),
        next_look_at=wall_time(claim.due_at),
        until=until,
    )


def _candidate(kept: Kept) -> CandidateView:
    return CandidateView(
        issue_id=kept.issue.id,
        issue_identifier=kept.issue.identifier,
        title=kept.issue.shown_title,
        state=kept.issue.state,
        reason=kept.reason,
    )


def _kind(claim: Waiting | HandingOff) -> Literal["retry", "continuation", "handoff"]:
    if isinstance(claim, HandingOff):
        return "handoff"
    return "continuation" if claim.kind is WaitKind.CONTINUATION else "retry"


def _reason(claim: Waiting | HandingOff) -> str | None:
    if isinstance(claim, HandingOff):
        if claim.token is not None:
            return "the handoff is under way"
        return claim.refusal or "the handoff failed"
    return claim.reason or f"after {claim.trigger.value}"


def _known(spent: Spending) -> dict[str, float]:
    """Return the amounts that are known, by their unit."""
    amounts = {"tokens": spent.tokens, "credits": spent.credits, "usd": spent.cost_usd}
    return {unit: amount for unit, amount in amounts.items() if amount is not None}
