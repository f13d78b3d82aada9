"""Reads, writes and removes small files below a directory; nothing here follows a link or waits."""

from __future__ import annotations

import itertools
import os
import stat
from contextlib import suppress

from sortie.model import TransportError
from sortie.resources.descriptors import own
from sortie.transports.local.safe_open import opened, opened_below, parts_of, translated

# NONBLOCK: opening a FIFO without it waits for a writer.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_numbers = itertools.count()


def read(directory: str, name: str, limit: int) -> bytes | None:
    """Return at most ``limit`` bytes of a regular file; None if absent. Raises TransportError."""
    *above, last = parts_of(name)
    path = os.path.join(directory, name)
    with translated(f"read {path}"):
        try:
            with opened(directory) as top, opened_below(top, above) as fd:
                _check_regular(path, os.stat(last, dir_fd=fd, follow_symlinks=False))
                file = os.open(last, _READ, dir_fd=fd)
        except FileNotFoundError:
            return None
        try:
            _check_regular(path, os.fstat(file))
            return _read_all(file, limit)
        finally:
            os.close(file)


def write(directory: str, name: str, content: bytes) -> None:
    """Write a file in one step, in place of whatever file stands there. Raises TransportError."""
    *above, last = parts_of(name)
    with (
        translated(f"write {os.path.join(directory, name)}"),
        opened(directory) as top,
        opened_below(top, above, make=True) as fd,
    ):
        new = f".sortie-{os.getpid()}-{next(_numbers)}"
        try:
            file = os.open(new, _NEW, 0o600, dir_fd=fd)
            with own(file, "wb") as stream:
                stream.write(content)
            os.replace(new, last, src_dir_fd=fd, dst_dir_fd=fd)
        except OSError:
            with suppress(OSError):
                os.unlink(new, dir_fd=fd)
            raise


def remove(directory: str, name: str) -> None:
    """Remove a file, link or FIFO, if there is one. Raises TransportError."""
    *above, last = parts_of(name)
    with (
        translated(f"remove {os.path.join(directory, name)}"),
        suppress(FileNotFoundError),
        opened(directory) as top,
        opened_below(top, above) as fd,
    ):
        os.unlink(last, dir_fd=fd)


def _check_regular(path: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise TransportError(f"could not read {path}: it is no regular file")


def _read_all(file: int, limit: int) -> bytes:
    content = bytearray()
    while len(content) < limit:
        chunk = os.read(file, min(limit - len(content), 65536))
        if not chunk:
            break
        content += chunk
    return bytes(content)
