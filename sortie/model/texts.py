"""Texts that come from outside: which characters to take, and how much of them to show."""

from __future__ import annotations

import re
from collections.abc import Callable

from sortie.model.secrets import unchanged

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
    return f"{text[: _word_around(text, head)[0]]}{mark}{text[_word_around(text, tail)[1] :]}"


def start_of(text: str, limit: int, redact: Callable[[str], str] = unchanged) -> str:
    """Return the beginning of a text, redacted before it is cut to ``limit`` characters.

    No half of a word stays at the cut, as it could be a part of a secret that is redacted later. Of
    a text that is one long word the length is given instead.
    """
    text = redact(text)
    if len(text) <= limit:
        return text
    return text[: _word_around(text, limit)[0]].rstrip() or f"[{len(text)} characters]"[:limit]


def end_of(text: str, limit: int, redact: Callable[[str], str] = unchanged) -> str:
    """Return the end of a text, as ``start_of`` returns its beginning."""
    text = redact(text)
    if len(text) <= limit:
        return text
    return text[_word_around(text, len(text) - limit)[1] :].lstrip()


def _word_around(text: str, at: int) -> tuple[int, int]:
    """Return where the word begins and ends in which ``at`` is; twice ``at`` for none.

    A word of more than _WORD_LIMIT characters is no secret. Where no blank is near, as in JSON, a
    word ends at a quote or a bracket.
    """
    for is_end in (str.isspace, _is_border):
        if not 0 < at < len(text) or is_end(text[at - 1]) or is_end(text[at]):
            break  # it is between two words
        begin = end = at
        while begin > 0 and at - begin <= _WORD_LIMIT and not is_end(text[begin - 1]):
            begin -= 1
        while end < len(text) and end - begin <= _WORD_LIMIT and not is_end(text[end]):
            end += 1
        if end - begin <= _WORD_LIMIT:
            return begin, end
    return at, at


def _is_border(character: str) -> bool:
    return character in "\"'`<>()[]{}"
