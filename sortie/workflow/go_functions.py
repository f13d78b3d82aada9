"""What the functions of Go's templates are in Jinja; pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum

from msgspec import Struct

_COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_FILTERS = {
    "len": "length",
    "toJSON": "tojson",
    "toJson": "tojson",
    "html": "escape",
    "urlquery": "urlencode",
}
"""Functions whose filter has another name; every other one is taken for a filter of its name."""

_VERB = re.compile(r"%[-+# 0]*(\d*)(?:\.\d+)?([a-zA-Z%])")


class NotGo(Exception):
    """It is not written as Go writes it, or means nothing there."""


class Level(IntEnum):
    """How tightly an expression holds together."""

    LOGIC = 0
    COMPARISON = 1
    JOINED = 2
    FILTERED = 3
    ATOM = 4


class Expression(Struct, frozen=True):
    """An expression of Jinja. ``is_go``: what it is made of could not be Jinja itself."""

    text: str
    level: Level = Level.ATOM
    is_go: bool = False

    def within(self, level: Level) -> str:
        """Return it as a part of something that holds together as tightly as that."""
        return self.text if self.level >= level else f"({self.text})"


def called(name: str, arguments: Sequence[Expression]) -> Expression:
    """Return what a call of a function is in Jinja."""
    if name in _COMPARED and len(arguments) >= 2:
        return _comparison(name, arguments)
    special = _SPECIAL.get(name)
    if special is not None:
        return special(arguments)
    *options, subject = arguments
    given = ", ".join(option.text for option in options)
    call = f"({given})" if options else ""
    filtered = f"{subject.within(Level.FILTERED)} | {_FILTERS.get(name, name)}{call}"
    return Expression(filtered, Level.FILTERED)


def _comparison(name: str, arguments: Sequence[Expression]) -> Expression:
    first, *others = (each.within(Level.JOINED) for each in arguments)
    if name == "eq" and len(others) > 1:
        return Expression(f"{first} in [{', '.join(others)}]", Level.COMPARISON)
    if len(others) > 1:
        raise NotGo
    return Expression(f"{first} {_COMPARED[name]} {others[0]}", Level.COMPARISON)


def _logic(word: str) -> Callable[[Sequence[Expression]], Expression]:
    def made(arguments: Sequence[Expression]) -> Expression:
        parts = [each.within(Level.COMPARISON) for each in arguments]
        return Expression(f" {word} ".join(parts), Level.LOGIC)

    return made


def _negated(arguments: Sequence[Expression]) -> Expression:
    if len(arguments) != 1:
        raise NotGo
    return Expression(f"not {arguments[0].within(Level.COMPARISON)}", Level.LOGIC)


def _indexed(arguments: Sequence[Expression]) -> Expression:
    subject, *keys = arguments
    made = f"{subject.within(Level.ATOM)}{''.join(f'[{key.text}]' for key in keys)}"
    return Expression(made)


def _printed(between: str) -> Callable[[Sequence[Expression]], Expression]:
    def made(arguments: Sequence[Expression]) -> Expression:
        parts = [each.within(Level.FILTERED) for each in arguments]
        return Expression(between.join(parts), Level.JOINED if len(parts) > 1 else Level.ATOM)

    return made


def _formatted(arguments: Sequence[Expression]) -> Expression:
    """Return what ``printf`` makes, with the verbs of Python."""
    form, *given = arguments
    text = _VERB.sub(_verb, form.text)
    values = ", ".join(each.text for each in given)
    return Expression(f"{text} | format({values})", Level.FILTERED)


def _verb(found: re.Match[str]) -> str:
    match found[2]:
        case "v" | "t":
            return f"%{found[1]}s"
        case "q":
            return r"\"%s\""
        case _:
            return found[0]


def _defaulted(arguments: Sequence[Expression]) -> Expression:
    other, subject = arguments if len(arguments) == 2 else (None, None)
    if other is None or subject is None:
        raise NotGo
    made = f"{subject.within(Level.FILTERED)} | default({other.text}, true)"
    return Expression(made, Level.FILTERED)


_SPECIAL: Mapping[str, Callable[[Sequence[Expression]], Expression]] = {
    "and": _logic("and"),
    "or": _logic("or"),
    "not": _negated,
    "index": _indexed,
    "print": _printed(" ~ "),
    "println": _printed(' ~ " " ~ '),
    "printf": _formatted,
    "default": _defaulted,
}
