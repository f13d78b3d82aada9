"""Locks that one daemon holds while it lives, so that no second one works on the same things.

Rule 1: the kernel drops a lock with its holder, so that what a crash or reboot left blocks nobody.
Rule 2: the file is never removed: a lock on a removed file would exclude nobody.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from contextlib import suppress
from datetime import UTC, datetime

from sortie.model import SortieError

_NOTE_LIMIT = 4096


class HeldElsewhere(SortieError):
    """Another daemon holds the lock."""


class Lock:
    """A lock file at ``path``; ``what`` says in messages what it protects."""

    def __init__(self, path: str, what: str) -> None:
        self._path = path
        self._what = what
        self._fd: int | None = None

    def ensure(self) -> None:
        """Hold the lock from now on, also where its file was removed meanwhile.

        Raises HeldElsewhere, naming the holder, and OSError where the file cannot be made.
        """
        if self._fd is not None and self._is_in_place(self._fd):
            return
        self.release()
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(self._path, flags, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            holder = _read_note(fd)
            os.close(fd)
            if isinstance(exc, BlockingIOError):
                raise HeldElsewhere(
                    f"{self._what} is in use by another daemon ({holder}); stop that one, or give"
                    " this one a place of its own"
                ) from exc
            raise
        _write_note(fd)
        self._fd = fd

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.release()

    def release(self) -> None:
        """Let others have it; safe more than once."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _is_in_place(self, fd: int) -> bool:
        with suppress(OSError):
            there, ours = os.stat(self._path, follow_symlinks=False), os.fstat(fd)
            return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)
        return False


def _write_note(fd: int) -> None:
    note = {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    os.ftruncate(fd, 0)
    os.pwrite(fd, json.dumps(note).encode(), 0)


def _read_note(fd: int) -> str:
    try:
        note = json.loads(os.pread(fd, _NOTE_LIMIT, 0))
        return f"host {note['host']}, pid {note['pid']}, since {note['started_at']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "it has not said who it is"


def database_lock(db_path: str) -> Lock:
    """Return the lock of a database, which lies beside it."""
    return Lock(f"{db_path}.lock", f"the database {db_path}")


def root_lock(root: str) -> Lock:
    """Return the lock of a workspace root, which lies in it under a name no workspace has."""
    return Lock(os.path.join(root, "@daemon.lock"), f"the workspace root {root}")
