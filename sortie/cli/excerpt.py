"""Show a line of a workflow file with a mark below what is wrong in it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from sortie.cli.output import visible
from sortie.model import Problem

_WIDTH = 100
"""Characters of a line that are shown."""

_BEFORE = 60  # of them before the mark, where the line is longer
_WORD = re.compile(r"[\w.$-]+")


def excerpt_lines(problem: Problem) -> Iterator[str]:
    """Yield the line that a problem is about, and one that points into it."""
    if problem.excerpt is None:
        return
    text, at = problem.excerpt.text.rstrip(), problem.excerpt.column - 1
    if not text.strip():
        return
    at = min(at, len(text))
    start = max(0, at - _BEFORE) if len(text) > _WIDTH else 0
    before, after = text[start:at], text[at : start + _WIDTH]
    word = _WORD.match(after)
    before, after = (visible(part.replace("\t", " ")) for part in (before, after))
    cut = "…" if start else ""
    rest = "…" if start + _WIDTH < len(text) else ""
    mark = "^" * max(1, _columns(visible(word[0])) if word else 1)
    gutter = f"{problem.line:>5} | "
    yield f"{gutter}{cut}{before}{after}{rest}"
    yield f"{' ' * (len(gutter) - 2)}| {' ' * _columns(cut + before)}{mark}"


def _columns(text: str) -> int:
    """Return how wide a text is on a terminal."""
    return sum(
        0 if unicodedata.combining(character) else 1 + (_is_wide(character)) for character in text
    )


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"
