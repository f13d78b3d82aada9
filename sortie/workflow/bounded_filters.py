"""Jinja's filters and the format of texts, held to what a rendering may use."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache, partial, reduce, wraps
from io import StringIO
from pprint import PrettyPrinter
from typing import Any

from jinja2 import Environment, pass_context
from jinja2.filters import FILTERS as JINJAS_FILTERS
from jinja2.filters import make_attrgetter
from jinja2.runtime import Context
from jinja2.sandbox import SandboxedEnvironment, SandboxedEscapeFormatter, SandboxedFormatter
from markupsafe import Markup

from sortie.workflow.render_budget import ELEMENT, RenderBudget
from sortie.workflow.value_sizes import FILTERS, largest_number

_LEFT_OUT = frozenset({"attr", "random", "urlize", "xmlattr"})
_WHOLE = frozenset({"groupby", "join", "sort", "urlencode"})  # look at all of what they are given
_OF_TEXT = frozenset(
    {"capitalize", "center", "e", "escape", "forceescape", "format", "indent", "lower", "pprint"}
    | {"replace", "safe", "string", "striptags", "title", "tojson", "trim", "truncate", "upper"}
    | {"urlencode", "wordcount", "wordwrap"}
)

Filter = Callable[..., Any]

_FIRST: Mapping[str, Callable[[Context], tuple[Any, ...]]] = {
    "none": lambda _: (),
    "context": lambda context: (context,),
    "eval_context": lambda context: (context.eval_ctx,),
    "environment": lambda context: (context.environment,),
}
"""What a filter is given before its arguments, by what Jinja's decorators call it."""


def budget_of(context: Context) -> RenderBudget:
    """Return what the rendering may use."""
    budget = context.environment.budget  # type: ignore[attr-defined] # of PromptEnvironment
    assert isinstance(budget, RenderBudget)
    return budget


def _bounded(name: str, made: Filter) -> Filter:
    """Return a filter that asks the budget of its rendering before it makes something."""
    size = FILTERS.get(name)
    first_of = _FIRST[getattr(getattr(made, "jinja_pass_arg", None), "name", "none")]

    @wraps(made)
    def bounded(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
        budget = budget_of(context)
        first = first_of(context)
        if name in _WHOLE and isinstance(value, Iterator):
            value = list(value)
        if name in _OF_TEXT:
            budget.expect_text(value, *args, *kwargs.values())
        if size is not None:
            given = _signature(made).bind(*first, value, *args, **kwargs)
            given.apply_defaults()
            expect_of_arguments(budget, size, context.environment, given.arguments)
        return budget.charge(made(*first, value, *args, **kwargs), ELEMENT)

    return pass_context(bounded)


_signature = lru_cache(inspect.signature)


def expect_of_arguments(
    budget: RenderBudget, size: Callable[..., int], *args: Any, **kwargs: Any
) -> None:
    """Expect a size; of wrong arguments, whatever takes them tells in its own words."""
    with suppress(TypeError, ValueError, LookupError, AttributeError):
        budget.expect_from(partial(size, **kwargs), *args)


@pass_context
def _sum(
    context: Context, iterable: Iterable[Any], attribute: str | int | None = None, start: Any = 0
) -> Any:
    """Add as ``+`` does, which says when lists become too long."""
    environment = context.environment
    assert isinstance(environment, SandboxedEnvironment)
    if attribute is not None:
        iterable = map(make_attrgetter(environment, attribute), iterable)
    return reduce(partial(environment.call_binop, context, "+"), iterable, start)


@pass_context
def _pprint(context: Context, value: Any) -> str:
    """Write a value over several lines, as Jinja's filter does, but no more than a prompt has."""
    text = _BoundedText(budget_of(context))
    PrettyPrinter(stream=text).pprint(value)
    return text.getvalue().removesuffix("\n")


class _BoundedText(StringIO):
    """A text that becomes no longer than a prompt."""

    def __init__(self, budget: RenderBudget) -> None:
        super().__init__()
        self._budget = budget

    def write(self, text: str) -> int:
        """Append a piece."""
        self._budget.expect(self.tell() + len(text))
        return super().write(text)


def json_dumps(budget: RenderBudget, value: Any, **options: Any) -> str:
    """Write JSON piece by piece."""
    return budget.concatenated(json.JSONEncoder(**options).iterencode(value))


def formatter_of(text: str, environment: Environment, budget: RenderBudget) -> SandboxedFormatter:
    """Return what formats a text."""
    if isinstance(text, Markup):
        return _BoundedEscapeFormatter(environment, budget, escape=text.escape)
    return _BoundedFormatter(environment, budget)


class _BoundedFormatter(SandboxedFormatter):
    """Does what ``format`` of a text does, field by field."""

    def __init__(self, environment: Environment, budget: RenderBudget, **kwargs: Any) -> None:
        super().__init__(environment, **kwargs)
        self._budget = budget

    def format_field(self, value: Any, format_spec: str) -> Any:
        """Write a value, in a width or with digits that a prompt has room for."""
        self._budget.expect(largest_number(format_spec))
        self._budget.expect_text(value)
        return self._budget.charge(super().format_field(value, format_spec))

    def convert_field(self, value: Any, conversion: Any) -> Any:
        """Write a value as ``!r`` or ``!s`` says."""
        self._budget.expect_text(value)
        return super().convert_field(value, conversion)


class _BoundedEscapeFormatter(_BoundedFormatter, SandboxedEscapeFormatter):
    """Does the same for text that is marked as safe."""


PROMPT_FILTERS: Mapping[str, Filter] = {
    name: _bounded(name, made)
    for name, made in {**JINJAS_FILTERS, "pprint": _pprint, "sum": _sum}.items()
    if name not in _LEFT_OUT
}
"""The filters of prompts."""
