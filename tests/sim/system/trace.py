"""The record of a day: what happened, in order, and what must not have."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import Any

import trio
from msgspec import Struct

from sortie.model import Issue

_BRIEF = 160


class Line:
    """Something that happened; ``kind`` says who tells it. Its text is made when it is read, since
    most days are never looked at."""

    __slots__ = ("_hidden", "_told", "at", "kind")

    def __init__(self, at: float, kind: str, told: object, hidden: str) -> None:
        self.at = at
        self.kind = kind
        self._told = told
        self._hidden = hidden

    @property
    def text(self) -> str:
        """What happened, in a line."""
        text = self._told if isinstance(self._told, str) else brief(self._told)
        return text.replace(self._hidden, "")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Line) and str(self) == str(other)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return f"{self.at:10.3f}  {self.kind:<9} {self.text}"


class Trace:
    """Lines in order; ``wrongs`` are the broken promises, ``reached`` counts kinds and words.

    ``hidden`` is a path of this very day, which no line shows.
    """

    def __init__(self, hidden: str) -> None:
        self._hidden = hidden
        self.lines: list[Line] = []
        self.wrongs: list[Line] = []
        self.reached: Counter[object] = Counter()

    def note(self, kind: str, told: object) -> None:
        """Add a line, of a text or of something that is told in brief."""
        self.lines.append(Line(trio.current_time(), kind, told, self._hidden))

    def tell(self, kind: str, thing: object) -> None:
        """Add a line about an event, a decision or a fact, and count its kind and its words."""
        self.note(kind, thing)
        self._count(thing)

    def _count(self, thing: object) -> None:
        self.reached[type(thing)] += 1
        for name in _names_of(thing):
            word = getattr(thing, name)
            if isinstance(word, Enum):
                self.reached[word] += 1
            elif isinstance(word, Struct) and not isinstance(word, Issue):
                self._count(word)

    def wrong(self, text: str) -> None:
        """Note a broken promise; nothing is raised, since the daemon's edges would catch it."""
        self.note("WRONG", text)
        self.wrongs.append(self.lines[-1])


def _names_of(thing: object) -> tuple[str, ...]:
    return thing.__struct_fields__ if isinstance(thing, Struct) else ()


def brief(thing: object) -> str:
    """Return a Struct in one line that holds little of the issues in it."""
    return f"{type(thing).__name__}({_fields(thing)})"[: _BRIEF * 2]


def _fields(thing: object) -> str:
    if not isinstance(thing, Struct):
        return str(thing)
    return ", ".join(f"{name}={_value(getattr(thing, name))}" for name in thing.__struct_fields__)


def _value(value: Any) -> str:
    match value:
        case Issue():
            return f"{value.identifier}:{value.state}"
        case Enum():
            return str(value.value)
        case float():
            return f"{value:.6g}"
        case frozenset() | set():
            return f"{{{', '.join(sorted(map(_value, value)))}}}"
        case tuple() | list():
            return f"[{', '.join(map(_value, value))}]"
        case str():
            last = value.strip().splitlines()[-1:] or [""]
            return repr(last[0][:_BRIEF])
        case Struct():
            return brief(value)
        case _:
            return repr(value)[:_BRIEF]
