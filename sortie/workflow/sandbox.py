"""The Jinja environment of prompts: Jinja's own sandbox, strict, and with an end.

Rule 1: every block of a template asks for the time when it begins, so neither loops nor macros that
call themselves go on beyond the deadline; Jinja has no other way to repeat something.

Rule 2: no value is made that is larger than a prompt may be; what makes much out of little is asked
how much before it begins. Texts that the issue brought are taken as large as they are.

Rule 3: all that is made takes from one budget of memory, since small values become many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial, wraps
from typing import Any

from jinja2 import FunctionLoader, StrictUndefined, pass_context
from jinja2.runtime import Context, LoopContext, Macro, markup_join, str_join
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing
from markupsafe import Markup

from sortie.config.messages import nearest
from sortie.model.outside import OutsideText, marked_as
from sortie.workflow.bounded_code import BoundedCode
from sortie.workflow.bounded_filters import (
    PROMPT_FILTERS,
    expect_of_arguments,
    formatter_of,
    json_dumps,
)
from sortie.workflow.fences import Fence
from sortie.workflow.prompts import Prompt
from sortie.workflow.render_budget import ELEMENT, Exhausted, RenderBudget
from sortie.workflow.value_sizes import METHODS, percent_size, text_size
from sortie.workflow.variables import PROMPT_VARIABLES, Fields

_LARGEST_BITS = 10_000
_METHODS_LEFT_OUT = frozenset({"encode", "format_map", "from_bytes", "to_bytes", "translate"})
_GLOBALS = ("range", "dict", "cycler", "joiner", "namespace")


class _Missing(StrictUndefined):
    """A name that does not exist; says which do."""

    __slots__ = ()

    @property
    def _undefined_message(self) -> str:
        name, owner = self._undefined_name, self._undefined_obj
        if self._undefined_hint or not isinstance(name, str):
            return super()._undefined_message
        if owner is missing:
            return f'there is no "{name}"; {nearest(name, PROMPT_VARIABLES)}'
        if isinstance(owner, Fields):
            return f'{owner.called()} has no "{name}"; {nearest(name, owner)}'
        return super()._undefined_message


class PromptEnvironment(ImmutableSandboxedEnvironment):
    """Compiles prompts, and renders one of them until ``deadline`` of ``time.monotonic``, with the
    ``parts`` that it may include."""

    code_generator_class = BoundedCode
    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})
    intercepted_unops = frozenset({"+", "-"})

    def __init__(self, deadline: float, parts: Mapping[str, Prompt] | None = None) -> None:
        def load(name: str) -> tuple[str, str, Callable[[], bool]] | None:
            part = None if parts is None else parts.get(name)
            return None if part is None else (part.source, part.name, lambda: True)

        super().__init__(
            undefined=_Missing, autoescape=False, optimized=False, loader=FunctionLoader(load)
        )
        self.budget = RenderBudget(deadline)
        self._fence: Fence | None = None
        self.finalize = self._shown
        self.concat = self.budget.concatenated  # type: ignore[method-assign] # stands for "".join
        self.globals = {name: self.globals[name] for name in _GLOBALS}
        self.filters = dict(PROMPT_FILTERS)
        self.policies["json.dumps_function"] = partial(json_dumps, self.budget)

    def fence_with(self, fence: Fence) -> None:
        """Show texts of strangers in a fence, and what filters make of them."""
        self._fence = fence
        self.filters = {name: _marking(made) for name, made in self.filters.items()}

    @pass_context  # so that nothing is made while a template is compiled
    def _shown(self, _: Context, value: Any) -> Any:
        """Return what ``{{ value }}`` shows."""
        self.budget.take(8 + self.budget.expect_text(value))
        if self._fence is None:
            return value
        if not isinstance(value, str | int | float | None):
            value = marked_as(str(value), value)
        return self._fence.shown(value) if isinstance(value, OutsideText) else value

    def concatenated(self, context: Context, values: tuple[Any, ...]) -> str:
        """Return what ``~`` makes."""
        self.budget.expect_from(text_size, values)
        join = markup_join if context.eval_ctx.autoescape else str_join
        text: str = marked_as(self.budget.charge(join(values)), values)
        return text

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Calculate on behalf of a template, unless much comes of it."""
        match operator, left, right:
            case "**", int(), int() if left.bit_length() * abs(right) > _LARGEST_BITS:
                raise Exhausted("a power is too large for a prompt")
            case "*", int(), int() if left.bit_length() + right.bit_length() > _LARGEST_BITS:
                raise Exhausted("a product is too large for a prompt")
            case "*", (str() | list() | tuple()), int():
                self.budget.expect(len(left) * right)
            case "*", int(), (str() | list() | tuple()):
                self.budget.expect(len(right) * left)
            case "+", (str() | list() | tuple()), (str() | list() | tuple()):
                self.budget.expect(len(left) + len(right))
            case "%", str(), _:
                self.budget.expect_from(percent_size, left, right)
        made = self.budget.charge(super().call_binop(context, operator, left, right))
        return marked_as(made, left, right)

    def call_unop(self, context: Context, operator: str, arg: Any) -> Any:
        """Negate a number."""
        return self.budget.charge(super().call_unop(context, operator, arg))

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Leave out methods that no prompt needs and that make much out of little."""
        if attr in _METHODS_LEFT_OUT and isinstance(obj, (str, int)):
            return False
        return super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Return what stands for a text's ``format``."""
        if super().wrap_str_format(value) is None or value.__name__ == "format_map":
            return None
        text = value.__self__
        formatter = formatter_of(text, self, self.budget)
        return lambda *args, **kwargs: type(text)(formatter.vformat(text, args, kwargs))

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call a method, macro or function."""
        owner = getattr(obj, "__self__", None)
        if isinstance(owner, str) or owner is Markup:
            args = tuple(list(arg) if isinstance(arg, Iterator) else arg for arg in args)
            self.budget.expect_text(*args, *kwargs.values())
        if isinstance(owner, str) and obj.__name__ in METHODS:
            expect_of_arguments(self.budget, METHODS[obj.__name__], owner, *args, **kwargs)
        self.budget.take(8 * (len(args) + len(kwargs)))
        made = self.budget.charge(super().call(context, obj, *args, **kwargs), ELEMENT)
        if isinstance(obj, Macro):
            return made  # which has shown them
        return marked_as(made, owner, args, kwargs)


def _marking(made: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter whose result is marked where what it is given is."""

    @wraps(made)
    def filtered(*args: Any, **kwargs: Any) -> Any:
        given = [
            list(a) if isinstance(a, Iterator) and not isinstance(a, LoopContext) else a
            for a in args
        ]
        return marked_as(made(*given, **kwargs), given, kwargs)

    return filtered
