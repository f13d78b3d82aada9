"""The directory of transcripts, beside the database: a file for each run.

Rule 1: directory and files are for their owner alone, and no link is followed in place of them.
Rule 2: a file is named by its run's id and nothing else.
Rule 3: no descriptor stays open: a daemon may have a thousand runs.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from sortie.model import RunId

_RUN_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SUFFIX = ".jsonl.gz"
_FRESH = ".new"
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


def directory_of(db_path: str) -> str:
    """Return the path of the directory of a database's transcripts."""
    return f"{db_path}.transcripts"


def is_run_id(text: str) -> bool:
    """Tell whether a text can name a run, and therefore a file."""
    return _RUN_ID.fullmatch(text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTranscript:
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

        What stands behind that is the rest of a write that failed. Where this one fails, the
        file is as long as before, if it can be.
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
        """Have a run's file hold these parts and nothing else; return how long it is now."""
        fresh = _name(run_id) + _FRESH
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
        """Return what there is, and delete what a crash left half made."""
        with os.scandir(self._fd) as found:
            names = [entry.name for entry in found]
        for name in names:
            run_id = name.removesuffix(_FRESH).removesuffix(_SUFFIX)
            if not is_run_id(run_id) or not name.startswith(run_id + _SUFFIX):
                continue
            with suppress(FileNotFoundError):
                if name.endswith(_FRESH):
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
        fd = os.open(name, access | _FLAGS, 0o600, dir_fd=self._fd)
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
