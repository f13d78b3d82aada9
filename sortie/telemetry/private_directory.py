"""A directory beside the database that holds files of its owner alone.

Rule 1: directory and files are for their owner alone, and no link is followed in place of them.
Rule 2: no descriptor stays open: a daemon may have a thousand files.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

from msgspec import Struct

_FRESH_SUFFIX = ".new"
_OPEN_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_DISK_RESERVE = 64 << 20
_RESERVED_FRACTION = 20  # a twentieth of a small disk
_KEPT_SHARE = 0.95  # so that not every write makes files be forgotten


class StoredFile(Struct, frozen=True, kw_only=True):
    """A file; ``changed_at`` is Unix seconds."""

    name: str
    size: int
    changed_at: float


class PrivateDirectory:
    """An open directory; all methods block, and raise OSError."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def read(self, name: str) -> int:
        """Return a descriptor of a file, for the caller to close."""
        return self._open(name, os.O_RDONLY)

    def append(self, name: str, data: bytes, size: int) -> None:
        """Write data at ``size``, the end of a file, which is made where it is not there.

        Anything after ``size`` is the rest of a write that failed. Where this write fails, the file
        is cut to its old length, if possible.
        """
        fd = self._open(name, os.O_RDWR | os.O_CREAT)
        try:
            if os.fstat(fd).st_size < size:
                raise OSError(errno.ESTALE, "another process has made it shorter")
            os.ftruncate(fd, size)
            _write_all(fd, data, size)
        finally:
            os.close(fd)

    def replace(self, name: str, parts: Iterator[bytes]) -> int:
        """Replace the content of a file; return its new length."""
        fresh = name + _FRESH_SUFFIX
        with suppress(FileNotFoundError):
            os.unlink(fresh, dir_fd=self._fd)
        fd = self._open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            size = 0
            for part in parts:
                _write_all(fd, part, size)
                size += len(part)
            os.rename(fresh, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        except OSError:
            with suppress(OSError):
                os.unlink(fresh, dir_fd=self._fd)
            raise
        finally:
            os.close(fd)
        return size

    def remove(self, name: str) -> None:
        """Delete a file; it may be gone already."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._fd)

    def stored(self, ours: re.Pattern[str]) -> Iterator[StoredFile]:
        """Return the files with such names, and delete what a crash left half made of them."""
        with os.scandir(self._fd) as found:
            names = [entry.name for entry in found]
        for name in names:
            if not ours.fullmatch(name.removesuffix(_FRESH_SUFFIX)):
                continue
            with suppress(FileNotFoundError):
                if name.endswith(_FRESH_SUFFIX):
                    os.unlink(name, dir_fd=self._fd)
                    continue
                about = os.stat(name, dir_fd=self._fd, follow_symlinks=False)
                yield StoredFile(name=name, size=about.st_size, changed_at=about.st_mtime)

    def require_room(self) -> None:
        """Leave the last of a disk to the database beside. Raises OSError where that is all."""
        about = os.fstatvfs(self._fd)
        free, size = about.f_bavail * about.f_frsize, about.f_blocks * about.f_frsize
        if free < min(_DISK_RESERVE, size // _RESERVED_FRACTION):
            raise OSError(errno.ENOSPC, f"only {free >> 10} KiB are left on its disk")

    def _open(self, name: str, access: int) -> int:
        fd = os.open(name, access | _OPEN_FLAGS, 0o600, dir_fd=self._fd)
        about = os.fstat(fd)
        if stat.S_ISREG(about.st_mode) and about.st_nlink == 1:
            return fd
        os.close(fd)
        raise OSError(errno.EPERM, "it is no file of ours")


@contextmanager
def opened(path: str, *, make: bool = False) -> Iterator[PrivateDirectory]:
    """Open a directory; ``make`` makes it, and closes it to others.

    Raises OSError, also for a link in its place and for another user's directory.
    """
    if make:
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if make:
            _claim(fd)
        yield PrivateDirectory(fd)
    finally:
        os.close(fd)


class Forgotten(Struct, frozen=True):
    """How many files are gone, and how many bytes are left."""

    count: int
    left: int


def forget(
    path: str, ours: re.Pattern[str], live: Collection[str], before: float, max_bytes: int
) -> Forgotten:
    """Delete the files with such names that last changed before a time (Unix seconds), and then the
    oldest ones while all together are too large; none of those in ``live``. Raises OSError."""
    try:
        with opened(path) as directory:
            found = sorted(directory.stored(ours), key=lambda each: each.changed_at)
            left, count = sum(each.size for each in found), 0
            room = max_bytes if left <= max_bytes else int(max_bytes * _KEPT_SHARE)
            for each in found:
                if each.name not in live and (each.changed_at < before or left > room):
                    directory.remove(each.name)
                    left, count = left - each.size, count + 1
            return Forgotten(count, left)
    except FileNotFoundError:
        return Forgotten(0, 0)


def words_of(error: OSError) -> str:
    """Return what the system says."""
    return error.strerror or str(error)


def _claim(fd: int) -> None:
    about = os.fstat(fd)
    if about.st_uid != os.geteuid():
        raise OSError(errno.EPERM, "it belongs to another user")
    if stat.S_IMODE(about.st_mode) & 0o077:
        os.fchmod(fd, 0o700)


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
