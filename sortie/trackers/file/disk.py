"""Files of issues on disk: read whole, replaced whole, under a lock between processes.

Rule 1: an issue's file is its old or its new content, never a part, whatever fails.
Rule 2: temporary files are made under the lock only, so one that is found there is left over.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from sortie.model import TrackerError, TrackerErrorKind
from sortie.resources import shortage_behind

LOCK_NAME = ".sortie-tracker-lock"
"""The lock file, beside the issues' files; it stays there, empty."""

_TEMPORARY_PREFIX, _TEMPORARY_SUFFIX = ".sortie-tracker-", ".tmp"

_CHUNK = 2**16

_PERMISSION = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


class LockTaken(Exception):
    """Another process holds the lock now."""


class NotAFile(Exception):
    """What stands there is a link, a directory, a FIFO or the like, or is too large."""


class Syscalls(Struct, frozen=True, kw_only=True):
    """What can fail where a file is written; others put their own functions in its place."""

    write: Callable[[int, bytes], int] = os.write
    fsync: Callable[[int], object] = os.fsync
    replace: Callable[[Path, Path], object] = os.replace


def stamp(status: os.stat_result) -> tuple[int, ...]:
    """Return what changes whenever a file does, as far as its file system's clock can tell."""
    return (
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_size,
        status.st_ino,
        status.st_dev,
        status.st_mode,
    )


def read(path: str | Path, limit: int) -> tuple[bytes, os.stat_result]:
    """Return a regular file's content, and its status from before it was read.

    Never follows a link and never waits for a FIFO. Raises OSError and NotAFile.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as exc:
        if exc.errno in (errno.ELOOP, errno.ENXIO):
            raise NotAFile("not a regular file; links are not followed") from exc
        raise
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise NotAFile("not a regular file; links are not followed")
        if status.st_size > limit:
            raise NotAFile(f"larger than {limit} bytes, which is the limit")
        raw = os.read(fd, status.st_size + 1)
        while len(raw) <= limit and (more := os.read(fd, _CHUNK)):
            raw += more
    finally:
        os.close(fd)
    if len(raw) > limit:
        raise NotAFile(f"larger than {limit} bytes, which is the limit")
    return raw, status


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold a directory's lock. Raises LockTaken at once where another process has it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    fd = os.open(directory / LOCK_NAME, flags, 0o666)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise LockTaken from exc
        yield
    finally:
        os.close(fd)


def replace_if_same(path: Path, old: bytes, new: bytes, calls: Syscalls) -> bool:
    """Put new content in a file's place unless it no longer holds the old; under the lock.

    Keeps mode and, where permitted, owner. Tells whether it was replaced. Raises OSError, and
    then the old content stands.
    """
    try:
        status = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    fd, name = tempfile.mkstemp(_TEMPORARY_SUFFIX, _TEMPORARY_PREFIX, path.parent)
    temporary = Path(name)
    try:
        with open(fd, "wb", buffering=0):
            _write_all(fd, new, calls)
            with suppress(PermissionError):
                os.fchown(fd, status.st_uid, status.st_gid)
            os.fchmod(fd, stat.S_IMODE(status.st_mode))
            calls.fsync(fd)
        if not _still_holds(path, old):
            return False
        calls.replace(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    _sync_directory(path.parent)
    return True


def is_leftover(name: str) -> bool:
    """Tell whether a file is what a writer left that was killed, unless it is at work now."""
    return name.startswith(_TEMPORARY_PREFIX) and name.endswith(_TEMPORARY_SUFFIX)


def remove_leftovers(directory: Path) -> None:
    """Remove what a writer that was killed left; under the lock."""
    for name in os.listdir(directory):
        if is_leftover(name):
            with suppress(FileNotFoundError):
                os.unlink(directory / name)


def translated(exc: OSError, attempt: str) -> TrackerError:
    """Return the error of this port for one of the operating system."""
    shortage = shortage_behind(exc)
    if shortage is not None:
        return TrackerError(TrackerErrorKind.UNAVAILABLE, f"{attempt}: {shortage}")
    reason = exc.strerror or type(exc).__name__
    if isinstance(exc.filename, str):
        reason = f"{reason} ({exc.filename!r})"
    if exc.errno in _PERMISSION:
        hint = "make it readable and writable for the user that runs Sortie"
        return TrackerError(TrackerErrorKind.PERMISSION, f"{attempt}: {reason}; {hint}")
    return TrackerError(TrackerErrorKind.UNAVAILABLE, f"{attempt}: {reason}")


def closed(exc: OSError, attempt: str) -> TrackerError:
    """Return the error of this port for one that no issue's own file is to blame for."""
    shortage = shortage_behind(exc)
    if shortage is not None:
        return TrackerError(TrackerErrorKind.CLOSED, f"{attempt}: {shortage}")
    reason = exc.strerror or type(exc).__name__
    hint = "make it writable for the user that runs Sortie, with some space on its disk"
    return TrackerError(TrackerErrorKind.CLOSED, f"{attempt}: {reason}; {hint}")


def forbids_one(exc: OSError) -> bool:
    """Tell whether one issue's file alone may not be replaced: it belongs to another user in a
    sticky directory, or was made immutable."""
    return exc.filename2 is not None and exc.errno in (errno.EACCES, errno.EPERM)


def _write_all(fd: int, data: bytes, calls: Syscalls) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[calls.write(fd, bytes(rest)) :]


def _still_holds(path: Path, old: bytes) -> bool:
    try:
        return read(path, len(old))[0] == old
    except (FileNotFoundError, NotAFile):
        return False


def _sync_directory(directory: Path) -> None:
    """Make a rename last; it is visible already, so a failure must not look like a refusal."""
    with suppress(OSError):
        fd = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
