"""What became of a run's work, as programs and pages show it."""

from __future__ import annotations

from dataclasses import dataclass

from sortie.model import Delivery, PullRequest
from sortie.model.numbers import counted, took


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
        pull_request=None if request is None else _request_view(request),
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
    return lines
