"""A directory per issue inside one root: made, trusted, read and removed.

Rule 1: a workspace is used only while its real path lies inside the real root.
Rule 2: a workspace that was not completed is removed and made anew, never reused.
Rule 3: a workspace is neither used again nor removed while a process lives in it.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import trio

from sortie.model import (
    NotInRootError,
    OccupiedError,
    ProcessesLeft,
    TransportError,
    WorkspaceError,
)
from sortie.transports import Transport
from sortie.workspaces.keys import workspace_key

STATUS_FILE = ".sortie/status"
STATUS_LIMIT = 4096
"""Bytes of the status file that are looked at."""

_IGNORE_FILE = ".sortie/.gitignore"
_IGNORE_ALL = b"*\n"
# No key holds this character, so no issue's workspace can stand where the markers are.
_INCOMPLETE = "@incomplete"
_PROBE = f"{_INCOMPLETE}/@probe"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """An issue's directory; ``path`` is real, ``created`` tells that ``complete`` is still due.

    ``reaped`` is how many processes of earlier runs had to be ended in it.
    """

    path: str
    key: str
    created: bool
    host: str
    reaped: int = 0


class Workspaces:
    """The workspaces below one root on one host; ``root`` is an absolute path there.

    All methods raise WorkspaceError. ``recognise`` tells whether the root is known, so that it
    need not be made, and raises WorkspaceError where it is another than it was: nothing is made
    or removed then.
    """

    def __init__(
        self,
        root: str,
        transport: Transport,
        recognise: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        self._root = root
        self._transport = transport
        self.recognise = recognise or _any_root

    async def reach(self) -> None:
        """Prove that the host can be asked."""
        with _workspace_errors():
            await self._transport.files.contained(self._root, self._root)

    async def check(self) -> None:
        """Make the root if need be, and prove that something can be made in it."""
        with _workspace_errors():
            await self._have_root()
            await self._transport.files.write_file(self._root, _PROBE, b"")
            await self._transport.files.remove_file(self._root, _PROBE)

    async def prepare(self, identifier: str, *, grace: float = 5.0) -> Workspace:
        """Return an issue's workspace, made or reused, in which nobody lives.

        A new one counts as incomplete until ``complete`` is called for it: what has to happen
        first (cloning, say) is done then. An incomplete one is removed here and made anew.

        What earlier runs left in it gets ``grace`` seconds between SIGTERM and SIGKILL. Raises
        OccupiedError where somebody else lives there.
        """
        key = workspace_key(identifier)
        reaped = 0
        with _workspace_errors():
            await self._have_root()
            if await self._is_incomplete(key):
                reaped += await self._clear(os.path.join(self._root, key), grace)
                await self._remove(key)
            made, created = await self._make(key)
            if not created:  # nobody can live yet in what is new
                reaped += await self._clear(made, grace)
            if created:
                await self._transport.files.write_file(made, _IGNORE_FILE, _IGNORE_ALL)
            else:
                await self._keep_ignored(made)
        host = self._transport.host
        return Workspace(path=made, key=key, created=created, host=host, reaped=reaped)

    async def complete(self, workspace: Workspace) -> None:
        """Note that all that makes a new workspace usable was done."""
        with _workspace_errors():
            await self._transport.files.remove_file(self._root, _marker(workspace.key))

    async def verify(self, path: str) -> None:
        """Check that a workspace is still where it has to be; call it before each launch.

        Raises NotInRootError where it is not, and WorkspaceError where that cannot be told.
        """
        with _workspace_errors():
            if not await self._transport.files.contained(self._root, path):
                await self.recognise()  # a root that is away is nothing that this issue did
                raise NotInRootError(
                    f"{path} is no directory inside the workspace root {self._root} (any more);"
                    " look whether it was removed or replaced by a link"
                )

    async def remove(self, identifier: str) -> bool:
        """Remove an issue's workspace with all it holds; return whether it was there."""
        with _workspace_errors():
            await self.recognise()
            return await self._remove(workspace_key(identifier))

    async def read_status(self, path: str) -> str | None:
        """Return what the agent left in its status file, and delete the file.

        That is its first line that is not blank, trimmed, of the first STATUS_LIMIT bytes; ""
        where there is none, None where there is no file. Raises WorkspaceError for a link, a
        FIFO and the like, which are deleted too.
        """
        with _workspace_errors():
            try:
                content = await self._transport.files.read_file(path, STATUS_FILE, STATUS_LIMIT)
            except TransportError:
                await self._transport.files.remove_file(path, STATUS_FILE)
                raise
            if content is None:
                return None
            await self._transport.files.remove_file(path, STATUS_FILE)
        lines = content.decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in lines if line.strip()), "")

    async def clear_status(self, path: str) -> None:
        """Delete a status file that an earlier run left."""
        with _workspace_errors():
            await self._transport.files.remove_file(path, STATUS_FILE)

    async def _have_root(self) -> None:
        """Make the root, and in it the directory for the markers, unless it is known."""
        if not await self.recognise():
            await self._transport.files.make_directory(self._root, _INCOMPLETE)

    async def _make(self, key: str) -> tuple[str, bool]:
        """Make a workspace, marked as incomplete from before it exists; or take what is there."""
        path = os.path.join(self._root, key)
        if await self._transport.files.contained(self._root, path):
            return await self._transport.files.make_directory(self._root, key)
        await self._transport.files.write_file(self._root, _marker(key), b"")
        try:
            made, created = await self._transport.files.make_directory(self._root, key)
        except TransportError:
            if not await self._transport.files.contained(self._root, path):
                await self._transport.files.remove_file(self._root, _marker(key))
            raise
        if not created:
            # Somebody else made it in between; it must not be taken for incomplete.
            with trio.CancelScope(shield=True):
                await self._transport.files.remove_file(self._root, _marker(key))
        return made, created

    async def _is_incomplete(self, key: str) -> bool:
        return await self._transport.files.read_file(self._root, _marker(key), 1) is not None

    async def _clear(self, path: str, grace: float) -> int:
        try:
            return await self._transport.clear(path, grace=grace)
        except ProcessesLeft as exc:
            raise OccupiedError(str(exc), ended=exc.ended) from exc

    async def _remove(self, key: str) -> bool:
        path = os.path.join(self._root, key)
        pids = await self._transport.occupied(path)
        if pids:
            raise WorkspaceError(
                f"could not remove {path}: these processes live in it:"
                f" {', '.join(str(pid) for pid in sorted(pids))}; end them first"
            )
        removed = await self._transport.files.remove_directory(self._root, key)
        await self._transport.files.remove_file(self._root, _marker(key))
        return removed

    async def _keep_ignored(self, path: str) -> None:
        """Keep git from seeing what is in the workspace's own ``.sortie`` directory."""
        try:
            content = await self._transport.files.read_file(
                path, _IGNORE_FILE, len(_IGNORE_ALL) + 1
            )
        except TransportError:
            content = None  # a link or the like: replaced, not written through
        if content != _IGNORE_ALL:
            await self._transport.files.write_file(path, _IGNORE_FILE, _IGNORE_ALL)


def _marker(key: str) -> str:
    return f"{_INCOMPLETE}/{key}"


async def _any_root() -> bool:
    await trio.lowlevel.checkpoint()
    return False


@contextmanager
def _workspace_errors() -> Iterator[None]:
    try:
        yield
    except TransportError as exc:
        raise WorkspaceError(str(exc)) from exc
