"""The prompt of a turn as a whole: the template, and what Sortie says around it."""

from __future__ import annotations

from msgspec.structs import replace

from sortie.model.outside import OutsideText, cleaned
from sortie.workflow.fences import (
    Fence,
    outside_issue,
    outside_material,
    with_what_is_left_out,
    without_words,
)
from sortie.workflow.prompts import (
    Prompt,
    PromptContext,
    with_answer,
    with_reaction,
    with_stage,
    with_standing,
    with_status_instructions,
)
from sortie.workflow.renderer import render

_OF_STAGE = "the stage before"


async def compose(
    prompt: Prompt, context: PromptContext, fence: Fence | None, *, status_instructions: bool
) -> str:
    """Return the prompt of a turn. Raises TemplateError."""
    if context.told is not None and context.told.remembered:
        text = context.told.text
    else:
        text = await _whole(prompt, context, fence)
    if status_instructions:
        text = with_status_instructions(text, context)
    return text if fence is None else fence.with_head(text)


async def _whole(prompt: Prompt, context: PromptContext, fence: Fence | None) -> str:
    text = await fenced(prompt, context, fence)
    text = with_standing(text, context)
    text = with_stage(text, prompt, _with_fenced_result(context, fence))
    text = with_reaction(text, prompt, context)
    text = with_answer(text, context)
    return with_what_is_left_out(text, prompt.template, context.issue)


async def fenced(prompt: Prompt, context: PromptContext, fence: Fence | None) -> str:
    """Render a template with texts of strangers in a fence. Raises TemplateError."""
    issue, review = without_words(context.issue), context.review
    previous = context.previous
    if fence is not None:
        issue = outside_issue(issue)
        if previous is not None and previous.result:
            result = OutsideText(cleaned(previous.result), _OF_STAGE)
            previous = replace(previous, result=result)
        review = None if review is None else outside_material(review)
    shown = replace(context, issue=issue, review=review, previous=previous)
    return await render(prompt, shown, fence=fence)


def _with_fenced_result(context: PromptContext, fence: Fence | None) -> PromptContext:
    """Return a context in which what the stage before has left stands in the fence."""
    previous = context.previous
    if fence is None or previous is None or not previous.result:
        return context
    result = fence.around(previous.result, _OF_STAGE)
    return replace(context, previous=replace(previous, result=result))
