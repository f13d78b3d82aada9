"""Directories and small files in memory, as sets and dicts: no links, modes or real paths."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Coroutine
from typing import Any, TypeVar

import trio

from sortie.model import TransportError
from sortie.transports import Files

T = TypeVar("T")

NAME_LIMIT = 255


class FakeFiles:
    """A file system in memory.

    ``contents`` holds the regular files by path, ``odd`` the paths of files that are links, FIFOs
    or the like. Switches: ``faults`` maps a method's name to what it raises, ``pauses`` to the
    seconds that it takes first.
    """

    def __init__(self, directories: Collection[str] = ()) -> None:
        self.directories = {"/", *directories}
        self.contents: dict[str, bytes] = {}
        self.odd: set[str] = set()
        self.faults: dict[str, Exception] = {}
        self.pauses: dict[str, float] = {}

    async def together(self, work: Callable[[Files], Coroutine[Any, Any, T]]) -> T:
        """Do several operations, one after the other; see the port."""
        return await work(self)

    async def make_directory(self, root: str, name: str) -> tuple[str, bool]:
        """Make ``root/name``."""
        await self.begin("make_directory")
        path = _inside(root, name)
        if path in self.contents or path in self.odd:
            raise TransportError(f"could not make {path}: it exists and is no directory")
        is_new = path not in self.directories
        self._make(path)
        return path, is_new

    async def remove_directory(self, root: str, name: str) -> bool:
        """Remove ``root/name`` with all it holds."""
        await self.begin("remove_directory")
        path = _inside(root, name)
        if path in self.contents or path in self.odd:
            raise TransportError(f"could not remove {path}: it is no directory")
        was_there = path in self.directories
        below = f"{path}/"
        self.directories = {d for d in self.directories if d != path and not d.startswith(below)}
        self.contents = {f: c for f, c in self.contents.items() if not f.startswith(below)}
        self.odd = {f for f in self.odd if not f.startswith(below)}
        return was_there

    async def contained(self, root: str, path: str) -> bool:
        """Tell whether ``path`` is a directory inside ``root``."""
        await self.begin("contained")
        real = posixpath.normpath(path)
        below = posixpath.normpath(root).rstrip("/") + "/"
        return real in self.directories and real != "/" and real.startswith(below)

    async def read_file(self, directory: str, name: str, limit: int) -> bytes | None:
        """Return the beginning of a file."""
        await self.begin("read_file")
        path = _below(directory, name)
        if path in self.odd or path in self.directories:
            raise TransportError(f"could not read {path}: it is no regular file")
        content = self.contents.get(path)
        return None if content is None else content[:limit]

    async def read_file_inside(
        self, root: str, directory: str, name: str, limit: int
    ) -> bytes | None:
        """Return the beginning of a file below a directory inside ``root``."""
        if not await self.contained(root, directory):
            raise TransportError(f"could not read {name}: {directory} is not inside {root}")
        return await self.read_file(directory, name, limit)

    async def write_file(self, directory: str, name: str, content: bytes) -> None:
        """Write a file, in the place of what is odd."""
        await self.begin("write_file")
        path = _below(directory, name)
        if directory not in self.directories or path in self.directories:
            raise TransportError(f"could not write {path}")
        self._make(posixpath.dirname(path))
        self.odd.discard(path)
        self.contents[path] = content

    async def remove_file(self, directory: str, name: str) -> None:
        """Remove a file, if any."""
        await self.begin("remove_file")
        path = _below(directory, name)
        if path in self.directories:
            raise TransportError(f"could not remove {path}: it is a directory")
        self.odd.discard(path)
        self.contents.pop(path, None)

    def _make(self, path: str) -> None:
        while path not in self.directories:
            self.directories.add(path)
            path = posixpath.dirname(path)

    async def begin(self, method: str) -> None:
        """Pause, or raise, where that is switched on for a method."""
        await trio.sleep(self.pauses.get(method, 0.0))
        if method in self.faults:
            raise self.faults[method]


def _inside(root: str, name: str) -> str:
    if name in ("", ".", "..") or "/" in name or "\0" in name or len(name) > NAME_LIMIT:
        raise TransportError(f"{name!r} is no name of a directory")
    return posixpath.join(posixpath.normpath(root), name)


def _below(directory: str, name: str) -> str:
    parts = name.split("/")
    if any(p in ("", ".", "..") or "\0" in p or len(p) > NAME_LIMIT for p in parts):
        raise TransportError(f"{name!r} is no name of a file below a directory")
    return posixpath.join(directory, name)
