"""Answers that are remembered with their ETags, so that what has not changed is not sent again.

An HTTP cache would answer for a minute by itself where a provider says ``max-age=60``; here the
server is asked every time. Entries are keyed by what was asked, never by a token, which changes.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from typing import Any

from msgspec import Struct

from sortie.trackers.http.answers import Answer

Key = tuple[str, str]
"""An address with its query, and what is accepted."""

BYTES = 64 * 1024 * 1024
"""Bytes of memory for answers; of more, what was asked for longest ago is forgotten."""

ENTRIES = 2000

_ENTRY = 1024
"""Bytes for what is the same with each entry: objects, the key, its place."""


class _Entry(Struct, frozen=True):
    answer: Answer
    size: int


class ETagMemory:
    """The last answer to each question that had an ETag, bounded by the memory that they take.

    What was parsed is kept, and not the bytes of the body, which nobody reads again.
    """

    def __init__(self, limit: int = BYTES, entries: int = ENTRIES) -> None:
        self._limit = limit
        self._entries = entries
        self._size = 0
        self._known: OrderedDict[Key, _Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    @property
    def size(self) -> int:
        """Bytes that all of it takes."""
        return self._size

    def etag(self, key: Key) -> str | None:
        """Return what to send as ``If-None-Match``."""
        known = self._known.get(key)
        return None if known is None else known.answer.headers["etag"]

    def get(self, key: Key) -> Answer | None:
        """Return the remembered answer, which has now been asked for last."""
        if (known := self._known.get(key)) is None:
            return None
        self._known.move_to_end(key)
        return known.answer

    def put(self, key: Key, answer: Answer) -> None:
        """Remember an answer in the place of the one before; nothing where it has no ETag or body.

        Raises NoJson.
        """
        self.forget(key)
        if not answer.headers.get("etag") or not 0 < len(answer.content) <= self._limit:
            return
        kept = answer.parsed_alone()
        size = size_of(kept)
        if size > self._limit:
            return
        self._known[key] = _Entry(kept, size)
        self._size += size
        while self._size > self._limit or len(self._known) > self._entries:
            self.forget(next(iter(self._known)))

    def forget(self, key: Key) -> None:
        """Remember nothing of this question."""
        if (known := self._known.pop(key, None)) is not None:
            self._size -= known.size


def size_of(answer: Answer) -> int:
    """Return the bytes of memory that an answer takes.

    The names in an answer are one object each, however often they occur.
    """
    size = _ENTRY + len(answer.content) + sum(map(_text_size, answer.headers.items()))
    names: set[str] = set()
    waiting: list[Any] = [answer.json()]
    while waiting:
        value = waiting.pop()
        if value is None or value is True or value is False:
            continue
        size += sys.getsizeof(value)
        if isinstance(value, dict):
            names.update(value)
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return size + sum(map(sys.getsizeof, names))


def _text_size(header: tuple[str, str]) -> int:
    return sys.getsizeof(header[0]) + sys.getsizeof(header[1])
