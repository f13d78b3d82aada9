"""The files of transcripts, a directory of them beside the database, one file for each run.

A file is a row of gzip members that any gzip program reads. An extra field in the header of each
(RFC 1952, 2.3.1.1) says how long the member is, the number of its first line, how many lines there
are, how long they are unpacked, and whether they are the last ones.

Rule: a file is named by its run's id and nothing else.
"""

from __future__ import annotations

import errno
import os
import re
import struct
import zlib
from collections.abc import Iterator

from msgspec import Struct

from sortie.model import RunId

_RUN_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SUFFIX = ".jsonl.gz"
OURS = re.compile(_RUN_ID.pattern + re.escape(_SUFFIX))
"""The names of transcripts."""


def directory_of(db_path: str) -> str:
    """Return the path of the directory of a database's transcripts."""
    return f"{db_path}.transcripts"


def is_run_id(text: str) -> bool:
    """Tell whether a text can name a run, and therefore a file."""
    return _RUN_ID.fullmatch(text) is not None


def name_of(run_id: RunId) -> str:
    """Return the name of a run's file. Raises OSError where no run has such an id."""
    if not is_run_id(run_id):
        raise OSError(errno.EINVAL, "no run has such an id")
    return run_id + _SUFFIX


LARGEST_MEMBER = 8 << 20
"""Bytes of a member at most, packed or not: bounds what a reader takes at once."""

_HEADER = struct.Struct("<4sIBBH2sHIQIIB")
_MAGIC, _FIELD = b"\x1f\x8b\x08\x04", b"St"
_MEMBER_TRAILER = struct.Struct("<II")
_FIELD_SIZE = struct.calcsize("<IQIIB")
_COMPRESSION = 6


class Member(Struct, frozen=True, kw_only=True):
    """Where a member stands in its file, and what is in it; ``unpacked`` is in bytes."""

    offset: int
    size: int
    first: int
    lines: int
    unpacked: int
    ends: bool

    @property
    def end(self) -> int:
        """Where the next member begins."""
        return self.offset + self.size

    @property
    def last(self) -> int:
        """The number of its last line."""
        return self.first + self.lines - 1


def packed(payload: bytes, first: int, lines: int, *, ends: bool) -> bytes:
    """Return a member that holds encoded entries, ``lines`` lines from number ``first`` on."""
    # A small window costs little to set up, and what is short needs no larger one.
    small = len(payload) <= 4096
    packer = zlib.compressobj(_COMPRESSION, zlib.DEFLATED, -12 if small else -15, 5 if small else 8)
    body = packer.compress(payload) + packer.flush()
    size = _HEADER.size + len(body) + _MEMBER_TRAILER.size
    header = _HEADER.pack(
        _MAGIC, 0, 0, 255, _FIELD_SIZE + 4, _FIELD, _FIELD_SIZE,
        size, first, lines, len(payload), ends,
    )  # fmt: skip
    return header + body + _MEMBER_TRAILER.pack(zlib.crc32(payload), len(payload) & 0xFFFFFFFF)


def members(fd: int) -> Iterator[Member]:
    """Return the whole members of a file, in their order, up to the first that is not whole."""
    end, offset = os.fstat(fd).st_size, 0
    while (found := _member(os.pread(fd, _HEADER.size, offset), offset)) and found.end <= end:
        yield found
        offset = found.end


def unpacked(fd: int, member: Member) -> bytes:
    """Return what a member holds. Raises ValueError where it is damaged."""
    data = os.pread(fd, member.size, member.offset)
    body, trailer = data[_HEADER.size : -_MEMBER_TRAILER.size], data[-_MEMBER_TRAILER.size :]
    try:
        payload = zlib.decompressobj(-15).decompress(body, member.unpacked + 1)
    except zlib.error as error:
        raise ValueError("a damaged member") from error
    if trailer != _MEMBER_TRAILER.pack(zlib.crc32(payload), member.unpacked & 0xFFFFFFFF):
        raise ValueError("a damaged member")
    return payload


def _member(header: bytes, offset: int) -> Member | None:
    if len(header) < _HEADER.size:
        return None
    magic, _, _, _, extra, field, length, size, first, lines, raw, ends = _HEADER.unpack(header)
    if (magic, extra, field, length) != (_MAGIC, _FIELD_SIZE + 4, _FIELD, _FIELD_SIZE):
        return None
    if (
        not _HEADER.size + _MEMBER_TRAILER.size <= size <= LARGEST_MEMBER
        or raw > LARGEST_MEMBER
        or lines < 1
    ):
        return None
    return Member(offset=offset, size=size, first=first, lines=lines, unpacked=raw, ends=bool(ends))
