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

    def is_new(self, id_: str, body: bytes, now: float) -> bool:
        """Tell whether neither id nor body (its digest) has come, and know both from now on."""
        while self._seen and next(iter(self._seen.values())) < now - LIFE:
            self._seen.popitem(last=False)
        marks = [b"body " + body]
        if id_:
            marks.append(b"id " + id_[:_LONGEST_ID].encode("utf-8", "replace"))
        known = any(mark in self._seen for mark in marks)
        for mark in marks:
            self._seen.setdefault(mark, now)
        while len(self._seen) > MOST:
            self._seen.popitem(last=False)
        return not known

    def __len__(self) -> int:
        return len(self._seen)
