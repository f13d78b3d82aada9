"""Answers that are remembered with their ETags, so that what has not changed is not sent again.

An HTTP cache would answer for a minute by itself where a provider says ``max-age=60``; here the
server is asked every time. Entries are keyed by what was asked, never by a token, which changes.
"""

from __future__ import annotations

from collections import OrderedDict

from msgspec.structs import replace

from sortie.http.answers import HttpAnswer

Key = tuple[str, str]
"""An address with its query, and what is accepted."""

REMEMBERED_BYTES = 24 * 1024 * 1024
"""Bytes of bodies that are remembered, as they came; parsed they take two to three times that."""

REMEMBERED_ANSWERS = 2000


class ETagMemory:
    """The last answer to each question that had an ETag; what was asked for longest ago goes first.

    What was parsed is kept, and not the bytes of the body, which is not read again.
    """

    def __init__(self, limit: int = REMEMBERED_BYTES, answers: int = REMEMBERED_ANSWERS) -> None:
        self._limit = limit
        self._answers = answers
        self._known: OrderedDict[Key, tuple[HttpAnswer, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    @property
    def size(self) -> int:
        """Bytes of all bodies, as they came."""
        return sum(size for _, size in self._known.values())

    def get(self, key: Key) -> HttpAnswer | None:
        """Return the remembered answer, which has now been asked for last."""
        if key not in self._known:
            return None
        self._known.move_to_end(key)
        return self._known[key][0]

    def put(self, key: Key, answer: HttpAnswer) -> None:
        """Remember an answer in the place of the one before; nothing where it has no ETag or body.

        Raises NoJson.
        """
        self._known.pop(key, None)
        size = len(answer.content)
        if not answer.headers.get("etag") or not 0 < size <= self._limit:
            return
        answer.json()
        self._known[key] = replace(answer, content=b""), size
        while self.size > self._limit or len(self._known) > self._answers:
            self._known.popitem(last=False)
