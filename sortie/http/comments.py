"""Comments that are made once: a mark in each, by which a lost one is found again."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TypeVar

from sortie.http.markdown_code import outside_code
from sortie.model import LostAnswer

_MARK = re.compile(r"\s*<!-- sortie:([!-~]{1,200}?) -->\s*\Z")

_REMEMBERED = 1000


def marked(body: str, key: str | None) -> str:
    """Return a body that ends with the mark of its key, which no reader sees in Markdown."""
    if key is None:
        return body
    return f"{body}\n\n<!-- sortie:{_plain(key)} -->"


def key_in(body: str) -> str | None:
    """Return the key with which a body is marked; None where it is not."""
    found = _MARK.search(body)
    return found[1] if found else None


def without_mark(body: str) -> str:
    """Return a body without its mark."""
    return _MARK.sub("", body) if "<!-- sortie:" in body else body


def is_marked(body: str, key: str) -> bool:
    """Tell whether a body is the comment with this key."""
    return key_in(body) == _plain(key)


_MENTION = re.compile(r"(?<![\w`])@(?=[A-Za-z0-9_])")


def harmless_mentions(body: str) -> str:
    """Return a body in which no ``@name`` calls anybody: an invisible mark stands behind the ``@``.

    What an agent or a program has said may hold names, of decorators for example. Code calls
    nobody, and stays as it is.
    """
    return outside_code(body, lambda text: _MENTION.sub("@\u200b", text)) if "@" in body else body


_SHORTENED = "\n\n[...] (shortened; the whole text is in the log of Sortie)"

TextT = TypeVar("TextT")


def fitted(
    body: str, limit: int, convert: Callable[[str], TextT], size: Callable[[TextT], int]
) -> TextT:
    """Return a body as it is sent, cut with a note where it would be longer than the limit.

    It is cut before it is converted, as a cut may take the end of a piece of code: by whole lines
    if that is possible, with a code block closed.
    """
    length = min(len(body), limit)
    while True:
        kept = body[:length]
        if length < len(body):
            if "\n" in kept[length // 2 :]:
                kept = kept.rpartition("\n")[0]
            kept += ("\n```" if kept.count("```") % 2 else "") + _SHORTENED
        converted = convert(kept)
        found = size(converted)
        if found <= limit or not length:
            return converted
        length = min(length - 1, length * limit // found * 19 // 20)


def _plain(key: str) -> str:
    """Return a key as it can stand in a mark: no blanks, and nothing that ends a comment."""
    return re.sub(r"[^0-9A-Za-z._:]", "-", key)[:200].replace("--", "-.")


class OnceOnly:
    """Makes comments, and looks for one whose answer was lost before it makes it again.

    The first try needs no look. What was tried is remembered in memory; a caller that knows of a
    try in an earlier life says ``tried``.
    """

    def __init__(self) -> None:
        self._lost: OrderedDict[str, None] = OrderedDict()

    async def make(
        self,
        key: str | None,
        post: Callable[[], Awaitable[object]],
        is_there: Callable[[], Awaitable[bool]],
        *,
        tried: bool = False,
    ) -> None:
        """Make a comment unless it is there. Raises what ``post`` and ``is_there`` raise."""
        if key is None:
            await post()
            return
        if (tried or key in self._lost) and await is_there():
            self._lost.pop(key, None)
            return
        try:
            await post()
        except LostAnswer:
            self._remember(key)
            if not await is_there():
                raise
        self._lost.pop(key, None)

    def _remember(self, key: str) -> None:
        self._lost[key] = None
        while len(self._lost) > _REMEMBERED:
            self._lost.popitem(last=False)
