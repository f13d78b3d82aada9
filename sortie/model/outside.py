"""Texts of strangers: without what no reader sees, and marked as theirs.

Rule 1: what is not seen where people read a text is not in the prompt: characters without a width,
marks of direction, tags, comments of HTML, escape sequences of terminals.
Rule 2: what is made of a marked text is marked: a part, a line, several joined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, SupportsIndex

_ESCAPES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[\\]P_^X]|[\x90\x9d\x9e\x9f\x98])"
    "[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)?|\x1b[0-~]"
)
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\ud800-\udfff]"
)
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_COMMENT = re.compile(r"<!--.*?(?:--!?>|\Z)", re.DOTALL)


def cleaned(text: str) -> str:
    """Return a text as people see it, with line feeds as line ends."""
    text = printed(text)
    while (shorter := _COMMENT.sub("", text)) != text:
        text = shorter
    return text


def printed(text: str) -> str:
    """Return what a program printed as a terminal shows it: comments of HTML are seen there."""
    return _UNSEEN.sub("", _ESCAPES.sub("", _LINE_ENDS.sub("\n", text)))


def on_one_line(text: str) -> str:
    """Return a text as people see it, on one line."""
    return " ".join(cleaned(text).split())


class OutsideText(str):
    """A text of strangers; ``what`` it is."""

    __slots__ = ("what",)

    def __new__(cls, text: str, what: str) -> OutsideText:
        """Mark a text."""
        made = super().__new__(cls, text)
        made.what = what
        return made

    what: str

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        """Return a part, which is marked, too."""
        return type(self)(super().__getitem__(key), self.what)

    def __iter__(self) -> Iterator[str]:
        """Yield its characters, which are marked."""
        return (type(self)(character, self.what) for character in super().__iter__())


class OutsideLine(OutsideText):
    """A short text of strangers on one line: a title, a name, a label."""

    __slots__ = ()


class OutsideLog(OutsideText):
    """What a program printed, which may quote any file."""

    __slots__ = ()


_DEEPEST = 6


def marks_in(*values: Any, depth: int = 0) -> Iterator[OutsideText]:
    """Yield the texts of strangers that are among values, or in lists and mappings of them."""
    for value in values:
        if isinstance(value, OutsideText):
            yield value
        elif depth < _DEEPEST and isinstance(value, list | tuple | set | frozenset):
            yield from marks_in(*value, depth=depth + 1)
        elif depth < _DEEPEST and isinstance(value, dict):
            yield from marks_in(*value, *value.values(), depth=depth + 1)


def marked_as(made: Any, *sources: Any) -> Any:
    """Return what was made of some values, marked where one of them is."""
    if isinstance(made, OutsideText) or not isinstance(made, str | list | tuple | Iterator):
        return made
    first: OutsideText | None = None
    for mark in marks_in(*sources):
        if first is None or type(mark) is OutsideText:
            first = mark
        if type(mark) is OutsideText:
            break
    return made if first is None else _marked(made, first)


def _marked(made: Any, like: OutsideText) -> Any:
    if isinstance(made, OutsideText):
        return made
    if isinstance(made, str):
        return type(like)(made, like.what)
    if isinstance(made, tuple) and hasattr(made, "_make"):  # one with names
        return made._make(_marked(one, like) for one in made)
    if isinstance(made, list | tuple):
        return type(made)(_marked(one, like) for one in made)
    if isinstance(made, Iterator):
        return (_marked(one, like) for one in made)
    return made
