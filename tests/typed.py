"""See that what is decided is what it is declared to be: a None where a word belongs is a mistake
that nobody notices before a person reads it."""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

Check = Callable[[Any], bool]


def wrongly_typed(thing: object) -> list[str]:
    """Return the fields of a Struct that hold something else than their annotations say."""
    wrong = []
    for name, is_right, good in _checks_of(thing):
        value = getattr(thing, name)
        if type(value) in good:
            continue
        if not is_right(value):
            wrong.append(f"{type(thing).__name__}.{name} is {value!r}")
        elif type(value) in _SIMPLE or isinstance(value, Struct):
            good.add(type(value))
    return wrong


def wrong_defaults(kind: type[Struct]) -> list[str]:
    """Return the defaults of a Struct that are not what their annotations say."""
    hints = get_type_hints(kind)
    return [
        f"{kind.__name__}.{part.name} is {part.default!r}"
        for part in fields(kind)
        if part.default is not NODEFAULT and not _check(hints[part.name])(part.default)
    ]


_SIMPLE = (int, float, bool, type(None))
"""Kinds of which every value is right where one is; of words that need not be so."""

_CHECKS: dict[str, tuple[tuple[str, Check, set[type]], ...]] = {}


def _checks_of(thing: Any) -> tuple[tuple[str, Check, set[type]], ...]:
    kind = type(thing)
    if kind.__qualname__ not in _CHECKS:
        hints = get_type_hints(kind)
        _CHECKS[kind.__qualname__] = tuple(
            (name, _check(hints[name]), set()) for name in kind.__struct_fields__
        )
    return _CHECKS[kind.__qualname__]


def _check(hint: Any) -> Check:
    hint = getattr(hint, "__supertype__", hint)  # of a NewType
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is None or hint is type(None):
        return lambda value: value is None
    if origin in (Union, types.UnionType):
        checks = [_check(argument) for argument in arguments]
        return lambda value: any(is_right(value) for is_right in checks)
    if origin is Literal:
        return lambda value: value in arguments
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return lambda value: isinstance(value, Mapping)
    if isinstance(origin, type) and issubclass(origin, Collection):
        item = _check(arguments[0])
        return lambda value: isinstance(value, origin) and all(map(item, value))
    if hint is float:
        return lambda value: isinstance(value, float | int) and not isinstance(value, bool)
    if hint is int:
        return lambda value: isinstance(value, int) and not isinstance(value, bool)
    if isinstance(hint, type):
        return lambda value: isinstance(value, hint)
    return lambda _value: True
