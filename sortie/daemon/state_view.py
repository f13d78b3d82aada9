"""The views that the API and the dashboard show, made from the scheduler's snapshot; pure."""

from __future__ import annotations

from typing import Literal

from sortie.daemon.wall_time import wall_time
from sortie.model import LOCAL, NOTHING, UNKNOWN, IssueId, WaitKind, cut
from sortie.model.numbers import span
from sortie.scheduler import Explanation, Policy, Snapshot
from sortie.scheduler.claims import Cleaning, HandingOff, Held, Waiting, Worked
from sortie.scheduler.snapshot import BacklogIssue
from sortie.telemetry.live_runs import RunDetails
from sortie.web.issue import (
    BudgetView,
    CandidateView,
    ExplanationView,
    FailureView,
    GateAnswer,
    HeldView,
    KeptView,
    KeptWorkspaceView,
    RunningView,
    WaitingView,
    WorkspaceView,
)
from sortie.web.state import HostView, SlotsView, TodayView, UsageLimitView

POLL_LIMIT = 120.0
"""Seconds after which a poll that does not wait for the tracker is taken to hang."""

_LABELS, _LABEL_LIMIT = 50, 100
"""How many labels of an issue are shown, and characters of each."""


def running_view(
    claim: Worked, details: RunDetails | None, failure: FailureView | None
) -> RunningView:
    """Return a run under way, with what is known of its process."""
    issue = claim.issue
    began = wall_time(claim.since)
    spent = details.spent.rounded() if details else NOTHING
    activity = details.activity if details else UNKNOWN
    delivery = details.delivery if details else None
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
        branch=delivery.branch if delivery else None,
        delivery=delivery.stage.value if delivery else None,
        pull_request=delivery.pull_request if delivery else None,
        credits=spent.credits,
        tokens=spent.tokens,
        cost_usd=spent.cost_usd,
        estimated_usd=spent.estimated_usd,
        context_share=details.context_share if details else None,
        last_failure=failure,
    )


def due_at(claim: Waiting | HandingOff) -> tuple[float, IssueId]:
    """Return what waits are ordered by."""
    return claim.due_at, claim.issue.id


def waiting_view(
    claim: Waiting | HandingOff, failure: FailureView | None, workspace: WorkspaceView | None
) -> WaitingView:
    """Return an issue that waits for its next run or its handoff."""
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


def held_view(
    claim: Held, failure: FailureView | None, workspace: WorkspaceView | None
) -> HeldView:
    """Return a held issue."""
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


def kept_view(claim: Cleaning, policy: Policy) -> KeptView:
    """Return a finished issue whose workspaces are kept."""
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


def candidate_view(kept: BacklogIssue) -> CandidateView:
    """Return an issue that is queued or blocked."""
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


def explanation_view(
    found: Explanation,
    failure: FailureView | None,
    budgets: tuple[BudgetView, ...],
    workspace: WorkspaceView | None,
) -> ExplanationView:
    """Return the explanation of an issue."""
    issue = found.issue
    return ExplanationView(
        issue_id=issue.id,
        issue_identifier=issue.identifier,
        title=issue.shown_title,
        state=issue.state,
        standing=found.standing.value,
        detail=found.detail,
        since=None if found.since is None else wall_time(found.since),
        run_id=found.run_id,
        turn=found.turn,
        attempt=found.attempt,
        gates=tuple(
            GateAnswer(gate=v.gate, open=v.reason is None, reason=v.reason) for v in found.gates
        ),
        next_run_at=None if found.next_at is None else wall_time(found.next_at),
        next_step=found.next_step,
        ways_out=found.ways_out,
        last_failure=failure,
        budgets=budgets,
        issue_url=issue.url,
        labels=tuple(cut(label, _LABEL_LIMIT) for label in issue.labels[:_LABELS]),
        description=issue.shown_description,
        workspace=workspace,
    )


def host_views(snapshot: Snapshot) -> tuple[HostView, ...]:
    """Return the remote hosts, with their troubles."""
    return tuple(_host(host, snapshot) for host in snapshot.policy.hosts if host != LOCAL)


