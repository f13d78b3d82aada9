"""Read pages of a transcript, beside a daemon that writes it or without one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from sortie.model import RunId
from sortie.telemetry.private_directory import opened
from sortie.telemetry.transcripts.entries import TranscriptLine, decoded
from sortie.telemetry.transcripts.files import members, name_of, unpacked

PAGE_BYTES = 4 << 20
"""Characters of text after which a page ends, whatever limit was asked for."""


class TranscriptPage(Struct, frozen=True, kw_only=True):
    """Some lines, in their order.

    ``more``: lines after these are there already. ``ended``: the run's end is among these or was
    before them. ``damage`` says that what follows cannot be read.
    """

    lines: tuple[TranscriptLine, ...] = ()
    more: bool = False
    ended: bool = False
    damage: str | None = None


def read_page(path: str, run_id: RunId, after: int, limit: int) -> TranscriptPage:
    """Return the lines after the one with the number ``after``, ``limit`` at most.

    Blocks. Raises FileNotFoundError where there is no transcript, and OSError where it cannot be
    read.
    """
    with _open(path, run_id) as fd:
        return _page(fd, after, limit)


def read_last(path: str, run_id: RunId, limit: int) -> TranscriptPage:
    """Return the last lines, ``limit`` at most; as ``read_page``."""
    with _open(path, run_id) as fd:
        last = max((member.last for member in members(fd)), default=0)
        return _page(fd, max(0, last - limit), limit)


@contextmanager
def _open(path: str, run_id: RunId) -> Iterator[int]:
    with opened(path) as directory:
        fd = directory.read(name_of(run_id))
    try:
        yield fd
    finally:
        os.close(fd)


def _page(fd: int, after: int, limit: int) -> TranscriptPage:
    lines: list[TranscriptLine] = []
    room, end, last = PAGE_BYTES, 0, None
    for member in members(fd):
        end, last = member.end, member
        if member.last <= after:
            continue
        try:
            for line in decoded(unpacked(fd, member)):
                if line.number <= after:
                    continue
                if len(lines) == limit or (lines and room < len(line.text)):
                    return TranscriptPage(lines=tuple(lines), more=True)
                lines.append(line)
                room -= len(line.text)
        except ValueError:
            return TranscriptPage(lines=tuple(lines), damage=_DAMAGED)
    torn = os.fstat(fd).st_size > end
    return TranscriptPage(
        lines=tuple(lines),
        ended=last is not None and last.ends and not torn,
        damage=_TORN if torn else None,
    )


_DAMAGED = "the file is damaged; the lines after these cannot be read"
_TORN = "the last lines were being written, or a crash has cut them short"
