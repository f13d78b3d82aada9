"""Render a prompt in a thread of its own, for so long and to so much and no more."""

from __future__ import annotations

import threading
import time
from _thread import start_new_thread
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType

import trio
from jinja2 import Template
from jinja2.exceptions import TemplateError as JinjaError
from jinja2.exceptions import TemplateSyntaxError

from sortie.model import TemplateError
from sortie.model.texts import UNUSABLE
from sortie.resources import Shortage, patiently, run_in_thread, shortage_behind
from sortie.workflow.compiler import CRASHES, compile_prompt
from sortie.workflow.prompts import CONTINUATION_PROMPT, Prompt, PromptContext, variables_of
from sortie.workflow.sandbox import (
    RENDER_SECONDS,
    TEXT_LIMIT,
    TOO_LONG,
    TOO_MUCH,
    Exhausted,
    PromptEnvironment,
)

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

# Renderings under way, abandoned ones included: eight that hang are a broken template, and more
# of them would only take the processor from the daemon.
_RUNNING = threading.BoundedSemaphore(8)

# One more waits for each: they are never more than this, and each ends in time.
_WAITING: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("prompt renderings")


async def render(prompt: Prompt, context: PromptContext, seconds: float = RENDER_SECONDS) -> str:
    """Return the prompt of a turn. Raises TemplateError with the line of the file, and Shortage.

    An empty result of a continuation turn becomes the built-in continuation prompt. What no
    process can be handed (NUL, lone surrogates) is replaced by U+FFFD.
    """
    try:
        limiter = _WAITING.get()
    except LookupError:
        limiter = trio.CapacityLimiter(8)
        _WAITING.set(limiter)
    bounded = partial(_bounded, prompt, context, seconds)
    text = await patiently(lambda: run_in_thread(bounded, abandon_on_cancel=True, limiter=limiter))
    if text.strip():
        return UNUSABLE.sub("\ufffd", text)
    if context.is_continuation:
        return CONTINUATION_PROMPT
    raise TemplateError(f"{prompt.path}:{prompt.line}: prompt: came out empty for the first turn")


@dataclass(slots=True)
class _Outcome:
    """What a rendering leaves behind when ``done``; nothing where it crashed.

    Who takes ``begun`` gives the rendering's slot back: the thread, or who waited for it in vain.
    """

    begun: threading.Lock = field(default_factory=threading.Lock)
    done: threading.Event = field(default_factory=threading.Event)
    text: str | None = None
    error: TemplateError | None = None
    shortage: Shortage | None = None


def _bounded(prompt: Prompt, context: PromptContext, seconds: float) -> str:
    """Render in a daemon thread and wait on the real clock, which a test's may not follow."""
    deadline = time.monotonic() + seconds
    too_long = TemplateError(f"{prompt.path}:{prompt.line}: prompt: {TOO_LONG}")
    if not _RUNNING.acquire(timeout=seconds):
        raise too_long
    outcome = _Outcome()
    started = False
    try:
        # Not threading.Thread: its start waits for ever for a thread that memory ran out for.
        start_new_thread(_work, (prompt, context, deadline, outcome))
        started = True
    finally:
        if not started:
            _RUNNING.release()
    # The rendering ends itself at the deadline where it can; give it time to say so.
    if not outcome.done.wait(max(0.0, deadline - time.monotonic()) + 0.25):
        if outcome.begun.acquire(blocking=False):
            _RUNNING.release()
            raise MemoryError("the thread of a rendering did not begin")
        raise too_long
    if outcome.shortage is not None:
        raise outcome.shortage
    if outcome.text is None:
        raise outcome.error or TemplateError(f"{prompt.path}: prompt: the rendering crashed")
    return outcome.text


def _work(prompt: Prompt, context: PromptContext, deadline: float, outcome: _Outcome) -> None:
    if not outcome.begun.acquire(blocking=False):
        return  # nobody waits any more
    try:
        outcome.text = _rendered(prompt, context, deadline)
    except _MISTAKES as exc:
        outcome.shortage = shortage_behind(exc)
        line = prompt.line + _line_of(exc, prompt) - 1
        outcome.error = TemplateError(f"{prompt.path}:{line}: prompt: {_reason(exc)}")
    finally:
        _RUNNING.release()
        outcome.done.set()


def _rendered(prompt: Prompt, context: PromptContext, deadline: float) -> str:
    environment = PromptEnvironment(deadline)
    template = Template.from_code(environment, compile_prompt(prompt), environment.globals)
    pieces, size = [], 0
    for piece in template.generate(variables_of(context)):
        size += len(piece.encode("utf-8", "surrogatepass"))
        if size > TEXT_LIMIT:
            raise Exhausted(TOO_MUCH)
        environment.check_time()
        pieces.append(piece)
    return "".join(pieces).strip()


def _reason(exc: BaseException) -> str:
    match exc:
        case RecursionError():
            return "calls itself too deeply"
        case JinjaError() | Exhausted():
            return str(exc.message if isinstance(exc, TemplateSyntaxError) else exc)
    return f"{type(exc).__name__}: {exc}"


def _line_of(exc: BaseException, prompt: Prompt) -> int:
    """Return the template's line that an error comes from, the first where that is unknown."""
    if isinstance(exc, TemplateSyntaxError):
        return exc.lineno
    lines = [tb.tb_lineno for tb in _frames(exc) if tb.tb_frame.f_code.co_filename == prompt.path]
    return lines[-1] if lines else 1


def _frames(exc: BaseException) -> Iterator[TracebackType]:
    frame = exc.__traceback__
    while frame is not None:
        yield frame
        frame = frame.tb_next
