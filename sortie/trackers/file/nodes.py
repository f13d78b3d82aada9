"""Documents as trees of nodes that know where in their text they stand.

YAML front matter and JSON become the same three kinds of node, so that fields are read, and
faults placed, in one way.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

DEPTH_LIMIT = 64
"""Collections that may stand inside one another."""

_NULL = ("", "~", "null", "Null", "NULL")
_SPECIAL = re.compile(
    r"~|null|Null|NULL|true|True|TRUE|false|False|FALSE"
    r"|[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
    r"|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)|"
)  # what the core schema of YAML 1.2 does not take for a string


class Flaw(Exception):
    """A document is not what it should be; ``offset`` counts characters of its text."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """A single value as written; only a ``plain`` one can be other than a string."""

    text: str
    plain: bool
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence:
    """A list; ``flow`` tells whether it is written in brackets."""

    items: tuple[Node, ...]
    flow: bool
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """Keys with their values, in order, each key once; ``flow`` as for a list."""

    pairs: tuple[tuple[Scalar, Node], ...]
    flow: bool
    start: int
    end: int

    def get(self, key: str) -> Node | None:
        """Return a key's value."""
        return next((value for name, value in self.pairs if name.text == key), None)


Node = Scalar | Sequence | Mapping


def is_null(node: Node | None) -> bool:
    """Tell whether there is no value."""
    return node is None or (isinstance(node, Scalar) and node.plain and node.text in _NULL)


def is_special(text: str) -> bool:
    """Tell whether a plain scalar of this text is a null, a boolean or a number."""
    return _SPECIAL.fullmatch(text) is not None


def mapping(pairs: list[tuple[Scalar, Node]], *, flow: bool, start: int, end: int) -> Mapping:
    """Return a mapping. Raises Flaw for a key that stands twice."""
    seen: set[str] = set()
    for key, _ in pairs:
        if key.text in seen:
            raise Flaw(key.start, f"{key.text[:60]}: stands twice; keep one of them")
        seen.add(key.text)
    return Mapping(pairs=tuple(pairs), flow=flow, start=start, end=end)


def content(node: Node, without: Collection[str] = ()) -> object:
    """Return what a node says, however it is written, less some of its keys."""
    match node:
        case Scalar(text=text, plain=plain):
            special = "" if is_null(node) else text.casefold()
            return ("special", special) if plain and is_special(text) else text
        case Sequence(items=items):
            return [content(item) for item in items]
        case Mapping(pairs=pairs):
            return [(k.text, content(value)) for k, value in pairs if k.text not in without]


def decoded(raw: bytes) -> str:
    """Return a file's text. Raises Flaw where it is not UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError as exc:
        raise Flaw(len(raw[: exc.start].decode()), "not UTF-8") from exc


class Locator:
    """Says where in a file an offset is, ``DEMO-1.md:3:8``, for offsets that do not go back."""

    def __init__(self, where: str, text: str) -> None:
        self._where = where
        self._text = text
        self._offset, self._lines, self._line_end = 0, 1, -1

    def place(self, offset: int) -> str:
        """Return the place of an offset, line and column counted from 1."""
        text, before = self._text, self._offset
        self._lines += text.count("\n", before, offset)
        self._line_end = max(self._line_end, text.rfind("\n", before, offset))
        self._offset = offset
        return f"{self._where}:{self._lines}:{offset - self._line_end}"

    def describe(self, flaw: Flaw) -> str:
        """Return a flaw as people are told of it, its place first."""
        return f"{self.place(flaw.offset)}: {flaw.message}"
