"""The work of the writer's thread: clean, compress and append, and shorten."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from sortie.model import RunId
from sortie.model.secrets import redactor
from sortie.model.texts import CONTROL, cut
from sortie.telemetry.private_directory import PrivateDirectory, opened, words_of
from sortie.telemetry.transcripts.entries import Kind, TranscriptEntry, encoded
from sortie.telemetry.transcripts.files import (
    Member,
    members,
    name_of,
    packed,
)
from sortie.telemetry.transcripts.sink import FilePosition

LONGEST_LINE = 16 * 1024
"""Characters of a line; the middle of a longer one is left out."""

PIECE = 64 * 1024
"""Characters of an entry, about; what came at once is divided into such pieces."""

_TELLING_LINE = 16  # characters of a line that gives a secret of several lines away

WRITTEN_BLOCK = 256 * 1024
"""Bytes that go into one member, about: the more, the smaller they get; a reader unpacks all."""

SMALLEST_LIMIT = 64 * 1024
"""Bytes that a transcript may have in any case."""

_RUNS_IN_STORE = 64  # so many runs that never stop talking fill the store
_KEPT_QUARTER = 4  # a quarter of the limit at the beginning, and a quarter at the end

Clean = Callable[[str], str]
"""Makes a text fit for a transcript."""


class Unwritten(Struct, frozen=True):
    """Entries for a run's transcript; ``place`` is None where its file was not read yet."""

    run_id: RunId
    place: FilePosition | None
    entries: Sequence[TranscriptEntry]


class Written(Struct, frozen=True):
    """The results in the order given; None where a transcript could not be written, with ``error``.

    ``grown`` is by how many bytes the store is larger.
    """

    places: Sequence[FilePosition | None]
    error: str | None
    grown: int


def write(path: str, jobs: Sequence[Unwritten], clean: Clean, max_bytes: int) -> Written:
    """Append to transcripts, and shorten those that become too long. Blocks; raises no OSError."""
    places: list[FilePosition | None] = []
    error, grown = None, 0
    try:
        with opened(path, make=True) as directory:
            directory.require_room()
            for job in jobs:
                try:
                    begun = job.place or _look(directory, job.run_id)
                    place = _append(directory, job, begun, clean)
                    place = _shorten(directory, job, place, _limit_of(max_bytes))
                except OSError as exc:
                    places.append(None)
                    error = error or words_of(exc)
                else:
                    places.append(place)
                    grown += place.size - (job.place.size if job.place else 0)
    except OSError as exc:
        error = words_of(exc)
    return Written([*places, *[None] * (len(jobs) - len(places))], error, grown)


def _look(directory: PrivateDirectory, run_id: RunId) -> FilePosition:
    """Return where a file continues that an earlier life may have begun."""
    try:
        fd = directory.read(name_of(run_id))
    except FileNotFoundError:
        return FilePosition(0, 1)
    try:
        found = list(members(fd))
        return FilePosition(found[-1].end, found[-1].last + 1) if found else FilePosition(0, 1)
    finally:
        os.close(fd)


def _append(
    directory: PrivateDirectory, job: Unwritten, begun: FilePosition, clean: Clean
) -> FilePosition:
    line, parts = begun.line, list[bytes]()
    for payload, lines, ends in _blocks(job.entries, begun.line, clean):
        parts.append(packed(payload, line, lines, ends=ends))
        line += lines
    data = b"".join(parts)
    directory.append(name_of(job.run_id), data, begun.size)
    return FilePosition(begun.size + len(data), line)


def _blocks(
    entries: Sequence[TranscriptEntry], line: int, clean: Clean
) -> Iterator[tuple[bytes, int, bool]]:
    """Yield blocks of encoded entries: the bytes, the number of lines, whether they end it."""
    block, lines = bytearray(), 0
    texts = _cleaned(clean, [entry.text for entry in entries])
    for entry, whole in zip(entries, texts, strict=True):
        for text in _pieces(whole):
            piece = TranscriptEntry(entry.at, entry.kind, entry.turn, text, role=entry.role)
            block += encoded(piece, line + lines)
            lines += piece.lines
            if len(block) >= WRITTEN_BLOCK and entry is not entries[-1]:
                yield bytes(block), lines, False
                line, lines = line + lines, 0
                block.clear()
    yield bytes(block), lines, entries[-1].ends


