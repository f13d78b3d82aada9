"""Texts that come from outside: which characters to take, and how much of them to show."""

from __future__ import annotations

import re

UNUSABLE = re.compile("[\x00\ud800-\udfff]")
"""Characters that no process can be handed and no file can hold: NUL and lone surrogates."""

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that could steer a terminal, or are unusable; tabs and line feeds are neither."""

NOT_ON_A_LINE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Characters that a name on one line cannot have: control characters, line ends, unusable ones."""

TEXT_LIMIT = 4096
"""Characters of a message that are kept: in an error, a record and a log line."""

_WORD_LIMIT = 1024


def cut(text: str, limit: int = TEXT_LIMIT) -> str:
    """Return a text with its middle left out where it is longer than ``limit``.

    No half of a word stays at the cut: it may be a secret, which is not known by its half.
    """
    if len(text) <= limit:
        return text
    mark = f" [{len(text)} characters, cut] "
    head = (limit - len(mark)) // 2
    tail = len(text) - (limit - len(mark) - head)
    return f"{text[: _before_word(text, head)]}{mark}{text[_behind_word(text, tail) :]}"


def _before_word(text: str, at: int) -> int:
    for place in range(at, max(at - _WORD_LIMIT, 0), -1):
        if text[place].isspace():
            return place
    return at


def _behind_word(text: str, at: int) -> int:
    for place in range(at - 1, min(at + _WORD_LIMIT, len(text))):
        if text[place].isspace():
            return place + 1
    return at
