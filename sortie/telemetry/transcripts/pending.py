"""What of one run's transcript waits to be written.

Rule: no more than ``LIMIT`` characters wait. Of what comes faster the middle is left out: how it
began and how it ends is mostly worth more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from sortie.model import cut
from sortie.telemetry.transcripts.entries import Entry, Kind

LIMIT = 2 << 20
"""Characters of one run that wait at the most."""

_HALF = LIMIT // 2
_OVERHEAD = 64  # characters that an entry counts beside its text: a million empty ones are much


class Pending:
    """Entries in their order: the first ones, a gap where some had to go, and the last ones."""

    __slots__ = ("_first", "_first_size", "_gone", "_last", "_last_size")

    def __init__(self) -> None:
        self._first: list[Entry] = []
        self._last: deque[Entry] | None = None
        self._first_size = self._last_size = self._gone = 0

    def __len__(self) -> int:
        return len(self._first) + len(self._last or ())

    @property
    def size(self) -> int:
        """How many characters wait."""
        return self._first_size + self._last_size

    def add(self, entry: Entry) -> int:
        """Take an entry, and return how many characters more wait now; none is longer than a
        quarter of the limit."""
        size = len(entry.text) + _OVERHEAD
        if self._last is None and self._first_size + size <= _HALF:
            self._first.append(entry)
            self._first_size += size
            return size
        if self._last is None:
            self._last = deque()
        before = self._last_size
        self._last.append(entry)
        self._last_size += size
        while self._last_size > _HALF:
            oldest = self._last.popleft()
            self._last_size -= len(oldest.text) + _OVERHEAD
            self._count(oldest.lines)
        return self._last_size - before

    def leave_out(self, entry: Entry) -> None:
        """Count an entry that there is no room for, and all that comes as belonging behind it."""
        self._count(entry.lines)

    def take_over(self, later: Pending) -> None:
        """Take what waits elsewhere and came later."""
        for entry in later._first:
            self.add(entry)
        if later._gone:
            self._count(later._gone)
        for entry in later._last or ():
            self.add(entry)

    def entries(self) -> Sequence[Entry]:
        """Return what waits, with what says how much had to go."""
        last = list(self._last or ())
        if not self._gone:
            return [*self._first, *last]
        at = (last or self._first)[0].at if len(self) else 0.0
        text = f"{self._gone} lines are left out: they came faster than they could be written"
        return [*self._first, Entry(at, Kind.GAP, None, text), *last]

    def _count(self, lines: int) -> None:
        if self._last is None:
            self._last = deque()
        self._gone += lines


def bounded(text: str) -> str:
    """Return a text that one entry can have; the middle of a longer one is left out."""
    return text if len(text) <= LIMIT // 4 else cut(text, LIMIT // 4)
