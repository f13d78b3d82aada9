"""Locks that one daemon holds while it lives, so that no second one works on the same things.

Rule 1: the kernel drops a lock with its holder, so that a crash or reboot leaves none.
Rule 2: the lock file is never removed: a lock on a removed file would exclude no daemon.
Rule 3: the protected thing itself is locked, by device and inode, so that no second name of it, by
a link, a mount or an upper case, lets another daemon in. The lock file says which daemon holds it.
Rule 4: a database is released after SQLite has closed it: closing a file drops all fcntl locks that
SQLite has on it in this process (flock's own are separate from those on Linux, and only there).
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Self

import psutil

from sortie.model import SortieError

LOCK_NOTE_BYTES = 4096
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP, errno.ENXIO})
_UNLOCKABLE = frozenset(
    {errno.EBADF, errno.EINVAL, errno.EISDIR, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}
)
_LOCK_TRIES, _LOCK_PAUSE = 4, 0.01  # seconds
_UNKNOWN_HOLDER = "it has not said who it is"


class HeldElsewhere(SortieError):
    """Another daemon holds the lock."""


class Lock:
    """A lock file at ``path``; ``what`` says in messages what it protects.

    ``protected`` is the file or directory itself, which is locked as well, where it is there and
    the system can: on Linux, and not on every network file system.
    """

    def __init__(self, path: str, what: str, protected: str | None = None) -> None:
        self._path = path
        self._what = what
        self._protected = protected if sys.platform == "linux" else None
        self._held: dict[str, int] = {}
        self._note = b""
        self._remark: object = None

    @property
    def remark(self) -> object:
        """What the holder, or the last one, has noted about what is protected; None for nothing."""
        return self._remark

    def note(self, remark: object) -> None:
        """Note something about what is protected, as JSON, for the next holder. Raises OSError."""
        self._remark = remark
        self._note = _write_note(self._held[self._path], remark)

    def ensure(self) -> None:
        """Hold the lock from now on, also where its file was removed meanwhile.

        Call it again when what is protected was made, so that this is locked too.
        Raises HeldElsewhere, naming the holder, and OSError where the file cannot be made.
        """
        if not all(_is_in_place(path, fd) for path, fd in self._held.items()):
            self.release()
        try:
            is_new = not self._held
            if is_new:
                self._lock_file()
            if self._protected is not None and self._protected not in self._held:
                self._lock_protected(self._protected)
            if is_new:
                self._note = _write_note(self._held[self._path], self._remark)
        except (HeldElsewhere, OSError):
            self.release()
            raise

    def _lock_file(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = self._held[self._path] = os.open(self._path, flags, 0o600)
        for left in reversed(range(_LOCK_TRIES)):
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as exc:
                if not left:
                    raise self._held_by(_read_note(fd)) from exc
            time.sleep(_LOCK_PAUSE)  # ``holder_of`` takes the lock for a moment
        if self._remark is None:
            self._remark = _remark_in(fd)

    def _lock_protected(self, path: str) -> None:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as exc:
            if exc.errno in _ABSENT:
                return
            raise
        self._held[path] = fd
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            raise self._held_by(_holder_by_kernel(fd)) from exc
        except OSError as exc:
            if exc.errno not in _UNLOCKABLE:
                raise

    def _held_by(self, holder: str) -> HeldElsewhere:
        return HeldElsewhere(
            f"{self._what} is in use by another daemon ({holder}); stop that one, or give this one"
            " a place of its own"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.release()

    def release(self) -> None:
        """Let others have it; safe more than once."""
        while self._held:
            os.close(self._held.popitem()[1])


def _is_in_place(path: str, fd: int) -> bool:
    with suppress(OSError):
        return os.path.samestat(os.stat(path), os.fstat(fd))
    return False


def holder_of(path: str) -> str | None:
    """Return the holder of the lock file at ``path`` in words, None where it is not locked."""
    note = _note_of_holder(path)
    return None if note is None else _holder_in(note)


def holding_pid(path: str) -> int | None:
    """Return the pid that the holder of the lock file at ``path`` has in its own namespace, None
    where the file is not locked."""
    note = _note_of_holder(path)
    try:
        return None if note is None else int(json.loads(note)["pid"])
    except (ValueError, KeyError, TypeError):
        return None


def _note_of_holder(path: str) -> bytes | None:
    """Return the note of the holder of a lock file, None where it is free; tries to lock it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(fd, LOCK_NOTE_BYTES, 0)
    except OSError:
        return None
    finally:
        os.close(fd)
    return None


def _write_note(fd: int, remark: object) -> bytes:
    note: dict[str, object] = {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    if remark is not None:
        note["remark"] = remark
    written = json.dumps(note).encode()
    os.ftruncate(fd, 0)
    os.pwrite(fd, written, 0)
    return written


def _remark_in(fd: int) -> object:
    try:
        return json.loads(os.pread(fd, LOCK_NOTE_BYTES, 0)).get("remark")
    except (OSError, ValueError, AttributeError):
        return None


def _read_note(fd: int) -> str:
    try:
        return _holder_in(os.pread(fd, LOCK_NOTE_BYTES, 0))
    except OSError:
        return _UNKNOWN_HOLDER


def _holder_in(note: bytes) -> str:
    try:
        return _holder_text(json.loads(note))
    except (ValueError, KeyError, TypeError):
        return _UNKNOWN_HOLDER


def _holder_by_kernel(fd: int) -> str:
    """Return the holder of the lock of an open file by proc(5), as its note lies elsewhere."""
    found = os.fstat(fd)
    inode = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    with suppress(OSError, ValueError, psutil.Error), open("/proc/locks", encoding="ascii") as file:
        for line in file:
            _, kind, _, _, pid, locked, *_ = line.split()
            if kind == "FLOCK" and locked == inode:
                began = datetime.fromtimestamp(psutil.Process(int(pid)).create_time(), UTC)
                since = began.isoformat(timespec="seconds")
                return _holder_text(
                    {"host": socket.gethostname(), "pid": int(pid), "started_at": since}
                )
    return _UNKNOWN_HOLDER


def _holder_text(note: Mapping[str, object]) -> str:
    since = str(note["started_at"]).replace("+00:00", "Z")
    return f"host {note['host']}, pid {note['pid']}, since {since}"


def database_lock(db_path: str) -> Lock:
    """Return the lock of a database; ensure it again once a new one was made."""
    return Lock(database_lock_path(db_path), f"the database {db_path}", db_path)


def database_lock_path(db_path: str) -> str:
    """Return where the lock of a database is: beside the file itself, whatever leads to it."""
    return f"{os.path.realpath(db_path)}.lock"
