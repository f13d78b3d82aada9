"""A second session judges the work of a run before it is pushed.

Rule 1: it is a fresh conversation in a clone of the commit, which is thrown away; whatever it does
there, the commit that is delivered is the one that was judged.
Rule 2: what is no verdict in its form is never told as an approval.
Rule 3: what it uses is the run's; what it says is marked as its own.
"""

from __future__ import annotations

import os

import trio
from msgspec.structs import replace

from sortie.config.self_review import SelfReviewSettings
from sortie.facts import Phase
from sortie.model import (
    Delivery,
    GitError,
    Issue,
    ProgramNotFound,
    TransportError,
    cut,
)
from sortie.model.numbers import seconds_text
from sortie.model.reviews import ReviewVerdict, SelfReview
from sortie.model.texts import NOT_ON_A_LINE
from sortie.telemetry import facts
from sortie.worker.agent_files import base_in_place
from sortie.worker.context import (
    RemoteRepository,
    ReviewerAgent,
    RunContext,
)
from sortie.worker.environment import RunEnvironment
from sortie.worker.outcome import Abandoned
from sortie.worker.review_answers import AnsweredVerdict
from sortie.worker.review_conversation import TURNS, ReviewConversation, ReviewTools, is_of_machine
from sortie.worker.session import SessionLifetime
from sortie.worker.wall import within_wall_of_clone
from sortie.workflow.composing import fenced
from sortie.workflow.fences import Fence
from sortie.workflow.prompts import Checkout, Prompt, PromptContext
from sortie.workflow.review_prompt import (
    ANSWER_FORM,
    REVIEW_PROMPT,
    ReviewMaterial,
    cut_diff,
)
from sortie.workspaces import Workspace

REASON_SHOWN = 500