def _host(host: str, snapshot: Snapshot) -> HostView:
    trouble, policy = snapshot.troubled.get(host), snapshot.policy
    most = policy.max_concurrent_agents if policy.max_per_host is None else policy.max_per_host
    return HostView(
        host=host,
        up=trouble is None,
        used=snapshot.by_host.get(host, 0),
        slots=most,
        since=None if trouble is None else wall_time(trouble.since),
        rests_until=None if trouble is None else wall_time(trouble.until),
        reason=None if trouble is None else trouble.message,
    )


def host_sentences(snapshot: Snapshot) -> tuple[str, ...]:
    """Return a sentence for each host in trouble: with its trouble."""
    return tuple(
        f"host {host} {'rests' if trouble.backing_off else 'is tried again'}: {trouble.message}"
        for host, trouble in snapshot.troubled.items()
    )


def slots_view(snapshot: Snapshot) -> SlotsView:
    """Return what room there is for runs."""
    policy = snapshot.policy
    by_state = {
        state: max(0, limit - snapshot.by_state.get(state, 0))
        for state, limit in policy.max_by_state.items()
    }
    by_host: dict[str, int] = {}
    if policy.max_per_host is not None:
        by_host = {host: snapshot.free_on(host) for host in policy.hosts}
    return SlotsView(
        total=policy.max_concurrent_agents,
        free=snapshot.free,
        by_state=by_state,
        by_host=by_host,
    )


def usage_limit_view(snapshot: Snapshot) -> UsageLimitView | None:
    """Return the usage limit of the agent's account, None where none is known."""
    limit = snapshot.limit
    if limit is None:
        return None
    return UsageLimitView(
        agent=limit.agent,
        message=limit.message,
        since=wall_time(limit.since),
        until=limit.resets_at or wall_time(limit.until),
        resets_at=limit.resets_at,
        reason=limit.sentence,
    )


def today_view(snapshot: Snapshot) -> TodayView:
    """Return what was used today, and what may be."""
    spent, allowed = snapshot.spent_today.rounded(), snapshot.policy.per_day
    return TodayView(
        day=snapshot.day,
        timezone=snapshot.policy.zone,
        tokens=spent.tokens,
        credits=spent.credits,
        cost_usd=spent.cost_usd,
        estimated_usd=spent.estimated_usd,
        daily_credits=allowed.credits or None,
        daily_cost_usd=allowed.cost_usd or None,
        exhausted=snapshot.day_spent,
    )


def stop_sentences(snapshot: Snapshot) -> tuple[str, ...]:
    """Say what keeps runs from being started and is no fault."""
    limit = None if snapshot.limit is None else snapshot.limit.sentence
    return tuple(reason for reason in (limit, snapshot.day_spent) if reason is not None)


def endless_poll(snapshot: Snapshot) -> str | None:
    """Say that a poll does not end: a preflight may hang where the workspace root does."""
    since = snapshot.polling_since
    if since is None or snapshot.now - since < POLL_LIMIT:
        return None
    return (
        f"the poll under way has taken {span(snapshot.now - since)}; is the workspace root there?"
    )


def no_usable_host(snapshot: Snapshot) -> str | None:
    """Say that no host can be used, if so; one that works is enough to be ready."""
    troubles = [snapshot.troubled.get(host) for host in snapshot.policy.hosts]
    messages = [trouble.message for trouble in troubles if trouble is not None]
    if len(messages) < len(troubles) or not messages:
        return None
    return f"every host is in trouble: {'; '.join(dict.fromkeys(messages))}"


def closed_tracker(snapshot: Snapshot) -> str | None:
    """Say that the tracker takes no changes, where that keeps an issue from being handed off."""
    refusals = (c.refusal for c in snapshot.waiting if isinstance(c, HandingOff) and c.refusal)
    return next(refusals, None)


def elapsed(snapshot: Snapshot) -> float:
    """Return for how many seconds the runs under way have taken together."""
    return sum(snapshot.now - claim.since for claim in snapshot.worked)
