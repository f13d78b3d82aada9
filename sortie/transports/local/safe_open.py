"""Opens directories so that no link on the way is followed, and translates what goes wrong.

Everything below a directory is reached through file descriptors, one path part at a time, so
that a part which is swapped for a link meanwhile cannot lead elsewhere.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sortie.model import TransportError
from sortie.resources import shortage_behind
from sortie.transports.paths import plain

_LOOK_FLAG = getattr(os, "O_PATH", os.O_RDONLY)  # not all have it
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_REASONS = {
    errno.ELOOP: "it is a link, or a part of its path is one",
    errno.ENOTDIR: "it, or a part of its path, is no directory (or is a link)",
    errno.EISDIR: "it is a directory",
    errno.ENXIO: "it is no regular file",
    errno.EBUSY: "it is in use (a mount point?)",
}


@contextmanager
def translated(attempt: str) -> Iterator[None]:
    """Turn an OSError into a TransportError that says what was attempted."""
    try:
        yield
    except OSError as exc:
        shortage = shortage_behind(exc)
        if shortage is not None:
            raise TransportError(f"could not {attempt}: {shortage}") from exc
        reason = _REASONS.get(exc.errno or 0, exc.strerror or str(exc))
        raise TransportError(f"could not {attempt}: {reason}") from exc
    except ValueError as exc:  # a NUL character, or text that no file name can hold
        raise TransportError(f"could not {attempt}: the name is not valid") from exc


@contextmanager
def opened(path: str) -> Iterator[int]:
    """Open a directory that is no link itself; the path that leads to it may hold links."""
    fd = os.open(plain(path), DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


def real_directory(path: str) -> str:
    """Return where a directory is, all links on its path resolved. Raises OSError."""
    fd = os.open(path, _LOOK_FLAG | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return real_path(fd, path)
    finally:
        os.close(fd)


def real_path(fd: int, path: str) -> str:
    """Return where an open directory is, all links on its path resolved. Raises OSError.

    Linux knows, by one call; elsewhere each part of the path by which it was opened is looked at.
    What has been moved or removed meanwhile is not there: compare what is.
    """
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return os.path.realpath(path, strict=True)


@contextmanager
def opened_below(directory: int, parts: list[str], *, make: bool = False) -> Iterator[int]:
    """Open a directory below another, following no link; ``make`` makes what is missing."""
    fd = os.dup(directory)
    try:
        for part in parts:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o700, dir_fd=fd)
            below = os.open(part, DIRECTORY, dir_fd=fd)
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)