def _shorten(
    directory: PrivateDirectory, job: Unwritten, place: FilePosition, limit: int
) -> FilePosition:
    if place.size <= limit:
        return place
    fd = directory.read(name_of(job.run_id))
    try:
        size = directory.replace(name_of(job.run_id), _shortened(fd, limit, job.entries[-1].at))
    finally:
        os.close(fd)
    return FilePosition(size, place.line)


def cleaner(secrets: Collection[str]) -> Clean:
    """Return what makes a text fit for a transcript: without secrets, without control characters
    for a terminal, and with bounded lines. It is the same for all runs: one may print what another
    was given."""
    redact = redactor(part for secret in secrets for part in _parts(secret))

    def clean(text: str) -> str:
        text = CONTROL.sub("\ufffd", redact(text))
        if len(text) <= LONGEST_LINE:
            return text
        return "\n".join(cut(line, LONGEST_LINE) for line in text.split("\n"))

    return clean


def _cleaned(clean: Clean, texts: Sequence[str]) -> Sequence[str]:
    """Return texts clean; one look at all of them tells whether there is anything to do."""
    whole = "\n".join(texts)
    return texts if clean(whole) == whole else [clean(text) for text in texts]


def _pieces(text: str) -> Iterator[str]:
    """Return a text in pieces of whole lines."""
    while len(text) > PIECE:
        end = text.rfind("\n", 0, PIECE)
        end = text.find("\n", PIECE) if end < 0 else end
        if end < 0:
            break
        yield text[:end]
        text = text[end + 1 :]
    yield text


def _parts(secret: str) -> Iterable[str]:
    """Return a secret, and the lines of a longer one that give it away by themselves."""
    lines = [line.strip() for line in secret.splitlines() if not line.startswith("-----")]
    return [secret.strip(), *(line for line in lines if len(line) >= _TELLING_LINE)]


def _limit_of(max_bytes: int) -> int:
    """Return how many bytes of ``history.max_bytes`` one transcript may take."""
    return max(SMALLEST_LIMIT, max_bytes // _RUNS_IN_STORE)


def _shortened(fd: int, limit: int, at: float) -> Iterator[bytes]:
    """Return the beginning and the end of a file, and between them a mark of the lines left out."""
    found = list(members(fd))
    head = _within(found[: _unbroken(found)], limit // _KEPT_QUARTER)
    tail = _within(found[head:][::-1], limit // _KEPT_QUARTER)
    gone = found[head : len(found) - tail]
    yield from _copied(fd, found[:head])
    if gone:
        yield _mark(found[head - 1].last + 1 if head else 1, gone[-1].last, at)
    yield from _copied(fd, found[len(found) - tail :])


def _unbroken(found: Sequence[Member]) -> int:
    """Return how many members stand before an earlier mark: that mark is left out too, or marks
    would fill the beginning."""
    following = pairwise(found)
    broken = (n for n, (one, next_) in enumerate(following, 1) if next_.first > one.last + 1)
    return next(broken, len(found))


def _within(found: Sequence[Member], room: int) -> int:
    """Return how many of these members fit."""
    for count, member in enumerate(found):
        room -= member.size
        if room < 0:
            return count
    return len(found)


def _mark(first: int, last: int, at: float) -> bytes:
    text = f"lines {first} to {last} are left out: the transcript had become too long"
    # Its number is that of the last line left out, so that numbers keep rising.
    payload = encoded(TranscriptEntry(at, Kind.GAP, None, text), last)
    return packed(payload, last, 1, ends=False)


def _copied(fd: int, found: Sequence[Member]) -> Iterator[bytes]:
    return (os.pread(fd, member.size, member.offset) for member in found)
