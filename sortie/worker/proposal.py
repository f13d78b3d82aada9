"""The texts of a delivery: branch, commit message, title and body of the pull request."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import assert_never

from msgspec.structs import replace

from sortie.config.reactions import ReactionsSettings
from sortie.forges import CommitState, CommitStatus, Forge, Proposal
from sortie.model import (
    Delivery,
    Issue,
    LostAnswer,
    PullRequest,
    Stage,
    TemplateError,
    TrackerError,
    TrackerErrorKind,
    VerificationResult,
    cut,
)
from sortie.model.numbers import counted
from sortie.model.reviews import ReviewVerdict, SelfReview
from sortie.model.texts import NOT_ON_A_LINE
from sortie.worker.context import Assignment, RunContext
from sortie.worker.work_record import WorkRecord
from sortie.workflow.prompts import Checkout, Prompt, PromptContext
from sortie.workflow.renderer import render
from sortie.workspaces import Workspace
from sortie.workspaces.git_values import valid_branch

VERIFY_STATUS = "sortie/verify"
"""The name under which a forge is told what was verified."""

TITLE_LIMIT = 200
BODY_LIMIT = 30_000
ANSWER_SHOWN = 6000
FINDINGS_SHOWN = 20
FINDING_SHOWN = 600
_MARKUP = re.compile(r"[\\`*_{}\[\]<>#@|~!&]")


class Words:
    """Renders templates of ``repository`` and ``forge``. Each method raises TemplateError."""

    def __init__(self, job: Assignment, context: RunContext, workspace: Workspace) -> None:
        self._job = job
        self.context = context
        self._workspace = workspace

    async def branch(self) -> str:
        """Return the name of the issue's branch."""
        text = await self._render("repository.branch", self._job.issue)
        try:
            name = valid_branch(text)
        except ValueError as exc:
            raise TemplateError(f"{self.context.workflow}: repository.branch: {exc}") from exc
        if name == text:
            return name
        # Two texts must not become one branch.
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{name}-{digest[:8]}"

    async def message(self, issue: Issue) -> str:
        """Return the message of a commit of what the agent left in none."""
        text = self.context.redact(await self._render("repository.message", issue))
        return f"{text}\n\nSortie-Run: {self._job.run_id}"

    async def title(self, issue: Issue) -> str:
        """Return the title of a pull request."""
        text = self.context.redact(await self._render("forge.title", issue))
        return cut(NOT_ON_A_LINE.sub(" ", text), TITLE_LIMIT)

    async def body(self, issue: Issue, answer: str | None, checkout: Checkout) -> str | None:
        """Return the body that the settings give, None where they give none."""
        if self.context.settings.forge.body is None:
            return None
        return self.context.redact(await self._render("forge.body", issue, answer, checkout))

    async def _render(
        self,
        key: str,
        issue: Issue,
        answer: str | None = None,
        checkout: Checkout | None = None,
    ) -> str:
        section, name = key.split(".")
        source: str = getattr(getattr(self.context.settings, section), name)
        values = PromptContext(
            issue=issue,
            attempt=self._job.attempt,
            turn_number=1,
            max_turns=self.context.settings.agent.max_turns,
            is_continuation=False,
            workspace_path=self._workspace.path,
            host=self._workspace.host,
            checkout=checkout,
            answer=answer,
        )
        return await render(Prompt(source=source, path=self.context.workflow, key=key), values)


async def proposal_of(words: Words, delivery: Delivery, issue: Issue) -> Proposal:
    """Return the pull request as it is to be. Raises TemplateError."""
    answer = delivery.answer
    settings = words.context.settings.forge
    checkout = Checkout(branch=delivery.branch, base=delivery.base, behind=delivery.behind)
    own = await words.body(issue, answer, checkout)
    parts = [own] if own is not None else list(_about(issue, answer))
    watch = watch_lines(words.context.settings.reactions)
    return Proposal(
        branch=delivery.branch,
        base=delivery.base,
        title=await words.title(issue),
        body=cut("\n\n".join([*parts, *evidence_lines(delivery), *watch]), BODY_LIMIT),
        draft=settings.draft,
        labels=settings.labels,
        reviewers=settings.reviewers,
        assignees=settings.assignees,
    )


def _about(issue: Issue, answer: str | None) -> Iterator[str]:
    name = NOT_ON_A_LINE.sub(" ", issue.identifier)
    yield f"For [{name}]({issue.url})" if issue.url else f"For {name}"
    if answer:
        yield "What the agent says of it:"
        yield "\n".join(f"> {line}".rstrip() for line in cut(answer, ANSWER_SHOWN).splitlines())


