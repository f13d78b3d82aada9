"""The prompt of a turn."""

from __future__ import annotations

from sortie.model import Issue
from sortie.worker.answer import told_answer
from sortie.worker.context import Assignment, RunContext
from sortie.worker.reaction import happened
from sortie.workflow.composing import compose
from sortie.workflow.fences import Fence
from sortie.workflow.prompts import Checkout, Happened, PromptContext, ToldAnswer
from sortie.workspaces import Workspace


async def prompt_for(
    job: Assignment,
    issue: Issue,
    context: RunContext,
    workspace: Workspace,
    turn: int,
    checkout: Checkout | None = None,
    happened: Happened | None = None,
    fence: Fence | None = None,
    told: ToldAnswer | None = None,
) -> str:
    """Render the template for a turn. Raises TemplateError."""
    settings = context.settings.agent
    values = PromptContext(
        issue=issue,
        attempt=job.attempt,
        turn_number=turn,
        max_turns=settings.max_turns,
        is_continuation=turn > 1,
        workspace_path=workspace.path,
        host=workspace.host,
        checkout=checkout,
        happened=happened,
        stage=context.settings.rule,
        previous=job.previous,
        told=told,
    )
    return await compose(
        context.prompt, values, fence, status_instructions=settings.status_instructions
    )


async def turn_prompt(
    job: Assignment,
    issue: Issue,
    context: RunContext,
    workspace: Workspace,
    number: int,
    checkout: Checkout | None,
    *,
    remembered: bool,
) -> str:
    """Return the prompt of a turn, the first with what has happened and was answered; the session
    has the question where it is ``remembered``. Raises TemplateError."""
    fence = Fence() if context.settings.trust.fences else None
    news = told = None
    if number == 1:
        news = await happened(job, context, workspace, fence)
        told = told_answer(job.answered, fence, remembered=remembered)
    return await prompt_for(job, issue, context, workspace, number, checkout, news, fence, told)
