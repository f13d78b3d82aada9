"""The directories and small files of this machine; nothing here follows a link or waits for a FIFO.

Rule 1: a root is no link and belongs to us; one that is missing is made with mode 0700.
Rule 2: what is no directory is neither used as one nor removed as one.
"""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, ParamSpec, TypeVar

from sortie.model import TransportError
from sortie.resources import Shortage, run_in_thread, shortage_behind
from sortie.resources.descriptors import own
from sortie.transports import Files
from sortie.transports.local.removal import Removal, mounts_in
from sortie.transports.local.safe_open import (
    DIRECTORY,
    opened,
    opened_below,
    real_directory,
    real_path,
    translated,
)
from sortie.transports.paths import parts_of, plain, single

T = TypeVar("T")
P = ParamSpec("P")

# NONBLOCK: opening a FIFO without it waits for a writer.
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_numbers = itertools.count()


async def in_thread(work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Do what may block in a thread. Raises TransportError where there is none to be had."""
    try:
        return await run_in_thread(partial(work, *args, **options))
    except Shortage as exc:
        attempt = work.__name__.replace("_", " ").strip()
        raise TransportError(f"could not {attempt}: {exc}") from exc


def _make_directory(root: str, name: str) -> tuple[str, bool]:
    """Make ``root/name``; return its real path and whether it is new. Raises TransportError."""
    single(name)
    root = plain(root)
    with translated(f"make the directory {root}"):
        _make_root(root)
    with translated(f"open the directory {root}"), opened(root) as root_fd:
        _check_owner(root, root_fd)
        with translated(f"make the directory {name} in {root}"):
            created = _make_in(root_fd, name)
            real_root = real_path(root_fd, root)
            _check_same(root_fd, real_root)
    return os.path.join(real_root, name), created


def _remove_directory(root: str, name: str) -> bool:
    """Remove ``root/name`` with all it holds; return whether it was there.

    Raises TransportError where it is no directory or something in it stays; where something is
    mounted in it, all of it does. Can be cancelled between two files.
    """
    single(name)
    root = plain(root)
    path = os.path.join(root, name)
    if not os.path.lexists(root):
        return False
    with translated(f"open the directory {root}"), opened(root) as root_fd:
        _check_owner(root, root_fd)
        with translated(f"remove {path}"):
            _check_mounts(path)
            try:
                Removal(path).remove(root_fd, name)
            except FileNotFoundError:
                return False
    return True


def _contained(root: str, path: str) -> bool:
    """Tell whether ``path`` is a directory, no link, whose real path lies in the real root.

    Raises TransportError where a shortage leaves that unknown.
    """
    with translated(f"look at {path}"):
        try:
            return _is_contained(root, path)
        except (OSError, ValueError, TransportError) as exc:
            if shortage_behind(exc) is not None:
                raise
            return False


def _is_contained(root: str, path: str) -> bool:
    with opened(path) as fd:
        real_root = real_directory(root)
        real = real_path(fd, path)
        inside = os.path.commonpath([real_root, real]) == real_root and real != real_root
        return inside and os.path.samestat(os.fstat(fd), os.stat(real))


def _make_root(root: str) -> None:
    if os.path.lexists(root):
        return  # as nearly always; what it is shows when it is opened
    os.makedirs(os.path.dirname(root), exist_ok=True)
    with suppress(FileExistsError):
        os.mkdir(root, 0o700)


def _make_in(root_fd: int, name: str) -> bool:
    try:
        os.mkdir(name, 0o700, dir_fd=root_fd)
        created = True
    except FileExistsError:
        created = False
    os.close(os.open(name, DIRECTORY, dir_fd=root_fd))  # raises for what is no directory
    return created


def _check_owner(root: str, root_fd: int) -> None:
    owner = os.fstat(root_fd).st_uid
    if owner != os.geteuid():
        raise TransportError(
            f"the directory {root} belongs to the user with id {owner}, not to"
            f" {os.geteuid()}; choose a root of your own"
        )


def _check_mounts(path: str) -> None:
    """Raise TransportError where something is mounted in a directory."""
    points = mounts_in(os.path.realpath(path))
    if points:
        more = f" and {len(points) - 1} more" if len(points) > 1 else ""
        raise TransportError(
            f"could not remove {path}: something is mounted on {points[0]}{more}, and what is"
            " mounted is not removed; unmount it"
        )


def _check_same(root_fd: int, real_root: str) -> None:
    if not os.path.samestat(os.fstat(root_fd), os.stat(real_root)):
        raise TransportError(f"the directory {real_root} was replaced while it was used")


def _read_file(directory: str, name: str, limit: int) -> bytes | None:
    """Return at most ``limit`` bytes of a regular file; None if absent. Raises TransportError."""
    *above, last = parts_of(name)
    path = os.path.join(directory, name)
    with translated(f"read {path}"):
        try:
            with opened(directory) as top, opened_below(top, above) as fd:
                _check_regular(path, os.stat(last, dir_fd=fd, follow_symlinks=False))
                file = os.open(last, _READ_FLAGS, dir_fd=fd)
        except FileNotFoundError:
            return None
        try:
            _check_regular(path, os.fstat(file))
            return _read_all(file, limit)
        finally:
            os.close(file)


def _write_file(directory: str, name: str, content: bytes) -> None:
    """Write a file in one step, in place of whatever file stands there. Raises TransportError."""
    *above, last = parts_of(name)
    with (
        translated(f"write {os.path.join(directory, name)}"),
        opened(directory) as top,
        opened_below(top, above, make=True) as fd,
    ):
        new = f".sortie-{os.getpid()}-{next(_numbers)}"
        try:
            file = os.open(new, _NEW_FLAGS, 0o600, dir_fd=fd)
            with own(file, "wb") as stream:
                stream.write(content)
            os.replace(new, last, src_dir_fd=fd, dst_dir_fd=fd)
        except OSError:
            with suppress(OSError):
                os.unlink(new, dir_fd=fd)
            raise


def _read_file_inside(root: str, directory: str, name: str, limit: int) -> bytes | None:
    """Read a file below a directory that lies in the real root. Raises TransportError."""
    if not _contained(root, directory):
        path = os.path.join(directory, name)
        raise TransportError(f"could not read {path}: {directory} does not lie inside {root}")
    return _read_file(directory, name, limit)


def _remove_file(directory: str, name: str) -> None:
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


class LocalFiles:
    """The files of this machine; see the port. Each operation is done in a thread."""

    async def _do(self, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        return await in_thread(work, *args, **options)

    async def together(self, work: Callable[[Files], Coroutine[Any, Any, T]]) -> T:
        """Do several operations in one thread; see the port."""
        return await in_thread(_use_files, work)

    async def make_directory(self, root: str, name: str) -> tuple[str, bool]:
        """See the port."""
        return await self._do(_make_directory, root, name)

    async def remove_directory(self, root: str, name: str) -> bool:
        """See the port."""
        return await self._do(_remove_directory, root, name)

    async def contained(self, root: str, path: str) -> bool:
        """See the port."""
        return await self._do(_contained, root, path)

    async def read_file(self, directory: str, name: str, limit: int) -> bytes | None:
        """See the port."""
        return await self._do(_read_file, directory, name, limit)

    async def read_file_inside(
        self, root: str, directory: str, name: str, limit: int
    ) -> bytes | None:
        """See the port."""
        return await self._do(_read_file_inside, root, directory, name, limit)

    async def write_file(self, directory: str, name: str, content: bytes) -> None:
        """See the port."""
        return await self._do(_write_file, directory, name, content)

    async def remove_file(self, directory: str, name: str) -> None:
        """See the port."""
        return await self._do(_remove_file, directory, name)


class _FilesInThread(LocalFiles):
    """The same for work that is in a thread already: nothing here waits for another one."""

    async def _do(self, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        return work(*args, **options)


def _use_files(work: Callable[[Files], Coroutine[Any, Any, T]]) -> T:
    """Do what awaits operations of files, and nothing else, to its end; blocks."""
    try:
        work(_FilesInThread()).send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise AssertionError("what is done together has to await operations of its files alone")
