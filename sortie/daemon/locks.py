"""Locks that one daemon holds while it lives, so that no second one works on the same things.

Rule 1: the kernel drops a lock with its holder, so that what a crash or reboot left blocks nobody.
Rule 2: the file is never removed: a lock on a removed file would exclude nobody.
Rule 3: what is locked is the thing itself, by device and inode, so that no second name of it, by
a link, a mount or an upper case, lets another daemon in. The file beside or in it says who has it.
Rule 4: a database is let go after SQLite has closed it: closing a file drops all locks that SQLite
has on it in this process (fcntl; flock's own are apart from those on Linux, and only there).
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import stat
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Self

import psutil

from sortie.daemon.nested_roots import LOCK_NAME, nested_with
from sortie.model import SortieError, WorkspaceError

_NOTE_LIMIT = 4096
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP, errno.ENXIO})
_UNLOCKABLE = frozenset(
    {errno.EBADF, errno.EINVAL, errno.EISDIR, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}
)
_TRIES, _PAUSE = 4, 0.01  # seconds
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
        for left in reversed(range(_TRIES)):
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as exc:
                if not left:
                    raise self._held_by(_read_note(fd)) from exc
            time.sleep(_PAUSE)  # somebody may only look whether it is held
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


class RootLock(Lock):
    """The lock in a workspace root, which also knows the root again.

    A root that is gone, or whose disk is not mounted, must not be made anew in silence: agents
    would begin in empty directories, and what is on the disk would be taken for removed.
    """

    def __init__(self, root: str) -> None:
        super().__init__(root_lock_path(root), f"the workspace root {root}", root)
        self._root = root
        self._identity: tuple[int, int] | None = None

    def ensure(self) -> None:
        """Hold the lock from now on; see Lock. Raises WorkspaceError where it is another root, and
        HeldElsewhere where one of another daemon lies in it, or it in that."""
        self.check()
        is_new = self._identity is None
        super().ensure()
        if is_new and (other := nested_with(self._root, holder_of)) is not None:
            self.release()
            raise HeldElsewhere(other)
        self._identity = _identity(self._root)

    def check(self) -> bool:
        """Tell whether the root is the directory that was locked; False where none was yet.

        One that is mounted again is known by the lock file in it, which holds our note. Raises
        WorkspaceError for another directory, and where there is none any more.
        """
        if self._identity is None:
            return False
        if self._identity == _identity(self._root) or self._holds_our_note():
            return True
        raise WorkspaceError(
            f"the workspace root {self._root} is not what it was when it was locked: it was removed"
            " or replaced, or its disk is not mounted; bring it back, or restart the daemon to"
            " begin with what is there now"
        )

    def _holds_our_note(self) -> bool:
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            return self._note == os.pread(fd, _NOTE_LIMIT, 0)
        finally:
            os.close(fd)


def _identity(directory: str) -> tuple[int, int] | None:
    try:
        found = os.stat(directory)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


def living_holder(path: str) -> str | None:
    """Return who holds the lock file at ``path`` on this machine, None where nobody is known to.

    Goes by what the holder wrote: to try the lock would keep a daemon that starts just then out.
    """
    try:
        with open(path, "rb") as file:
            note = json.loads(file.read(_NOTE_LIMIT))
        written = datetime.fromisoformat(note["started_at"]).timestamp()
        process = psutil.Process(note["pid"])
        # A later process with that pid began after the note, which has whole seconds, was written.
        alive = process.create_time() < written + 1 and process.status() != psutil.STATUS_ZOMBIE
    except (OSError, ValueError, KeyError, TypeError, psutil.Error):
        return None
    return _shown(note) if alive and note.get("host") == socket.gethostname() else None


def holder_of(path: str) -> str | None:
    """Return who holds the lock file at ``path``, None where nobody does."""
    note = _note_of_holder(path)
    return None if note is None else _told(note)


def holding_pid(path: str) -> int | None:
    """Return the pid that the holder of the lock file at ``path`` has for itself, None where nobody
    holds it.

    A lock is the same in every namespace of the machine; pids and the boot's id need not be.
    """
    note = _note_of_holder(path)
    try:
        return None if note is None else int(json.loads(note)["pid"])
    except (ValueError, KeyError, TypeError):
        return None


def _note_of_holder(path: str) -> bytes | None:
    """Return what the holder of a lock file wrote, None where it is free; tries it for a moment."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(fd, _NOTE_LIMIT, 0)
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
        return json.loads(os.pread(fd, _NOTE_LIMIT, 0)).get("remark")
    except (OSError, ValueError, AttributeError):
        return None


def _read_note(fd: int) -> str:
    try:
        return _told(os.pread(fd, _NOTE_LIMIT, 0))
    except OSError:
        return _UNKNOWN_HOLDER


def _told(note: bytes) -> str:
    try:
        return _shown(json.loads(note))
    except (ValueError, KeyError, TypeError):
        return _UNKNOWN_HOLDER


def _holder_by_kernel(fd: int) -> str:
    """Return who holds the lock of an open file, where its note lies elsewhere; see proc(5)."""
    found = os.fstat(fd)
    inode = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    with suppress(OSError, ValueError, psutil.Error), open("/proc/locks", encoding="ascii") as file:
        for line in file:
            _, kind, _, _, pid, locked, *_ = line.split()
            if kind == "FLOCK" and locked == inode:
                began = datetime.fromtimestamp(psutil.Process(int(pid)).create_time(), UTC)
                since = began.isoformat(timespec="seconds")
                return _shown({"host": socket.gethostname(), "pid": int(pid), "started_at": since})
    return _UNKNOWN_HOLDER


def _shown(note: Mapping[str, object]) -> str:
    since = str(note["started_at"]).replace("+00:00", "Z")
    return f"host {note['host']}, pid {note['pid']}, since {since}"


def root_lock_path(root: str) -> str:
    """Return the path of the lock file of a workspace root."""
    return os.path.join(root, LOCK_NAME)


def database_lock(db_path: str) -> Lock:
    """Return the lock of a database; ensure it again once a new one was made."""
    return Lock(database_lock_path(db_path), f"the database {db_path}", db_path)


def database_lock_path(db_path: str) -> str:
    """Return where the lock of a database is: beside the file itself, whatever leads to it."""
    return f"{os.path.realpath(db_path)}.lock"
