"""The files of segments: gzip, in which frames follow each other, a length before each.

Rule 1: a file is named by when its segment began, in milliseconds of Unix time.
Rule 2: what was written can be read up to there, also while more is written or after a crash.
"""

from __future__ import annotations

import os
import re
import struct
import zlib
from collections.abc import Iterator

from sortie.telemetry.private_directory import PrivateDirectory

OURS = re.compile(r"[0-9]{13}\.events\.gz")
"""The names of segments; their order is that of their beginnings."""

LARGEST_FRAME = 256 << 20
"""Bytes of a frame; a longer one is damage."""

_LENGTH = struct.Struct(">I")
_COMPRESSION, _GZIP = 6, 31
_READ_SIZE = 256 * 1024


def directory_of(db_path: str) -> str:
    """Return the path of the directory of a database's event log."""
    return f"{db_path}.events"


def name_of(at: float) -> str:
    """Return the name of the segment that began at this Unix time."""
    return f"{round(at * 1000):013}.events.gz"


def began_at(name: str) -> float:
    """Return when a segment of this name began, in Unix time."""
    return int(name.partition(".")[0]) / 1000


class SegmentFile:
    """A segment that is written; after an OSError it is of no more use."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.size = 0
        self._packer = zlib.compressobj(_COMPRESSION, zlib.DEFLATED, _GZIP)
        self._packed = bytearray()

    def add(self, payload: bytes) -> None:
        """Add a frame to what ``write`` writes."""
        self._packed += self._packer.compress(_LENGTH.pack(len(payload)))
        self._packed += self._packer.compress(payload)

    def write(self, directory: PrivateDirectory, *, ends: bool = False) -> None:
        """Write all frames so far, so that they can be read. Raises OSError."""
        self._packed += self._packer.flush(zlib.Z_FINISH if ends else zlib.Z_SYNC_FLUSH)
        directory.append(self.name, bytes(self._packed), self.size)
        self.size += len(self._packed)
        self._packed.clear()


def frames(fd: int) -> Iterator[bytes]:
    """Return the frames of a segment, up to the first that is not whole, and close it.

    Raises ValueError where it is damaged, and OSError.
    """
    unpacker, buffer = zlib.decompressobj(_GZIP), bytearray()
    try:
        while data := os.read(fd, _READ_SIZE):
            try:
                buffer += unpacker.decompress(data)
            except zlib.error as error:
                raise ValueError("it is damaged") from error
            at = 0
            while len(buffer) - at >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(buffer, at)
                if length > LARGEST_FRAME:
                    raise ValueError("it is damaged")
                end = at + _LENGTH.size + length
                if len(buffer) < end:
                    break
                yield bytes(buffer[at + _LENGTH.size : end])
                at = end
            del buffer[:at]
    finally:
        os.close(fd)
