"""The deliveries that have come, so that none counts twice.

Most services sign the body alone. So a delivery is known by its body as well as by its id: a copy
with another id is one that was recorded on the way.
"""

from __future__ import annotations

from collections import OrderedDict

LIFE = 86_400.0
"""Seconds for which a delivery is known."""

MOST = 20_000
"""Ids and bodies of one kind that are known; what came first is forgotten first."""

_LONGEST_ID = 200


class SeenDeliveries:
    """What has come of one kind; only authentic deliveries are put in, so that nobody else can have
    others forgotten."""

    def __init__(self) -> None:
        self._seen: OrderedDict[bytes, float] = OrderedDict()

    def has(self, id_: str, body: bytes, now: float) -> bool:
        """Tell whether a delivery has come, by its id or its body (the digest)."""
        while self._seen and next(iter(self._seen.values())) < now - LIFE:
            self._seen.popitem(last=False)
        return any(mark in self._seen for mark in _marks(id_, body))

    def add(self, id_: str, body: bytes, now: float) -> None:
        """Know a delivery by both from now on."""
        for mark in _marks(id_, body):
            self._seen.setdefault(mark, now)
        while len(self._seen) > MOST:
            self._seen.popitem(last=False)

    def __len__(self) -> int:
        return len(self._seen)


def _marks(id_: str, body: bytes) -> list[bytes]:
    marks = [b"body " + body]
    if id_:
        marks.append(b"id " + id_[:_LONGEST_ID].encode("utf-8", "replace"))
    return marks
