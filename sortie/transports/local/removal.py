"""Removes a directory tree of any depth and any mode, through file descriptors only.

It stops at mounts: what is mounted in the tree is no part of it.
A tree deeper than LEVELS is taken apart by moving what is below up to its top, so that neither
open files nor the stack grow with the depth of a tree.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from trio.from_thread import check_cancelled

from sortie.model import TransportError
from sortie.transports.local.safe_open import DIRECTORY

_MOUNT_TABLE = "/proc/self/mountinfo"
_MOUNT_POINT = 4  # the mount point, among the fields of a line; see proc(5)
_FDINFO_LIMIT = 4096  # bytes; the number stands in the third line
_OCTAL_ESCAPE = re.compile(rb"\\([0-7]{3})")


def mounts_in(path: str) -> list[str]:
    """Return the mount points at a real path and below it, the upper ones first.

    Raises OSError where they cannot be told.
    """
    if sys.platform != "linux":
        return []
    with _known(), open(_MOUNT_TABLE, "rb") as file:
        points = [_unescaped(line.split(b" ")[_MOUNT_POINT]) for line in file]
    below = path.rstrip("/") + "/"
    return sorted({point for point in points if point == path or point.startswith(below)})


def mount_of(fd: int) -> int | None:
    """Return the number of the mount that an open file lies on, None elsewhere than on Linux.

    Unlike the device it tells a bind mount from what is around it. Raises OSError where it cannot
    be told.
    """
    if sys.platform != "linux":
        return None
    with _known():
        info = os.open(f"/proc/self/fdinfo/{fd}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return int(os.read(info, _FDINFO_LIMIT).partition(b"mnt_id:")[2].split(None, 1)[0])
        finally:
            os.close(info)


@contextmanager
def _known() -> Iterator[None]:
    """Keep a missing /proc from being taken for a missing directory, or for no mount."""
    try:
        yield
    except (FileNotFoundError, ValueError, IndexError) as exc:
        raise OSError(errno.ENOSYS, "/proc does not tell what is mounted") from exc


def _unescaped(field: bytes) -> str:
    return os.fsdecode(_OCTAL_ESCAPE.sub(lambda found: bytes([int(found[1], 8)]), field))


LEVELS = 32
_PASSES = 3  # over one directory, while another process still writes into it


class Removal:
    """The removal of one tree, in a worker thread."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._stays: list[str] = []
        self._moved = 0
        self._mount: int | None = None

    def remove(self, parent: int, name: str) -> None:
        """Remove ``name`` in a directory. Raises TransportError saying what stays, and why.

        Raises OSError, having touched nothing, where ``name`` is missing or is no directory.
        """
        self._mount = mount_of(parent)
        top = self._open(parent, name)
        try:
            while True:
                moved = self._moved
                self._stays.clear()
                self._empty(top, top, 1)
                if self._moved == moved:
                    break
        finally:
            os.close(top)
        if not self._stays:
            self._rmdir(parent, name)
        if self._stays:
            raise TransportError(
                f"could not remove {self._path}: {len(self._stays)} entries stay,"
                f" the first is {self._stays[0]}"
            )

    def _empty(self, fd: int, top: int, level: int) -> None:
        check_cancelled()
        for _ in range(_PASSES):
            with os.scandir(fd) as entries:
                names = [entry.name for entry in entries]
            if not names:
                return
            stayed = len(self._stays)
            for name in names:
                self._remove_entry(fd, name, top, level)
            if len(self._stays) > stayed:
                return

    def _remove_entry(self, fd: int, name: str, top: int, level: int) -> None:
        try:
            found = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if not stat.S_ISDIR(found.st_mode):
                os.unlink(name, dir_fd=fd)
            elif level < LEVELS:
                self._remove_directory(fd, name, top, level)
            else:
                self._move_up(fd, name, top)
        except FileNotFoundError:
            pass
        except OSError as exc:
            self._stays.append(f"{name!r} ({exc.strerror})")

    def _remove_directory(self, fd: int, name: str, top: int, level: int) -> None:
        below = self._open(fd, name)
        try:
            self._empty(below, top, level + 1)
        finally:
            os.close(below)
        self._rmdir(fd, name)

    def _rmdir(self, fd: int, name: str) -> None:
        try:
            os.rmdir(name, dir_fd=fd)
        except FileNotFoundError:
            pass
        except OSError as exc:
            # Not empty because something in it stays: that was noted where it stays.
            if not (exc.errno == errno.ENOTEMPTY and self._stays):
                self._stays.append(f"{name!r} ({exc.strerror})")

    def _move_up(self, fd: int, name: str, top: int) -> None:
        os.close(self._open(fd, name))  # gives it the mode that moving needs
        while True:
            self._moved += 1
            with suppress(FileExistsError, NotADirectoryError):
                try:
                    os.rename(name, f"{self._moved}.removed", src_dir_fd=fd, dst_dir_fd=top)
                    return
                except OSError as exc:
                    if exc.errno != errno.ENOTEMPTY:
                        raise

    def _open(self, parent: int, name: str) -> int:
        """Open a directory that may be unreadable or read-only, and make it removable.

        Raises OSError, having touched nothing, where something is mounted on it.
        """
        try:
            fd = os.open(name, DIRECTORY, dir_fd=parent)
        except PermissionError:
            self._allow(parent, name)
            fd = os.open(name, DIRECTORY, dir_fd=parent)
        try:
            self._check_mount(fd)
        except OSError:
            os.close(fd)
            raise
        if os.fstat(fd).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            with suppress(PermissionError):
                os.fchmod(fd, stat.S_IRWXU)
        return fd

    def _allow(self, parent: int, name: str) -> None:
        """Make a directory of ours accessible, without following a link put in its place."""
        if os.chmod in os.supports_follow_symlinks:
            os.chmod(name, stat.S_IRWXU, dir_fd=parent, follow_symlinks=False)
            return
        flags = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
        handle = os.open(name, flags, dir_fd=parent)
        try:
            self._check_mount(handle)
            os.chmod(f"/proc/self/fd/{handle}", stat.S_IRWXU)
        finally:
            os.close(handle)

    def _check_mount(self, fd: int) -> None:
        if mount_of(fd) != self._mount:
            raise OSError(errno.EXDEV, "something is mounted on it")
