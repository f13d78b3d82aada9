"""Have a transcript that has become too long keep its beginning and its end."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise

from sortie.telemetry.transcripts.entries import Entry, Kind, encoded
from sortie.telemetry.transcripts.members import Member, members, packed

SMALLEST = 64 * 1024
"""Bytes that a transcript may have in any case."""

_SHARE = 64  # so many runs that never stop talking fill the store
_KEPT = 4  # a quarter of the limit at the beginning, and a quarter at the end


def limit_of(max_bytes: int) -> int:
    """Return how many bytes of ``history.max_bytes`` one transcript may take."""
    return max(SMALLEST, max_bytes // _SHARE)


def shortened(fd: int, limit: int, at: float) -> Iterator[bytes]:
    """Return the parts of a file that stay, and between them what says which lines are gone."""
    found = list(members(fd))
    head = _within(found[: _unbroken(found)], limit // _KEPT)
    tail = _within(found[head:][::-1], limit // _KEPT)
    gone = found[head : len(found) - tail]
    yield from _copied(fd, found[:head])
    if gone:
        yield _mark(found[head - 1].last + 1 if head else 1, gone[-1].last, at)
    yield from _copied(fd, found[len(found) - tail :])


def _unbroken(found: Sequence[Member]) -> int:
    """Return how many members stand before an earlier mark: that one goes with the lines that it
    tells of, else marks would fill the beginning."""
    following = pairwise(found)
    broken = (n for n, (one, next_) in enumerate(following, 1) if next_.first > one.last + 1)
    return next(broken, len(found))


def _within(found: Sequence[Member], room: int) -> int:
    """Return how many of some members fit."""
    for count, member in enumerate(found):
        room -= member.size
        if room < 0:
            return count
    return len(found)


def _mark(first: int, last: int, at: float) -> bytes:
    text = f"lines {first} to {last} are left out: the transcript had become too long"
    # It has the number of the last line that is gone, so that numbers go on rising.
    payload = encoded(Entry(at, Kind.GAP, None, text), last)
    return packed(payload, last, 1, ends=False)


def _copied(fd: int, found: Sequence[Member]) -> Iterator[bytes]:
    return (os.pread(fd, member.size, member.offset) for member in found)
