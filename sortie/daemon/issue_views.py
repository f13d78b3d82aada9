"""The views of issues, as the API and the dashboard show them, made from claims; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from sortie.daemon.wall_time import wall_time
from sortie.daemon.watch_views import gate_answers, watch_view
from sortie.model import NOTHING, UNKNOWN, HoldReason, IssueId, WaitKind, cut
from sortie.model.asked_questions import AskedQuestion
from sortie.scheduler import Explanation, Policy
from sortie.scheduler.claims import Cleaning, HandingOff, Held, Waiting, Worked
from sortie.scheduler.snapshot import BacklogIssue
from sortie.telemetry.live_runs import RunDetails
from sortie.web.issue import (
    BudgetView,
    CandidateView,
    ExplanationView,
    FailureView,
    HeldView,
    KeptView,
    KeptWorkspaceView,
    QuestionView,
    RunningView,
    WaitingView,
    WorkspaceView,
)

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
        rule=claim.rule or None,
        turn=details.turn if details else None,
        max_turns=details.max_turns if details else None,
        phase=details.phase.value if details else "starting",
        host=claim.host,
        workspace=details.workspace if details else None,
        started_at=details.started_at if details else began,
        last_event_at=details.last_event_at if details else began,
        last_message=details.last_message if details else None,
        note=details.note if details else None,
        tool=details.tool if details else None,
        model=activity.model,
        files_modified=activity.files_modified,
        files_omitted=activity.files_omitted,
        tool_uses=activity.tool_uses,
        branch=delivery.branch if delivery else None,
        delivery=delivery.stage.value if delivery else None,
        pull_request=delivery.pull_request if delivery else None,
        reaction=details.reaction if details else (),
        image=details.image if details else None,
        image_digest=details.image_digest if details else None,
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
    claim: Waiting | HandingOff,
    failure: FailureView | None,
    workspace: WorkspaceView | None,
    rule: str | None,
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
        rule=rule,
    )


def held_view(
    claim: Held,
    failure: FailureView | None,
    workspace: WorkspaceView | None,
    rule: str | None,
    questions: Mapping[IssueId, AskedQuestion],
) -> HeldView:
    """Return a held issue; ``questions`` are the newest of issues."""
    return HeldView(
        issue_id=claim.issue.id,
        issue_identifier=claim.issue.identifier,
        title=claim.issue.shown_title,
        reason=claim.reason.value,
        detail=claim.detail,
        since=wall_time(claim.since),
        last_failure=failure,
        workspace=workspace,
        rule=rule,
        question=question_view(claim, questions.get(claim.issue.id)),
    )


def question_view(claim: Held, asked: AskedQuestion | None) -> QuestionView | None:
    """Return the question for which an issue is held, None where it is held for something else."""
    if asked is None or not asked.is_open or claim.reason is not HoldReason.QUESTION:
        return None
    question = asked.question
    return QuestionView(
        id=asked.run_id,
        text=question.text,
        options=question.options,
        default=question.default,
        asked_at=wall_time(claim.since),
        deadline=None if claim.due_at is None else wall_time(claim.due_at),
        wants_option=question.permission is not None,
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


def candidate_view(kept: BacklogIssue, rule: str | None) -> CandidateView:
    """Return an issue that is queued or blocked."""
    return CandidateView(
        issue_id=kept.issue.id,
        issue_identifier=kept.issue.identifier,
        title=kept.issue.shown_title,
        state=kept.issue.state,
        reason=kept.reason,
        rule=rule,
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
        gates=gate_answers(found.gates),
        next_run_at=None if found.next_at is None else wall_time(found.next_at),
        next_step=found.next_step,
        ways_out=found.ways_out,
        last_failure=failure,
        budgets=budgets,
        issue_url=issue.url,
        labels=tuple(cut(label, _LABEL_LIMIT) for label in issue.labels[:_LABELS]),
        description=issue.shown_description,
        workspace=workspace,
        watch=None if found.watch is None else watch_view(found.watch),
        rule=found.rule or None,
        passed_over=found.passed_over,
        question=None if found.held is None else question_view(found.held, found.question),
    )
