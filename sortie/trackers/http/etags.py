"""Answers that are remembered with their ETags, so that what has not changed is not sent again.

An HTTP cache would answer for a minute by itself where a provider says ``max-age=60``; here the
server is asked every time. Entries are keyed by what was asked, never by a token, which changes.
"""

from __future__ import annotations

from collections import OrderedDict

from sortie.trackers.http.answers import Answer

Key = tuple[str, str]
"""An address with its query, and what is accepted."""

BYTES = 64 * 1024 * 1024
"""Bytes of bodies that are remembered; of more, what was asked for longest ago is forgotten."""

ENTRIES = 2000


class ETagMemory:
    """The last answer to each question that had an ETag, bounded."""

    def __init__(self, limit: int = BYTES, entries: int = ENTRIES) -> None:
        self._limit = limit
        self._entries = entries
        self._size = 0
        self._known: OrderedDict[Key, Answer] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def etag(self, key: Key) -> str | None:
        """Return what to send as ``If-None-Match``."""
        known = self._known.get(key)
        return None if known is None else known.headers["etag"]

    def get(self, key: Key) -> Answer | None:
        """Return the remembered answer, which has now been asked for last."""
        if key in self._known:
            self._known.move_to_end(key)
        return self._known.get(key)

    def put(self, key: Key, answer: Answer) -> None:
        """Remember an answer in the place of the one before; nothing where it has no ETag."""
        self.forget(key)
        if not answer.headers.get("etag") or len(answer.content) > self._limit:
            return
        self._known[key] = answer
        self._size += len(answer.content)
        while self._size > self._limit or len(self._known) > self._entries:
            self.forget(next(iter(self._known)))

    def forget(self, key: Key) -> None:
        """Remember nothing of this question."""
        if (known := self._known.pop(key, None)) is not None:
            self._size -= len(known.content)
