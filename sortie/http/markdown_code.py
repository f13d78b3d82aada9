"""Where code stands in Markdown, so that what is changed in a text leaves code as it is.

CommonMark says what code is, and a parser of it finds that. Where the parser and a look at the text
do not find the same, there is no code: rather a sign too many in code than a mention that calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

LONGEST = 100_000
"""Characters of a text in which code is looked for; a longer one has none, as it takes too long."""

_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+\Z")
_MAY_BE_CODE = re.compile(r"`|~~~|^(?: {4}|\t| {1,3}\t)", re.MULTILINE)
_TICKS = re.compile(r"`+")
_BLOCKS = frozenset({"fence", "code_block"})


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Return a text in which all that is no code was changed, stretch by stretch."""
    parts, end = [], 0
    for begin, behind in code_places(text):
        parts += [change(text[end:begin]), text[begin:behind]]
        end = behind
    return "".join([*parts, change(text[end:])])


def code_places(text: str) -> list[tuple[int, int]]:
    """Return where code blocks and code spans begin and end, in order, with their fences."""
    if len(text) > LONGEST or not _MAY_BE_CODE.search(text):
        return []
    starts = [found.start() for found in _LINE.finditer(text)] + [len(text)]
    return sorted(_places(text, starts))


def _places(text: str, starts: list[int]) -> Iterator[tuple[int, int]]:
    for token in _parser().parse(text):
        if token.map is None or token.map[1] >= len(starts):
            continue
        begin, end = starts[token.map[0]], starts[token.map[1]]
        if token.type in _BLOCKS:
            yield begin, end
        elif token.type == "inline":
            yield from _spans(text, begin, end, token)


def _spans(text: str, begin: int, end: int, token: Token) -> Iterator[tuple[int, int]]:
    """Yield the code spans of a paragraph, where they are those that the parser found."""
    told = [child.content for child in token.children or () if child.type == "code_inline"]
    if not told:
        return
    places, contents = [], []
    ticks = list(_TICKS.finditer(text, begin, end))
    while ticks:
        opening = ticks.pop(0)
        closing = next((t for t in ticks if len(t[0]) == len(opening[0])), None)
        if closing is not None:
            ticks = ticks[ticks.index(closing) + 1 :]
            places.append((opening.start(), closing.end()))
            contents.append(_content(text[opening.end() : closing.start()]))
    if contents == told:
        yield from places


def _content(code: str) -> str:
    code = re.sub(r"\r\n?|\n", " ", code)
    is_padded = code[:1] == code[-1:] == " " and code.strip(" ") != "" and len(code) > 2
    return code[1:-1] if is_padded else code


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark")
