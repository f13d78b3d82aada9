"""Split a text into its front matter, between two lines of ``---``, and what follows."""

from __future__ import annotations

import re

from frontmatter.default_handlers import BaseHandler
from msgspec import Struct


class _Handler(BaseHandler):
    FM_BOUNDARY = re.compile(r"^---[ \t]*\r?$", re.MULTILINE)


_HANDLER = _Handler()


class FrontMatter(Struct, frozen=True, kw_only=True):
    """Where a front matter stands: from ``start`` to ``end``, the start of the closing line.

    What follows begins at ``body``, with the end of the closing line.
    """

    start: int
    end: int
    body: int


def split_front_matter(text: str, begin: int = 0) -> FrontMatter | None:
    """Return the front matter that begins at ``begin``, None where none does.

    Raises ValueError where it does not end.
    """
    rest = text[begin:]
    if not _HANDLER.detect(rest):
        return None
    front, body = _HANDLER.split(rest)
    start = begin + rest.index("\n") + 1
    return FrontMatter(start=start, end=start + len(front) - 1, body=len(text) - len(body))
