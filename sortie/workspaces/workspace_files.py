"""What is done with the files of a workspace, on whatever host they are.

Each function is handed to ``Files.together``: it awaits operations of its files and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec import Struct

from sortie.model import HostError, TransportError
from sortie.resources import shortage_behind
from sortie.transports import Files

STATUS_FILE = ".sortie/status"
STATUS_LIMIT = 4096
"""Bytes of the status file that are looked at."""

# No key holds this character, so no issue's workspace can stand where the markers are.
INCOMPLETE = "@incomplete"
"""The directory in the root that has a marker for each workspace that was not completed."""

_PROBE = f"{INCOMPLETE}/@probe"
_PROBE_CONTENT = b"\n"  # on many file systems an empty file can be made where the disk is full
_IGNORE_FILE = ".sortie/.gitignore"
_IGNORE_ALL = b"*\n"
_GIT_HEAD = ".git/HEAD"
_GIT_EXCLUDE = ".git/info/exclude"
_EXCLUDED = b"/.sortie/"
_EXCLUDE_LIMIT = 65536
"""Bytes of a list of exclusions that may be extended; a longer one is left as it is."""


def marker_of(key: str) -> str:
    """Return where the marker of a workspace is."""
    return f"{INCOMPLETE}/{key}"


class Taken(Struct, frozen=True, kw_only=True):
    """A workspace's directory, whether it is new, and the marker that must not stay, if any."""

    path: str
    created: bool
    marker: str | None = None


Recognise = Callable[[], bool]
"""Tells whether the root is known, and may block. Raises WorkspaceError where it is another one."""

Make = Callable[[Files, str, str], Coroutine[Any, Any, Taken]]
"""Makes a directory that may be there already, by the root and the key."""


async def make_root(files: Files, root: str, recognise: Recognise) -> None:
    """Make the root, and in it the directory for the markers, unless it is known."""
    if not recognise():
        await files.make_directory(root, INCOMPLETE)


async def prove_root(files: Files, root: str, recognise: Recognise) -> None:
    """Make the root if need be, and prove that something can be made in it."""
    await make_root(files, root, recognise)
    await files.write_file(root, _PROBE, _PROBE_CONTENT)
    await files.remove_file(root, _PROBE)


async def take(files: Files, root: str, key: str, make: Make, recognise: Recognise) -> Taken | None:
    """Make a workspace or take what is there; None where that is incomplete."""
    await make_root(files, root, recognise)
    if await files.read_file(root, marker_of(key), 1) is not None:
        return None
    return await make(files, root, key)


async def make_complete(files: Files, root: str, key: str) -> Taken:
    """Make a workspace that lacks nothing, or take what is there."""
    made = await _make(files, root, key)
    if made.created:
        await files.write_file(made.path, _IGNORE_FILE, _IGNORE_ALL)
    return made


async def _make(files: Files, root: str, key: str) -> Taken:
    """Make an empty directory, or take what is there."""
    path, created = await files.make_directory(root, key)
    if not await files.contained(root, path):
        raise TransportError(
            f"could not make {path}: what is there is no directory inside {root}; remove it, and"
            " look what has put it there"
        )
    return Taken(path=path, created=created)


async def make_marked(files: Files, root: str, key: str) -> Taken:
    """Make a workspace, marked as incomplete from before it exists; or take what is there."""
    path, marker = os.path.join(root, key), marker_of(key)
    if await files.contained(root, path):
        return await _make(files, root, key)
    await files.write_file(root, marker, b"")
    try:
        made, created = await files.make_directory(root, key)
    except TransportError:
        if not await files.contained(root, path):
            await files.remove_file(root, marker)
        raise
    return Taken(path=made, created=created, marker=None if created else marker)


async def mark(files: Files, root: str, key: str) -> None:
    """Mark a workspace as incomplete, so that one which is removed in part is never taken for it.

    Where a disk is too full for the mark it is left out: what is removed makes room.
    """
    if not await files.contained(root, os.path.join(root, key)):
        return
    try:
        await files.write_file(root, marker_of(key), b"")
    except TransportError as exc:
        if shortage_behind(exc) is None:
            raise


async def hide(files: Files, path: str) -> None:
    """Keep git from seeing the workspace's own ``.sortie`` directory, which is made if need be.

    A ``.gitignore`` in it does that in every work tree. Where the repository lies in the workspace
    it is told as well, so that a ``git clean -x`` of the agent, which removes the ``.gitignore``,
    does not bring a later ``.sortie/status`` into a commit. That of a work tree which was added to
    a repository elsewhere is left alone: nothing is written outside the workspace.
    """
    try:
        content = await files.read_file(path, _IGNORE_FILE, len(_IGNORE_ALL) + 1)
    except TransportError:
        content = None  # a link or the like: replaced, not written through
    if content != _IGNORE_ALL:
        await files.write_file(path, _IGNORE_FILE, _IGNORE_ALL)
    await _exclude(files, path)


async def _exclude(files: Files, path: str) -> None:
    """Have the repository in a workspace exclude ``.sortie``; leave alone what is none."""
    try:
        content = await files.read_file(path, _GIT_EXCLUDE, _EXCLUDE_LIMIT + 1)
        if content is None and await files.read_file(path, _GIT_HEAD, 1) is None:
            return
        lines = content or b""
        if _EXCLUDED in lines.splitlines() or len(lines) > _EXCLUDE_LIMIT:
            return
        end = b"\n" if lines and not lines.endswith(b"\n") else b""
        await files.write_file(path, _GIT_EXCLUDE, lines + end + _EXCLUDED + b"\n")
    except TransportError as exc:  # .git is a file or a link, or a part of it is one
        if isinstance(exc, HostError) or shortage_behind(exc) is not None:
            raise


async def take_status(files: Files, root: str, path: str) -> bytes | None:
    """Read the status file, None where there is none, and delete it, whatever it is.

    Raises TransportError also where the workspace does not lie inside the root.
    """
    try:
        content = await files.read_file_inside(root, path, STATUS_FILE, STATUS_LIMIT)
    except TransportError:
        await files.remove_file(path, STATUS_FILE)
        raise
    if content is not None:
        await files.remove_file(path, STATUS_FILE)
    return content
