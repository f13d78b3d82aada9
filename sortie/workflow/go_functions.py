"""What the functions of Go's templates are in Jinja; pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum, StrEnum
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from sortie.workflow.bounded_filters import PROMPT_FILTERS

_COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_FILTERS = {
    "len": "length",
    "toJSON": "tojson",
    "toJson": "tojson",
    "html": "forceescape",
    "urlquery": "urlencode",
}
"""Functions whose filter has another name; every other one is taken for a filter of its name."""

_VERB = re.compile(r"%(?P<flags>[-+# 0]*\d*(?:\.\d+)?)(?P<letter>.)", re.DOTALL)


class NotGo(Exception):
    """It is not written as Go writes it, or Jinja has nothing like it; the text may say what."""


class Level(IntEnum):
    """How tightly an expression holds together."""

    LOGIC = 0
    COMPARISON = 1
    JOINED = 2
    FILTERED = 3
    ATOM = 4


class GoKind(StrEnum):
    """What is known of a value. MAYBE_TEXT is empty in Go's program where it is none here."""

    ANY = ""
    BOOLEAN = "boolean"
    NUMBER = "number"
    MAYBE_TEXT = "maybe text"


class Expression(Struct, frozen=True):
    """An expression of Jinja. ``is_go``: what it is made of could not be Jinja itself.

    ``path`` is where the value stands in what the template is given, None where that is not known.
    """

    text: str
    level: Level = Level.ATOM
    is_go: bool = False
    kind: GoKind = GoKind.ANY
    path: str | None = None

    def within(self, level: Level) -> str:
        """Return it as a part of something that holds together as tightly as that."""
        return self.text if self.level >= level else f"({self.text})"

    def value(self) -> Expression:
        """Return what has Go's value: a text that may be none is empty."""
        if self.kind is not GoKind.MAYBE_TEXT:
            return self
        text = f'{self.within(Level.COMPARISON)} or ""'
        return replace(self, text=text, level=Level.LOGIC, kind=GoKind.ANY)

    def shown(self) -> Expression:
        """Return what shows as Go shows it."""
        if self.kind is not GoKind.BOOLEAN:
            return self.value()
        text = f"{self.within(Level.FILTERED)} | lower"
        return replace(self, text=text, level=Level.FILTERED, kind=GoKind.ANY)


def called(name: str, arguments: Sequence[Expression]) -> Expression:
    """Return what a call of a function is in Jinja. Raises NotGo."""
    if name in _COMPARED and len(arguments) >= 2:
        return _comparison(name, [each.value() for each in arguments])
    special = _SPECIAL.get(name)
    if special is not None:
        return special(arguments)
    *options, subject = (each.value() for each in arguments)
    given = ", ".join(option.text for option in options)
    call = f"({given})" if options else ""
    filtered = f"{subject.within(Level.FILTERED)} | {_FILTERS.get(name, name)}{call}"
    kind = GoKind.NUMBER if name == "len" else GoKind.ANY
    return Expression(filtered, Level.FILTERED, kind=kind)


def is_known(name: str) -> bool:
    """Tell whether there is a function of this name, or a filter."""
    return name in _COMPARED or name in _SPECIAL or _FILTERS.get(name, name) in PROMPT_FILTERS


def _comparison(name: str, arguments: Sequence[Expression]) -> Expression:
    first, *others = (each.within(Level.JOINED) for each in arguments)
    if name == "eq" and len(others) > 1:
        text = f"{first} in [{', '.join(others)}]"
    elif len(others) > 1:
        raise NotGo(f"{name} compares two values")
    else:
        text = f"{first} {_COMPARED[name]} {others[0]}"
    return Expression(text, Level.COMPARISON, kind=GoKind.BOOLEAN)


