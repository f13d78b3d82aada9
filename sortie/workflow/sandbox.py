"""The Jinja environment of prompts: sandboxed, strict, and unable to run away.

A rendering runs in a thread, which nobody can end from outside, and a step that Python takes in
one go stops all other threads. So loops, calls, operators, comparisons, filters and tests ask a
budget, and what makes much out of little is bounded or left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any

from jinja2 import StrictUndefined, nodes, pass_context
from jinja2.filters import FILTERS
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import TESTS
from jinja2.utils import missing
from jinja2.visitor import NodeTransformer

from sortie.config.messages import nearest
from sortie.workflow.amounts import pay_for_filter, pay_for_operator, pay_for_replace
from sortie.workflow.budget import Budget
from sortie.workflow.prompts import VARIABLES, Fields

_FILTERS = frozenset(FILTERS) - {"attr", "random", "urlize", "xmlattr"}
_GROWING_METHODS = frozenset(
    {"center", "encode", "expandtabs", "format", "format_map", "join"}
    | {"ljust", "maketrans", "rjust", "translate", "zfill"}
)
_GLOBALS = ("range", "dict", "cycler", "joiner", "namespace")

# Names that no template can spell.
_PACED = "paced loop"
_CONCATENATED = "concatenated text"
_COMPARED = "compared value"


class _Missing(StrictUndefined):
    """A name that does not exist; says which do."""

    __slots__ = ()

    @property
    def _undefined_message(self) -> str:
        name, owner = self._undefined_name, self._undefined_obj
        if self._undefined_hint or not isinstance(name, str):
            return super()._undefined_message
        if owner is missing:
            return f'there is no "{name}"; {nearest(name, VARIABLES)}'
        if isinstance(owner, Fields):
            return f'{owner.called()} has no "{name}"; {nearest(name, owner)}'
        return super()._undefined_message


@pass_context
def _pay_for_output(context: Context, value: Any) -> Any:
    environment = context.environment
    assert isinstance(environment, PromptEnvironment)
    environment.budget.pay_for(value)
    return value


class PromptEnvironment(ImmutableSandboxedEnvironment):
    """Compiles prompts, and renders one of them within a budget."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, budget: Budget) -> None:
        super().__init__(
            undefined=_Missing, autoescape=False, optimized=False, finalize=_pay_for_output
        )
        self.budget = budget
        self.globals = {name: self.globals[name] for name in _GLOBALS}
        self.known_filters = _FILTERS
        self.filters = {name: self._paid(name) for name in _FILTERS}
        self.filters |= {
            _PACED: self._paced,
            _CONCATENATED: self._concatenated,
            _COMPARED: self._compared,
        }
        self.tests = {name: self._paid_test(name) for name in TESTS}

    def guarded(self, template: nodes.Template) -> nodes.Template:
        """Return a parsed template in which loops and concatenations ask the budget."""
        guarded = _Guarding(self).visit(template)
        assert isinstance(guarded, nodes.Template)
        return guarded

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Tell whether a template may reach an attribute."""
        if isinstance(obj, int | float) or (isinstance(obj, str) and attr in _GROWING_METHODS):
            return False
        return super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> None:
        """Leave ``str.format`` as it is, so that it is refused; a width in it has no bound."""

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call something on behalf of a template."""
        owner = getattr(__obj, "__self__", None)
        if isinstance(owner, str) and __obj.__name__ == "replace":
            pay_for_replace(__self.budget, owner, *args[:2])
        __self.budget.pay_for([owner, *args] if isinstance(owner, list | tuple) else list(args))
        result = super().call(__context, __obj, *args, **kwargs)
        if isinstance(result, str):
            __self.budget.pay(len(result))
        return result

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Use an operator on behalf of a template."""
        pay_for_operator(self.budget, operator, left, right)
        return super().call_binop(context, operator, left, right)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Look an item up on behalf of a template."""
        self.budget.pay_for(argument)
        return super().getitem(obj, argument)

    def _paid_test(self, name: str) -> Callable[..., Any]:
        original: Any = TESTS[name]

        @wraps(original)
        def paid(*args: Any, **kwargs: Any) -> Any:
            self.budget.pay_for(list(args))
            return original(*args, **kwargs)

        return paid

    def _paid(self, name: str) -> Callable[..., Any]:
        original: Any = FILTERS[name]
        first = 1 if hasattr(original, "jinja_pass_arg") else 0

        @wraps(original)
        def paid(*args: Any, **kwargs: Any) -> Any:
            values = [list(v) if isinstance(v, Iterator) else v for v in args[first:]]
            pay_for_filter(self.budget, name, values, kwargs)
            return original(*args[:first], *values, **kwargs)

        return paid

    def _paced(self, items: Iterable[Any], characters: int) -> Iterator[Any]:
        for item in items:
            self.budget.pay(characters + 1)
            yield item

    def _compared(self, value: Any) -> Any:
        self.budget.pay_for(value)
        return value

    def _concatenated(self, values: list[Any]) -> str:
        self.budget.pay_for(values)
        return "".join(str(value) for value in values)


class _Guarding(NodeTransformer):
    def __init__(self, environment: PromptEnvironment) -> None:
        self._environment = environment

    def visit_For(self, node: nodes.For) -> nodes.Node:
        characters = sum(len(data.data) for data in node.find_all(nodes.TemplateData))
        self.generic_visit(node)
        assert isinstance(node.iter, nodes.Expr)
        node.iter = self._filtered(node.iter, _PACED, nodes.Const(characters))
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return self._filtered(nodes.List(node.nodes, lineno=node.lineno), _CONCATENATED)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        self.generic_visit(node)
        node.expr = self._filtered(node.expr, _COMPARED)
        for operand in node.ops:
            operand.expr = self._filtered(operand.expr, _COMPARED)
        return node

    def visit_Pair(self, node: nodes.Pair) -> nodes.Node:
        self.generic_visit(node)
        node.key = self._filtered(node.key, _COMPARED)
        return node

    def _filtered(self, node: nodes.Expr, name: str, *args: nodes.Expr) -> nodes.Expr:
        made = nodes.Filter(node, name, list(args), [], None, None)
        made.set_lineno(node.lineno).set_environment(self._environment)
        return made