def watch_lines(settings: ReactionsSettings) -> Iterator[str]:
    """Yield what a pull request may expect of Sortie, for those who look at it, in Markdown."""
    answered = {
        "failing checks": settings.checks,
        "reviews": settings.review,
        "conflicts with its base": settings.conflicts,
        "the comments `/sortie fix TEXT`, `/sortie stop` and `/sortie retry`": settings.commands,
    }
    names = [name for name, block in answered.items() if block is not None]
    if names:
        yield f"Sortie answers {', '.join(names)}."
    if settings.merge is not None:
        people = counted(settings.merge.require.approvals, "approval")
        yield f"Sortie merges it once checks and threads allow, and it has {people}."


def evidence_lines(delivery: Delivery) -> Iterator[str]:
    """Yield what is known of a delivery for the one who reviews it, in Markdown."""
    counts = f"{delivery.files_changed} file{'' if delivery.files_changed == 1 else 's'} changed"
    yield f"{counts}, +{delivery.added} -{delivery.removed} against `{delivery.base}`."
    evidence, review = delivery.evidence, delivery.review
    if evidence is None or not evidence.commands:
        yield "Nothing was verified: `verify.commands` is empty."
    else:
        where = "a clean clone" if evidence.where == "clean" else "the workspace"
        yield f"Verified in {where} of `{evidence.commit[:12]}`:"
        yield "\n".join(
            f"- {_code(' '.join(result.command.split()))}: {result.status}, {result.seconds:.1f} s"
            for result in evidence.commands
        )
    if review is not None and review.commit == delivery.head:
        yield from review_lines(review)


def verified(evidence: VerificationResult) -> CommitStatus:
    """Return what a forge is told of a commit whose commands succeeded."""
    return CommitStatus(
        commit=evidence.commit,
        context=VERIFY_STATUS,
        state=CommitState.SUCCESS,
        sentence=f"{counted(len(evidence.commands), 'command')} succeeded ({evidence.where})",
    )


def review_lines(review: SelfReview) -> Iterator[str]:
    """Yield what another agent said of the work, in Markdown."""
    by = f"{review.agent} ({review.model})" if review.model else review.agent
    where = f"`{review.commit[:12]}` by {_plain(by)}"
    rounds = f" after {counted(review.rounds, 'round')} of changes" if review.rounds else ""
    match review.verdict:
        case ReviewVerdict.APPROVE:
            yield f"Self-review of {where}: approved{rounds}."
        case ReviewVerdict.REQUEST_CHANGES:
            yield f"Self-review of {where}: **changes requested**, and not made{rounds}:"
        case ReviewVerdict.NONE:
            yield f"Self-review of {where}: the review gave no verdict: {_plain(review.reason)}"
        case _:
            assert_never(review.verdict)
    shown = review.findings[:FINDINGS_SHOWN]
    for finding in shown:
        at = f", {_code(finding.place)}" if finding.place else ""
        lines = [f"{finding.severity.value}{at}:", *cut(finding.text, FINDING_SHOWN).splitlines()]
        yield "\n".join(f"> {line}".rstrip() for line in lines)
    if more := len(review.findings) - len(shown) + review.omitted:
        yield f"and {counted(more, 'finding')} more"


def _code(text: str) -> str:
    """Return a text as code in Markdown."""
    return f"`{text.replace('`', chr(39))}`"


def _plain(text: str) -> str:
    """Return a text on one line that is nothing but text in Markdown and HTML."""
    return _MARKUP.sub(r"\\\g<0>", NOT_ON_A_LINE.sub(" ", text))


async def propose(forge: Forge | None, words: Words, work: WorkRecord, issue: Issue) -> None:
    """Open the pull request, or bring it up to date, and tell of the evidence."""
    known, pull_request = work.delivery, None
    if known.stage is Stage.DELIVERED:
        return
    if forge is not None:
        proposal = await proposal_of(words, known, issue)

        async def note_opening() -> None:
            # Whoever finds it after a crash tells the issue of it.
            work.delivery = replace(work.delivery, opened=True)
            await work.record(work.delivery.stage)

        pull_request = await _proposed(forge, proposal, note_opening)
        if known.evidence is not None and known.evidence.commands:
            await forge.set_status(verified(known.evidence))
    work.delivery = replace(work.delivery, pull_request=pull_request)
    await work.record(Stage.DELIVERED)


async def _proposed(
    forge: Forge, proposal: Proposal, before_opening: Callable[[], Awaitable[None]]
) -> PullRequest:
    """Return the one open pull request of a branch, brought up to date or new."""
    for last in (False, True):
        if (found := await forge.find(proposal.branch)) is not None:
            return await forge.update(found, proposal)
        await before_opening()
        try:
            return await forge.open(proposal)
        except TrackerError as exc:
            may_be_there = isinstance(exc, LostAnswer) or exc.kind is TrackerErrorKind.CONFLICT
            if last or not may_be_there:
                raise
    raise AssertionError
