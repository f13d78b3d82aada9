"""What an operator or a filter of a prompt can make, paid for before it is made."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Sized
from typing import Any

from sortie.workflow.budget import Budget, Exhausted

_BOUNDED = frozenset({"batch", "center", "indent", "round", "slice", "wordwrap"})
_LARGEST_ARGUMENT = 1_000
_LARGEST_BITS = 10_000
# A width or precision of four digits or from an argument; keys with brackets hide where it is.
_WIDE_FORMAT = re.compile(r"%\([^()]*\(|%(?:\([^()]*\))?[-+ #0]*(?:\*|\d{4}|\d*\.(?:\*|\d{4}))")


def _too_large(what: str) -> Exhausted:
    return Exhausted(f"{what} is too large for a prompt")


def pay_for_replace(budget: Budget, text: str, old: object = "", new: object = "") -> None:
    """Pay for a text in which one part is replaced by another."""
    budget.pay(len(text) + text.count(str(old)) * len(str(new)))


def pay_for_operator(budget: Budget, operator: str, left: Any, right: Any) -> None:
    """Pay for ``+``, ``*``, ``**`` or ``%``."""
    budget.pay()
    match operator, left, right:
        case "+", (str() | list() | tuple()), (str() | list() | tuple()):
            budget.pay(len(left) + len(right))
        case "*", (str() | list() | tuple()), int():
            budget.pay(len(left) * max(right, 0))
        case "*", int(), (str() | list() | tuple()):
            budget.pay(len(right) * max(left, 0))
        case "*", int(), int():
            if left.bit_length() + right.bit_length() > _LARGEST_BITS:
                raise _too_large("a product")
        case "**", int(), int():
            if left.bit_length() * abs(right) > _LARGEST_BITS:
                raise _too_large("a power")
        case "%", str(), _:
            _pay_for_format(budget, left, (right,))
        case _:
            pass


def _pay_for_format(budget: Budget, text: str, values: Sequence[Any]) -> None:
    if _WIDE_FORMAT.search(text):
        raise _too_large("the width of a format")
    budget.pay_for(values, text.count("%") + 1)


def pay_for_filter(
    budget: Budget, name: str, values: Sequence[Any], named: Mapping[str, Any]
) -> None:
    """Pay for a filter's result; ``values`` are what it is applied to and its arguments."""
    budget.pay_for(list(values))
    budget.pay_for(list(named.values()))
    arguments = [*values[1:], *named.values()]
    text = str(values[0]) if values and isinstance(values[0], str) else ""
    match name:
        case "replace":
            pay_for_replace(budget, text, *arguments[:2])
        case "format":
            _pay_for_format(budget, text, arguments)
        case "indent":
            budget.pay((text.count("\n") + 1) * max(map(_size, arguments), default=4))
        case "join" if isinstance(values[0], Sized):
            budget.pay(len(values[0]) * max(map(_size, arguments), default=0))
        case "sum" if any(isinstance(argument, list | tuple) for argument in arguments):
            raise _too_large("a sum of lists")
    if name in _BOUNDED and any(_size(argument) > _LARGEST_ARGUMENT for argument in arguments):
        raise _too_large(f"an argument of {name}")


def _size(argument: object) -> int:
    if isinstance(argument, str):
        return len(argument)
    return abs(argument) if isinstance(argument, int) else 0