def _logic(word: str) -> Callable[[Sequence[Expression]], Expression]:
    def made(arguments: Sequence[Expression]) -> Expression:
        parts = [each.within(Level.COMPARISON) for each in arguments]
        kinds = {each.kind for each in arguments}
        kind = kinds.pop() if len(kinds) == 1 else GoKind.ANY
        deciding = arguments if word == "and" else arguments[-1:]
        if any(each.kind is GoKind.MAYBE_TEXT for each in deciding):
            kind = GoKind.MAYBE_TEXT
        return Expression(f" {word} ".join(parts), Level.LOGIC, kind=kind)

    return made


def _negated(arguments: Sequence[Expression]) -> Expression:
    if len(arguments) != 1:
        raise NotGo("not takes one value")
    text = f"not {arguments[0].within(Level.COMPARISON)}"
    return Expression(text, Level.LOGIC, kind=GoKind.BOOLEAN)


def _indexed(arguments: Sequence[Expression]) -> Expression:
    subject, *keys = arguments
    text = f"{subject.within(Level.ATOM)}{''.join(f'[{key.text}]' for key in keys)}"
    path = f"{subject.path}[]" if subject.path and len(keys) == 1 else None
    return Expression(text, path=path)


def _sliced(arguments: Sequence[Expression]) -> Expression:
    subject, *ends = arguments
    if not 1 <= len(ends) <= 2:
        raise NotGo("slice takes a value and one or two positions")
    text = ":".join([*(end.text for end in ends), ""][:2])
    return Expression(f"{subject.value().within(Level.ATOM)}[{text}]")


def _printed(arguments: Sequence[Expression]) -> Expression:
    """Return what ``print`` makes: a blank stands between two values that are no texts."""
    parts = [arguments[0].shown().within(Level.FILTERED)]
    for before, each in pairwise(arguments):
        parts += ['" "'] * ({before.kind, each.kind} <= {GoKind.NUMBER, GoKind.BOOLEAN})
        parts.append(each.shown().within(Level.FILTERED))
    return Expression(" ~ ".join(parts), Level.JOINED if len(parts) > 1 else Level.FILTERED)


def _printed_line(arguments: Sequence[Expression]) -> Expression:
    parts = ' ~ " " ~ '.join(each.shown().within(Level.FILTERED) for each in arguments)
    return Expression(rf'{parts} ~ "\n"', Level.JOINED)


def _formatted(arguments: Sequence[Expression]) -> Expression:
    """Return what ``printf`` makes, with the verbs of Python."""
    form, *given = arguments
    if not form.text.startswith('"'):
        raise NotGo("printf needs its form as a text")
    rest = iter(given)
    values: list[str] = []

    def verb(found: re.Match[str]) -> str:
        letter = found["letter"]
        if letter == "%":
            return "%%"
        value = next(rest, None)
        if value is None or letter not in "svtqdxXofeEgG":
            raise NotGo(f"printf has no {found[0]} in Jinja, or no value for it")
        values.append((value.shown() if letter in "svtq" else value).text)
        written = f"%{found['flags'].strip('+#') if letter in 'vtq' else found['flags']}"
        return {"q": rf"\"{written}s\"", "v": f"{written}s", "t": f"{written}s"}.get(
            letter, f"{written}{letter}"
        )

    text = _VERB.sub(verb, form.text)
    if next(rest, None) is not None:
        raise NotGo("printf has more values than verbs")
    return Expression(f"{text} | format({', '.join(values)})", Level.FILTERED)


def _defaulted(arguments: Sequence[Expression]) -> Expression:
    if len(arguments) != 2:
        raise NotGo("default takes two values")
    other, subject = arguments
    made = f"{subject.within(Level.FILTERED)} | default({other.text}, true)"
    return Expression(made, Level.FILTERED)


def _absent(_: Sequence[Expression]) -> Expression:
    raise NotGo("there is nothing like it in Jinja")


_SPECIAL: Mapping[str, Callable[[Sequence[Expression]], Expression]] = {
    "and": _logic("and"),
    "or": _logic("or"),
    "not": _negated,
    "index": _indexed,
    "slice": _sliced,
    "print": _printed,
    "println": _printed_line,
    "printf": _formatted,
    "default": _defaulted,
    "call": _absent,
    "js": _absent,
}
