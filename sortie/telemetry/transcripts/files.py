"""The files of transcripts, a directory of them beside the database, one file for each run.

A file is a row of gzip members that any gzip program reads. An extra field in the header of each
(RFC 1952, 2.3.1.1) says how long the member is, the number of its first line, how many lines there
are, how long they are unpacked, and whether they are the last ones.

Rule 1: directory and files are for their owner alone, and no link is followed in place of them.
Rule 2: a file is named by its run's id and nothing else.
Rule 3: no descriptor stays open: a daemon may have a thousand runs.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from msgspec import Struct

from sortie.model import RunId

_RUN_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SUFFIX = ".jsonl.gz"
_FRESH_SUFFIX = ".new"
_OPEN_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


def directory_of(db_path: str) -> str:
    """Return the path of the directory of a database's transcripts."""
    return f"{db_path}.transcripts"


def is_run_id(text: str) -> bool:
    """Tell whether a text can name a run, and therefore a file."""
    return _RUN_ID.fullmatch(text) is not None


class StoredTranscript(Struct, frozen=True, kw_only=True):
    """A file; ``changed_at`` is Unix seconds."""

    run_id: RunId
    size: int
    changed_at: float


class TranscriptDirectory:
    """An open directory of transcripts; all methods block, and raise OSError."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def read(self, run_id: RunId) -> int:
        """Return a descriptor of a run's file, for the caller to close."""
        return self._open(_name(run_id), os.O_RDONLY)

    def append(self, run_id: RunId, data: bytes, size: int) -> None:
        """Write data at ``size``, the end of a run's file, which is made where it is not there.

        Anything after ``size`` is the rest of a write that failed. Where this write fails, the file
        is cut to its old length, if possible.
        """
        fd = self._open(_name(run_id), os.O_RDWR | os.O_CREAT)
        try:
            if os.fstat(fd).st_size < size:
                raise OSError(errno.ESTALE, "somebody has made it shorter")
            os.ftruncate(fd, size)
            _write_all(fd, data, size)
        finally:
            os.close(fd)

    def replace(self, run_id: RunId, parts: Iterator[bytes]) -> int:
        """Replace the content of a run's file; return its new length."""
        fresh = _name(run_id) + _FRESH_SUFFIX
        with suppress(FileNotFoundError):
            os.unlink(fresh, dir_fd=self._fd)
        fd = self._open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            size = 0
            for part in parts:
                _write_all(fd, part, size)
                size += len(part)
            os.rename(fresh, _name(run_id), src_dir_fd=self._fd, dst_dir_fd=self._fd)
        except OSError:
            with suppress(OSError):
                os.unlink(fresh, dir_fd=self._fd)
            raise
        finally:
            os.close(fd)
        return size

    def remove(self, run_id: RunId) -> None:
        """Delete a run's file; it may be gone already."""
        with suppress(FileNotFoundError):
            os.unlink(_name(run_id), dir_fd=self._fd)

    def stored(self) -> Iterator[StoredTranscript]:
        """Return all transcripts, and delete what a crash left half made."""
        with os.scandir(self._fd) as found:
            names = [entry.name for entry in found]
        for name in names:
            run_id = name.removesuffix(_FRESH_SUFFIX).removesuffix(_SUFFIX)
            if not is_run_id(run_id) or not name.startswith(run_id + _SUFFIX):
                continue
            with suppress(FileNotFoundError):
                if name.endswith(_FRESH_SUFFIX):
                    os.unlink(name, dir_fd=self._fd)
                    continue
                about = os.stat(name, dir_fd=self._fd, follow_symlinks=False)
                yield StoredTranscript(
                    run_id=RunId(run_id), size=about.st_size, changed_at=about.st_mtime
                )

    def free(self) -> tuple[int, int]:
        """Return how many bytes the file system has left, and how many it has."""
        about = os.fstatvfs(self._fd)
        return about.f_bavail * about.f_frsize, about.f_blocks * about.f_frsize

    def _open(self, name: str, access: int) -> int:
        fd = os.open(name, access | _OPEN_FLAGS, 0o600, dir_fd=self._fd)
        about = os.fstat(fd)
        if stat.S_ISREG(about.st_mode) and about.st_nlink == 1:
            return fd
        os.close(fd)
        raise OSError(errno.EPERM, "it is no file of ours")


@contextmanager
def opened(path: str, *, make: bool = False) -> Iterator[TranscriptDirectory]:
    """Open a directory of transcripts; ``make`` makes it, and closes it to others.

    Raises OSError, also for a link in its place and for another user's directory.
    """
    if make:
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if make:
            _claim(fd)
        yield TranscriptDirectory(fd)
    finally:
        os.close(fd)


def _claim(fd: int) -> None:
    about = os.fstat(fd)
    if about.st_uid != os.geteuid():
        raise OSError(errno.EPERM, "it belongs to another user")
    if stat.S_IMODE(about.st_mode) & 0o077:
        os.fchmod(fd, 0o700)


def _name(run_id: RunId) -> str:
    if not is_run_id(run_id):
        raise OSError(errno.EINVAL, "no run has such an id")
    return run_id + _SUFFIX


def _write_all(fd: int, data: bytes, offset: int) -> None:
    rest, at = memoryview(data), offset
    try:
        while rest:
            count = os.pwrite(fd, rest, at)
            rest, at = rest[count:], at + count
    except OSError:
        with suppress(OSError):
            os.ftruncate(fd, offset)
        raise


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