class SelfReviewer:
    """Judges the commits of one run by ``settings``."""

    def __init__(
        self,
        tools: ReviewTools,
        remote: RemoteRepository,
        agent: ReviewerAgent,
        settings: SelfReviewSettings,
    ) -> None:
        self._tools = tools
        self._remote = remote
        self._agent = agent
        self._settings = settings

    async def review(
        self, workspace: Workspace, delivery: Delivery, issue: Issue, rounds: int
    ) -> SelfReview:
        """Judge the commit of a delivery; ``rounds`` is how often the agent was sent back.

        Raises what git and templates raise, and Abandoned where the host is lost.
        """
        tools, began, head = self._tools, trio.current_time(), delivery.head
        assert head is not None
        tools.reporter.enter(tools.job.run_id, Phase.REVIEW)
        repository = self._remote.at(os.path.dirname(workspace.path))
        env = RunEnvironment(tools.job, tools.context, workspace).for_git()
        try:
            access = await self._remote.access()
            path = repository.clean_path(workspace.key, "review")
            lacking = await repository.clean_clone(workspace.key, head, access, env, "review")
            if lacking is not None:
                raise GitError(f"{lacking.command} failed: {lacking.said}")
            clone = Workspace(path=path, key=workspace.key, created=True, host=workspace.host)
            limit = self._settings.max_diff_bytes
            diff = await repository.diff(head, env, limit + 1)
            prompt = await self._prompt(clone, delivery, issue, *cut_diff(diff, limit))
            base = base_in_place(
                tools.job, tools.context, tools.reporter, clone, repository, tools.scopes
            )
            wall = within_wall_of_clone(tools.job.run_id, tools.context, path)
            async with base, wall:
                told = await self._told(clone, prompt)
        finally:
            with trio.CancelScope(shield=True):
                await repository.remove_clean_clone(workspace.key, "review")
        if (await repository.changes(head, env)).tree != delivery.tree:
            raise GitError(f"commit {head} is not what it was before its review")
        review = _review_of(told, self._agent, head, rounds)
        tools.reporter.enter(tools.job.run_id, Phase.DELIVERY)
        tools.reporter.publish(
            facts.ReviewFinished(
                run_id=tools.job.run_id,
                verdict=review.verdict,
                commit=head,
                agent=review.agent,
                model=review.model,
                round=rounds + 1,
                findings=len(review.findings) + review.omitted,
                seconds=trio.current_time() - began,
                reason=review.reason,
            )
        )
        return review

    async def _prompt(
        self, clone: Workspace, delivery: Delivery, issue: Issue, diff: str, is_cut: bool
    ) -> str:
        context, known = self._tools.context, delivery.review
        material = ReviewMaterial(
            commit=delivery.head or "",
            diff=context.redact(diff),
            is_cut=is_cut,
            files=delivery.files,
            files_changed=delivery.files_changed,
            findings=() if known is None else known.findings,
        )
        values = PromptContext(
            issue=issue,
            attempt=self._tools.job.attempt,
            turn_number=1,
            max_turns=TURNS,
            is_continuation=False,
            workspace_path=clone.path,
            host=clone.host,
            checkout=Checkout(branch=delivery.branch, base=delivery.base, behind=delivery.behind),
            review=material,
        )
        source = self._settings.prompt or REVIEW_PROMPT
        template = Prompt(source=source, path=context.workflow, key="self_review.prompt")
        fence = Fence() if self._tools.context.settings.trust.fences else None
        text = f"{await fenced(template, values, fence)}\n\n{ANSWER_FORM}"
        return text if fence is None else fence.with_head(text)

    async def _told(self, clone: Workspace, prompt: str) -> AnsweredVerdict | str:
        """Return the verdict, or why there is none. Raises Abandoned where the host is lost."""
        tools = self._tools
        context = _context_of(tools.context, self._agent)
        conversation = ReviewConversation(tools, context, clone.path, prompt)
        job = replace(tools.job, resume=None)
        lifetime = SessionLifetime(job, context, conversation.reporter, tools.scopes)
        env = RunEnvironment(job, context, clone).for_reviewer()
        with trio.move_on_after(self._settings.timeout) as limit, tools.usage.other_session():
            try:
                await lifetime.run(clone, env, conversation.held)
            except Abandoned as exc:
                if _is_of_host(exc):
                    raise
                return f"there is no session: {exc}"
        if limit.cancelled_caught and isinstance(conversation.told, str):
            return (
                "it took longer than self_review.timeout_ms"
                f" ({seconds_text(self._settings.timeout)})"
            )
        return conversation.told


def _context_of(context: RunContext, reviewer: ReviewerAgent) -> RunContext:
    """Return the tools of the second session."""
    settings = context.settings
    agent = settings.agent.model_copy(update={"kind": reviewer.kind, "max_turns": TURNS})
    return replace(
        context,
        settings=settings.model_copy(update={"agent": agent}),
        agent=reviewer.agent,
        handed_over=reviewer.handed_over,
        resumes=False,
    )


def _is_of_host(error: Abandoned) -> bool:
    """Tell whether no session was had, or a session was lost, for want of the machine."""
    cause = error.__cause__
    if cause is None:
        return False
    left = isinstance(cause, TransportError) and not isinstance(cause, ProgramNotFound)
    return left or is_of_machine(cause)


def _review_of(
    told: AnsweredVerdict | str, reviewer: ReviewerAgent, commit: str, rounds: int
) -> SelfReview:
    review = SelfReview(
        commit=commit,
        verdict=ReviewVerdict.NONE,
        agent=reviewer.kind,
        model=reviewer.model,
        rounds=rounds,
    )
    if isinstance(told, str):
        line = " ".join(NOT_ON_A_LINE.sub(" ", told).split())
        return replace(review, reason=cut(line, REASON_SHOWN))
    return replace(review, verdict=told.verdict, findings=told.findings, omitted=told.omitted)


def reviewer_of(tools: ReviewTools, remote: RemoteRepository) -> SelfReviewer | None:
    """Return what judges the work of a run, None where the settings want no review."""
    judge, wanted = tools.context.reviewer, tools.context.settings.self_review
    if judge is None or wanted is None:
        return None
    return SelfReviewer(tools, remote, judge, wanted)
