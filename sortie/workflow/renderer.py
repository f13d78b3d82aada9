"""Render a prompt in a thread, for so long and to so much and no more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from types import TracebackType
from typing import ClassVar

import trio
from jinja2 import Template
from jinja2.exceptions import TemplateError as JinjaError
from jinja2.exceptions import TemplateSyntaxError

from sortie.model import TemplateError
from sortie.model.texts import UNUSABLE
from sortie.resources import patiently, run_in_thread, shortage_behind
from sortie.resources.alarm import Alarm
from sortie.workflow.compiler import CRASHES, compile_prompt
from sortie.workflow.fences import Fence
from sortie.workflow.prompts import CONTINUATION_PROMPT, Prompt, PromptContext
from sortie.workflow.render_budget import RENDER_SECONDS, TOO_LONG, TOO_MUCH, Exhausted
from sortie.workflow.sandbox import PromptEnvironment
from sortie.workflow.value_sizes import PROMPT_LIMIT
from sortie.workflow.variables import variables_of

# A template's own mistakes raise what its Python would: 1 / 0, none + 1, a missing key.
_MISTAKES = (
    JinjaError,
    Exhausted,
    *CRASHES,
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
)

_RUNNING: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("prompt renderings")
"""Renderings under way, abandoned ones included: eight that hang are a broken template, and more of
them would only take the processor from the daemon."""

_SLACK = 0.25
"""Seconds that a rendering gets to say itself that its time is over."""

_ALARM = Alarm()


async def render(
    prompt: Prompt,
    context: PromptContext,
    seconds: float = RENDER_SECONDS,
    fence: Fence | None = None,
) -> str:
    """Return the prompt of a turn. Raises TemplateError with the line of the file, and Shortage.

    An empty result of a continuation turn becomes the built-in continuation prompt. What no
    process can be handed (NUL, lone surrogates) is replaced by U+FFFD. Texts that are marked as
    those of strangers stand in the ``fence``.
    """
    text = await patiently(lambda: _in_time(prompt, context, seconds, fence))
    if text.strip():
        return UNUSABLE.sub("\ufffd", text)
    if context.is_continuation:
        return CONTINUATION_PROMPT
    raise TemplateError(
        f"{prompt.path}:{prompt.line}: {prompt.key}: came out empty for the first turn"
    )


async def _in_time(
    prompt: Prompt, context: PromptContext, seconds: float, fence: Fence | None
) -> str:
    """Render in a thread, which is left alone once its time on the real clock is over."""
    work = partial(_work, prompt, context, fence)
    rendering = _Rendering(work, seconds)
    with _ALARM.set(rendering.is_late_at):
        return await run_in_thread(rendering.run, abandon_on_cancel=True, limiter=_limiter())
    raise TemplateError(f"{prompt.path}:{prompt.line}: {prompt.key}: {TOO_LONG}")


class _Rendering:
    """A rendering whose time begins when its thread does.

    Until then it waits as long as others come to an end, of which there may be a thousand.
    """

    last_ended_at: ClassVar[float] = 0.0

    def __init__(self, work: Callable[[float], str], seconds: float) -> None:
        self._work = work
        self._seconds = seconds
        self._asked_at = time.monotonic()
        self._begun_at: float | None = None

    def is_late_at(self) -> float:
        """Return when it is given up, as it stands."""
        since = self._begun_at or max(self._asked_at, _Rendering.last_ended_at)
        return since + self._seconds + _SLACK

    def run(self) -> str:
        """Do the work, which is given its deadline."""
        self._begun_at = time.monotonic()
        try:
            return self._work(self._begun_at + self._seconds)
        finally:
            _Rendering.last_ended_at = time.monotonic()


def _limiter() -> trio.CapacityLimiter:
    try:
        return _RUNNING.get()
    except LookupError:
        limiter = trio.CapacityLimiter(8)
        _RUNNING.set(limiter)
        return limiter


def _work(prompt: Prompt, context: PromptContext, fence: Fence | None, deadline: float) -> str:
    try:
        return _rendered(prompt, context, fence, deadline)
    except _MISTAKES as exc:
        shortage = shortage_behind(exc)
        if shortage is not None:
            raise shortage from exc
        at, line = _place_of(exc, prompt)
        raise TemplateError(f"{at.path}:{at.line + line - 1}: {at.key}: {_reason(exc)}") from exc
    except Exception as exc:  # the edge: whatever a template makes Jinja do is the template's fault
        raise TemplateError(f"{prompt.path}: {prompt.key}: the rendering crashed") from exc


def _rendered(prompt: Prompt, context: PromptContext, fence: Fence | None, deadline: float) -> str:
    environment = PromptEnvironment(deadline, dict(prompt.parts))
    if fence is not None:
        environment.fence_with(fence)
    template = Template.from_code(environment, compile_prompt(prompt), environment.globals)
    pieces, size = [], 0
    for piece in template.generate(variables_of(context)):
        size += len(piece.encode("utf-8", "surrogatepass"))
        if size > PROMPT_LIMIT:
            raise Exhausted(TOO_MUCH)
        environment.budget.check_time()
        pieces.append(piece)
    return "".join(pieces).strip()


def _reason(exc: BaseException) -> str:
    match exc:
        case RecursionError():
            return "calls itself too deeply"
        case JinjaError() | Exhausted():
            return str(exc.message if isinstance(exc, TemplateSyntaxError) else exc)
    return f"{type(exc).__name__}: {exc}"


def _place_of(exc: BaseException, prompt: Prompt) -> tuple[Prompt, int]:
    """Return the template and its line that an error comes from; its first line where that is not
    known."""
    known = {part.name: part for _, part in prompt.parts} | {prompt.name: prompt}
    if isinstance(exc, TemplateSyntaxError):
        return known.get(exc.filename or "", prompt), exc.lineno
    for frame in reversed(list(_frames(exc))):
        found = known.get(frame.tb_frame.f_code.co_filename)
        if found is not None:
            return found, frame.tb_lineno
    return prompt, 1


def _frames(exc: BaseException) -> Iterator[TracebackType]:
    frame = exc.__traceback__
    while frame is not None:
        yield frame
        frame = frame.tb_next
