"""The parts of a transcript's file: gzip members that say in their headers what they hold.

Any gzip program reads such a file. What the header says more stands in an extra field (RFC 1952,
2.3.1.1): how long the member is, the number of its first line, how many there are, how long they
are unpacked, and whether they are the last ones.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

LARGEST = 8 << 20
"""Bytes that a member may have, packed or not: no file makes a reader take more at once."""

_HEADER = struct.Struct("<4sIBBH2sHIQIIB")
_MAGIC, _FIELD = b"\x1f\x8b\x08\x04", b"St"
_TRAILER = struct.Struct("<II")
_FIELD_SIZE = struct.calcsize("<IQIIB")
_LEVEL = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
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
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -12 if small else -15, 5 if small else 8)
    body = packer.compress(payload) + packer.flush()
    size = _HEADER.size + len(body) + _TRAILER.size
    header = _HEADER.pack(
        _MAGIC, 0, 0, 255, _FIELD_SIZE + 4, _FIELD, _FIELD_SIZE,
        size, first, lines, len(payload), ends,
    )  # fmt: skip
    return header + body + _TRAILER.pack(zlib.crc32(payload), len(payload) & 0xFFFFFFFF)


def members(fd: int) -> Iterator[Member]:
    """Return the whole members of a file, in their order, up to what is none."""
    end, offset = os.fstat(fd).st_size, 0
    while (found := _member(os.pread(fd, _HEADER.size, offset), offset)) and found.end <= end:
        yield found
        offset = found.end


def unpacked(fd: int, member: Member) -> bytes:
    """Return what a member holds. Raises ValueError where it is damaged."""
    data = os.pread(fd, member.size, member.offset)
    body, trailer = data[_HEADER.size : -_TRAILER.size], data[-_TRAILER.size :]
    try:
        payload = zlib.decompressobj(-15).decompress(body, member.unpacked + 1)
    except zlib.error as error:
        raise ValueError("a damaged member") from error
    if trailer != _TRAILER.pack(zlib.crc32(payload), member.unpacked & 0xFFFFFFFF):
        raise ValueError("a damaged member")
    return payload


def _member(header: bytes, offset: int) -> Member | None:
    if len(header) < _HEADER.size:
        return None
    magic, _, _, _, extra, field, length, size, first, lines, raw, ends = _HEADER.unpack(header)
    if (magic, extra, field, length) != (_MAGIC, _FIELD_SIZE + 4, _FIELD, _FIELD_SIZE):
        return None
    if not _HEADER.size + _TRAILER.size <= size <= LARGEST or raw > LARGEST or lines < 1:
        return None
    return Member(offset=offset, size=size, first=first, lines=lines, unpacked=raw, ends=bool(ends))
