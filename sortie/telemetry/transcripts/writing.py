"""Write what was collected, in a thread: cleaned, compressed, appended; and forget what is old."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterator, Sequence

from sortie.dataclass import dataclass
from sortie.model import RunId
from sortie.telemetry.transcripts.cleaning import Cleaner, pieces
from sortie.telemetry.transcripts.directory import TranscriptDirectory, opened
from sortie.telemetry.transcripts.entries import Entry, encoded
from sortie.telemetry.transcripts.members import members, packed
from sortie.telemetry.transcripts.shortening import limit_of, shortened
from sortie.telemetry.transcripts.sink import Place

BLOCK = 256 * 1024
"""Bytes that go into one member, about: the more, the smaller they get; a reader unpacks all."""

_RESERVE = 64 << 20
_RESERVED_SHARE = 20  # of a small disk a twentieth
_SPARED = 0.95  # not each new line shall make somebody forget a run


@dataclass(frozen=True, slots=True)
class Unwritten:
    """What a run's transcript is to get; ``place`` is None where nobody has looked at its file."""

    run_id: RunId
    place: Place | None
    entries: Sequence[Entry]


@dataclass(frozen=True, slots=True)
class Written:
    """What came of it, in the order given; None where it could not be written, with ``error``.

    ``grown`` is by how many bytes the store is larger.
    """

    places: Sequence[Place | None]
    error: str | None
    grown: int


def write(path: str, jobs: Sequence[Unwritten], clean: Cleaner, max_bytes: int) -> Written:
    """Append to transcripts, and shorten those that become too long. Blocks; raises nothing of
    the system."""
    places: list[Place | None] = []
    error, grown = None, 0
    try:
        with opened(path, make=True) as directory:
            _require_room(directory)
            for job in jobs:
                try:
                    begun = job.place or _look(directory, job.run_id)
                    place = _append(directory, job, begun, clean)
                    place = _shorten(directory, job, place, limit_of(max_bytes))
                except OSError as exc:
                    places.append(None)
                    error = error or _words(exc)
                else:
                    places.append(place)
                    grown += place.size - (job.place.size if job.place else 0)
    except OSError as exc:
        error = _words(exc)
    return Written([*places, *[None] * (len(jobs) - len(places))], error, grown)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How many transcripts are gone, and how many bytes are left."""

    count: int
    left: int


def forget(path: str, live: Collection[RunId], before: float, max_bytes: int) -> Forgotten:
    """Delete the transcripts of runs that ended before a time (Unix seconds), and then the oldest
    ones while all together are too large; none of a live run. Raises OSError."""
    try:
        with opened(path) as directory:
            found = sorted(directory.stored(), key=lambda each: each.changed_at)
            left, count = sum(each.size for each in found), 0
            room = max_bytes if left <= max_bytes else int(max_bytes * _SPARED)
            for each in found:
                if each.run_id not in live and (each.changed_at < before or left > room):
                    directory.remove(each.run_id)
                    left, count = left - each.size, count + 1
            return Forgotten(count, left)
    except FileNotFoundError:
        return Forgotten(0, 0)


def _require_room(directory: TranscriptDirectory) -> None:
    """Leave the last of a disk to others: the database beside must be written."""
    free, size = directory.free()
    if free < min(_RESERVE, size // _RESERVED_SHARE):
        raise OSError(errno.ENOSPC, f"only {free >> 10} KiB are left on its disk")


def _look(directory: TranscriptDirectory, run_id: RunId) -> Place:
    """Return where a file goes on that somebody else has begun, or nobody yet."""
    try:
        fd = directory.read(run_id)
    except FileNotFoundError:
        return Place(0, 1)
    try:
        found = list(members(fd))
        return Place(found[-1].end, found[-1].last + 1) if found else Place(0, 1)
    finally:
        os.close(fd)


def _append(directory: TranscriptDirectory, job: Unwritten, begun: Place, clean: Cleaner) -> Place:
    line, parts = begun.line, list[bytes]()
    for payload, lines, ends in _blocks(job.entries, begun.line, clean):
        parts.append(packed(payload, line, lines, ends=ends))
        line += lines
    data = b"".join(parts)
    directory.append(job.run_id, data, begun.size)
    return Place(begun.size + len(data), line)


def _blocks(
    entries: Sequence[Entry], line: int, clean: Cleaner
) -> Iterator[tuple[bytes, int, bool]]:
    """Return encoded entries by the block: their bytes, how many lines, whether they end it."""
    block, lines = bytearray(), 0
    texts = clean.all([entry.text for entry in entries])
    for entry, whole in zip(entries, texts, strict=True):
        for text in pieces(whole):
            piece = Entry(entry.at, entry.kind, entry.turn, text)
            block += encoded(piece, line + lines)
            lines += piece.lines
            if len(block) >= BLOCK and entry is not entries[-1]:
                yield bytes(block), lines, False
                line, lines = line + lines, 0
                block.clear()
    yield bytes(block), lines, entries[-1].ends


def _shorten(directory: TranscriptDirectory, job: Unwritten, place: Place, limit: int) -> Place:
    if place.size <= limit:
        return place
    fd = directory.read(job.run_id)
    try:
        size = directory.replace(job.run_id, shortened(fd, limit, job.entries[-1].at))
    finally:
        os.close(fd)
    return Place(size, place.line)


def _words(error: OSError) -> str:
    return error.strerror or str(error)
