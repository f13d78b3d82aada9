"""A directory per issue inside one root: made, trusted, read and removed.

Rule 1: a workspace is used only while its real path lies inside the real root.
Rule 2: a workspace that was not completed, or whose removal has begun, is never reused: it is
removed and made anew.
Rule 3: a workspace is neither used again nor removed while a process lives in it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import trio
from msgspec import Struct

from sortie.model import (
    NotInRootError,
    OccupiedError,
    ProcessesLeft,
    TransportError,
    WorkspaceError,
)
from sortie.transports import Files, Transport
from sortie.workspaces.workspace_files import (
    STATUS_FILE,
    STATUS_LIMIT,
    Make,
    Recognise,
    Taken,
    hide,
    make_complete,
    make_marked,
    mark,
    marker_of,
    prove_root,
    take,
    take_status,
)

KEY_LIMIT = 255
"""Bytes that a file name may have on the file systems in use."""

_FOREIGN = re.compile(r"[^A-Za-z0-9._-]")
_DIGEST_SIZE = 16
_LIKE_A_DIGEST = re.compile(rf"-[0-9a-f]{{{_DIGEST_SIZE}}}\Z")


def workspace_key(identifier: str) -> str:
    """Return the directory name of an issue: ASCII, one path part, at most KEY_LIMIT bytes.

    Foreign characters become ``_``. What was changed, had to be cut, or looks as if it had been,
    ends in a digest of the whole identifier, so that two identifiers keep apart, though one was
    made to look like the other's key. Raises WorkspaceError
    for an identifier that no directory can be named after.
    """
    if identifier in ("", ".", ".."):
        raise WorkspaceError(
            f"an issue with the identifier {identifier!r} can have no workspace; rename it"
        )
    key = _FOREIGN.sub("_", identifier)
    if key == identifier and len(key) <= KEY_LIMIT and not _LIKE_A_DIGEST.search(key):
        return key
    digest = hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_SIZE]
    return f"{key[: KEY_LIMIT - _DIGEST_SIZE - 1]}-{digest}"


class Workspace(Struct, frozen=True, kw_only=True):
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

    All methods raise WorkspaceError. Where ``recognise`` knows the root it is not made, and where
    that says that it is another than it was, nothing is made or removed.
    """

    def __init__(
        self,
        root: str,
        transport: Transport,
        recognise: Recognise = lambda: False,
    ) -> None:
        self._root = root
        self._transport = transport
        self._files = transport.files
        self.recognise = recognise

    async def reach(self) -> None:
        """Prove that the host can be asked."""
        with _workspace_errors():
            await self._files.contained(self._root, self._root)

    async def check(self) -> None:
        """Make the root if need be, and prove that something can be made in it."""
        with _workspace_errors():
            await self._files.together(lambda files: prove_root(files, self._root, self.recognise))

    async def prepare(self, identifier: str, *, grace: float = 5.0) -> Workspace:
        """Return an issue's workspace, made or reused, in which no process lives.

        A new one is empty, as ``git clone`` demands. It counts as incomplete until ``complete`` is
        called for it: what has to happen first (cloning, say) is done then. An incomplete one is
        removed here and made anew.

        What earlier runs left in it gets ``grace`` seconds between SIGTERM and SIGKILL. Raises
        OccupiedError where another process lives there.
        """
        return await self._prepare(workspace_key(identifier), make_marked, grace)

    async def prepare_complete(self, identifier: str, *, grace: float = 5.0) -> Workspace:
        """Do as ``prepare`` where a new workspace lacks nothing: neither ``complete`` nor ``hide``
        is due then."""
        workspace = await self._prepare(workspace_key(identifier), make_complete, grace)
        if not workspace.created:
            await self.hide(workspace.path)
        return workspace

    async def _prepare(self, key: str, make: Make, grace: float) -> Workspace:
        path = os.path.join(self._root, key)
        reaped = 0
        with _workspace_errors():
            found = await self._take(key, make)
            if found is None:
                reaped += await self._transport.clear(path, grace=grace)
                await self._remove(key)
                found = await self._take(key, make)
                if found is None:
                    raise WorkspaceError(
                        f"could not make {path}: somebody marks it as incomplete again as soon as"
                        f" it is removed; end whatever else works in {self._root}"
                    )
            if found.marker is not None:
                # Another process made it in between; it must not be taken for incomplete.
                with trio.CancelScope(shield=True):
                    await self._files.remove_file(self._root, found.marker)
            if not found.created:  # no process can live yet in what is new
                reaped += await self._transport.clear(found.path, grace=grace)
        return Workspace(
            path=found.path,
            key=key,
            created=found.created,
            host=self._transport.host,
            reaped=reaped,
        )

    async def _take(self, key: str, make: Make) -> Taken | None:
        """Make a workspace or take what is there; None where that is incomplete."""
        return await self._files.together(
            lambda files: take(files, self._root, key, make, self.recognise)
        )

    async def _recognise(self) -> None:
        """See whether the root is the one that it was. Raises WorkspaceError where it is not."""

        async def look(_: Files) -> None:
            self.recognise()

        await self._files.together(look)

    async def complete(self, workspace: Workspace) -> None:
        """Note that all that makes a new workspace usable was done."""
        with _workspace_errors():
            await self._files.remove_file(self._root, marker_of(workspace.key))

    async def hide(self, path: str) -> None:
        """Make the directory of the status file and keep git from seeing it.

        Call it when the hooks that may need an empty directory have run.
        """
        with _workspace_errors():
            await self._files.together(lambda files: hide(files, path))

    async def is_complete(self, key: str) -> bool:
        """Tell whether a workspace was made wholly, and its removal has not begun."""
        with _workspace_errors():
            return await self._files.read_file(self._root, marker_of(key), 1) is None

    async def verify(self, path: str) -> None:
        """Check that a workspace is still where it has to be; call it before each launch.

        Raises NotInRootError where it is not, and WorkspaceError where that cannot be told.
        """
        with _workspace_errors():
            if not await self._files.contained(self._root, path):
                # A root that is away is nothing that this issue did.
                await self._recognise()
                raise NotInRootError(
                    f"{path} is no directory inside the workspace root {self._root} (any more);"
                    " look whether it was removed or replaced by a link"
                )

    async def remove(self, identifier: str) -> bool:
        """Remove an issue's workspace with all it holds; return whether it was there."""
        with _workspace_errors():
            await self._recognise()
            return await self._remove(workspace_key(identifier))

    async def read_status(self, path: str) -> str | None:
        """Return what the agent left in its status file, and delete the file.

        That is its first STATUS_LIMIT bytes, trimmed, and without the word that is cut there; None
        where there is no file. Raises WorkspaceError for a link, a FIFO and the like, which are
        deleted too, and wherever ``verify`` would raise.
        """
        with _workspace_errors():
            content = await self._files.together(lambda files: take_status(files, self._root, path))
        if content is None:
            return None
        text = content.decode("utf-8", "replace")
        if len(content) >= STATUS_LIMIT:  # half a secret is not known for one
            text = re.sub(r"\s\S*\Z", "", text)
        return text.strip()

    async def read_inside(self, path: str, name: str, limit: int) -> bytes | None:
        """Return the first bytes of a file in a workspace, None where there is none.

        Raises WorkspaceError for what is no regular file or lies outside, and as ``verify`` does.
        """
        with _workspace_errors():
            return await self._files.read_file_inside(self._root, path, name, limit)

    async def clear_inside(self, path: str, name: str) -> None:
        """Delete a file in ``.sortie`` of a workspace, if it is there."""
        with _workspace_errors():
            await self._files.remove_file(path, name)

    async def clear_status(self, path: str) -> None:
        """Delete a status file that an earlier run left."""
        with _workspace_errors():
            await self._files.remove_file(path, STATUS_FILE)

    async def _remove(self, key: str) -> bool:
        path = os.path.join(self._root, key)
        pids = await self._transport.occupied(path)
        if pids:
            raise WorkspaceError(
                f"could not remove {path}: these processes live in it:"
                f" {', '.join(str(pid) for pid in sorted(pids))}; end them first"
            )
        await self._files.together(lambda files: mark(files, self._root, key))
        removed = await self._files.remove_directory(self._root, key)
        await self._files.remove_file(self._root, marker_of(key))
        return removed


@contextmanager
def _workspace_errors() -> Iterator[None]:
    try:
        yield
    except ProcessesLeft as exc:
        raise OccupiedError(str(exc), ended=exc.ended) from exc
    except TransportError as exc:
        raise WorkspaceError(str(exc)) from exc
