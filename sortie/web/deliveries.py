"""What became of a run's work, as programs and pages show it."""

from __future__ import annotations

from dataclasses import dataclass

from sortie.model import Delivery, PullRequest
from sortie.model.numbers import counted, took
from sortie.model.reviews import ReviewVerdict, SelfReview


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequestView:
    """The pull request of a branch, as it was when the run ended."""

    number: int
    url: str
    state: str
    title: str
    draft: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFileView:
    """A file that differs from the base; a binary one has no lines."""

    path: str
    added: int | None
    removed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandView:
    """A command of ``verify.commands``; ``tail`` is the end of what it printed."""

    command: str
    ok: bool
    status: str
    seconds: float
    tail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceView:
    """What was verified at which commit, in a ``clean`` clone or in the ``workspace``."""

    commit: str
    where: str
    ok: bool
    commands: tuple[CommandView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingView:
    """What a reviewer has found: ``must`` or ``should`` be changed; ``path`` is "" and ``line``
    null where the reviewer did not say."""

    severity: str
    path: str
    line: int | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewView:
    """What a second session said of a commit: ``approve``, ``request_changes``, or ``none`` where
    it gave no verdict, and ``reason`` says why. ``rounds`` is how often the agent was sent back to
    its work before. ``omitted`` counts findings that are not among ``findings``."""

    commit: str
    verdict: str
    agent: str
    model: str | None
    rounds: int
    findings: tuple[FindingView, ...]
    omitted: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryView:
    """How far the work of a run came: ``finished``, ``proven``, ``pushed``, ``delivered``, or
    ``dropped`` where nothing follows by itself. ``behind`` counts commits of the base that the
    branch lacks. ``files`` are the first of ``files_changed``."""

    stage: str
    branch: str
    base: str
    head: str | None
    base_commit: str | None
    commits: int
    behind: int
    files_changed: int
    added: int
    removed: int
    files: tuple[ChangedFileView, ...]
    evidence: EvidenceView | None
    review: ReviewView | None
    pull_request: PullRequestView | None


def delivery_view(delivery: Delivery) -> DeliveryView:
    """Return what a delivery shows."""
    evidence, request = delivery.evidence, delivery.pull_request
    return DeliveryView(
        stage=delivery.stage.value,
        branch=delivery.branch,
        base=delivery.base,
        head=delivery.head,
        base_commit=delivery.base_commit,
        commits=delivery.commits,
        behind=delivery.behind,
        files_changed=delivery.files_changed,
        added=delivery.added,
        removed=delivery.removed,
        files=tuple(
            ChangedFileView(path=file.path, added=file.added, removed=file.removed)
            for file in delivery.files
        ),
        evidence=None
        if evidence is None
        else EvidenceView(
            commit=evidence.commit,
            where=evidence.where,
            ok=evidence.ok,
            commands=tuple(
                CommandView(
                    command=result.command,
                    ok=result.ok,
                    status=result.status,
                    seconds=round(result.seconds, 3),
                    tail=result.tail,
                )
                for result in evidence.commands
            ),
        ),
        review=None if delivery.review is None else _review_view(delivery.review),
        pull_request=None if request is None else _request_view(request),
    )


def _review_view(review: SelfReview) -> ReviewView:
    return ReviewView(
        commit=review.commit,
        verdict=review.verdict.value,
        agent=review.agent,
        model=review.model,
        rounds=review.rounds,
        findings=tuple(
            FindingView(
                severity=finding.severity.value,
                path=finding.path,
                line=finding.line,
                text=finding.text,
            )
            for finding in review.findings
        ),
        omitted=review.omitted,
        reason=review.reason,
    )


def _request_view(request: PullRequest) -> PullRequestView:
    return PullRequestView(
        number=request.number,
        url=request.url,
        state=request.state,
        title=request.title,
        draft=request.draft,
    )


def delivery_lines(view: DeliveryView) -> list[str]:
    """Say on a few lines what became of a run's work, the most telling first."""
    head = f", commit {view.head[:12]}" if view.head else ""
    changed = (
        f"{counted(view.files_changed, 'file')} changed, +{view.added} -{view.removed}"
        f" against {view.base}"
    )
    lines = [f"branch {view.branch}{head}: {changed} ({view.stage})"]
    if view.pull_request is not None:
        draft = ", a draft" if view.pull_request.draft else ""
        lines.append(
            f"pull request {view.pull_request.number} ({view.pull_request.state}{draft}):"
            f" {view.pull_request.url}"
        )
    if view.evidence is not None:
        lines += [
            f"verified: {' '.join(result.command.split())}: {result.status}, {took(result.seconds)}"
            for result in view.evidence.commands
        ]
    if view.review is not None:
        lines += _review_lines(view.review)
    return lines


def _review_lines(review: ReviewView) -> list[str]:
    verdict = ReviewVerdict(review.verdict)
    why = f": {review.reason}" if review.reason else ""
    by = f"{review.agent} ({review.model})" if review.model else review.agent
    lines = [f"review of {review.commit[:12]} by {by}: {verdict.words}{why}"]
    for finding in review.findings:
        at = f", {finding.path}" if finding.path else ""
        at += f":{finding.line}" if finding.path and finding.line else ""
        lines.append(f"finding: {finding.severity}{at}: {' '.join(finding.text.split())}")
    if review.omitted:
        lines.append(f"finding: and {review.omitted} more")
    return lines
