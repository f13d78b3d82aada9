"""Walls around the programs of a run: a transport that starts them inside of one.

Rule: a wall is for programs alone. Files, scripts that look at something, and the certain end are
those of the host, outside.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext

from msgspec import Struct

from sortie.model import ProcessIdentity, RunId
from sortie.transports import Command, Files, Process, Script, Transport
from sortie.transports.lost_links import LinkChanged, following_links

GONE_VARIABLES = ("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "TMPDIR")
"""They name sockets and directories that are not inside."""

OF_USERS = (".gitconfig", ".config/git")
"""What of a home directory everybody sees: who commits."""


class OpenedWall(Struct, frozen=True, kw_only=True):
    """What the wall of a run is made of: a ``container`` by its name, its ``image`` as it was asked
    for, and the ``digest`` of that."""

    container: str
    image: str
    digest: str


class RunImage(Struct, frozen=True, kw_only=True):
    """The image of a run, and variables of its programs besides the image's own."""

    name: str
    environ: Mapping[str, str]


class SandboxedTransport:
    """A host whose programs start inside a wall; ``outside`` is the host."""

    def __init__(self, outside: Transport) -> None:
        self.outside = outside

    @property
    def host(self) -> str:
        """The name of the host."""
        return self.outside.host

    @property
    def files(self) -> Files:
        """The files of the host."""
        return self.outside.files

    @property
    def image(self) -> str | None:
        """The image in which programs are looked for, None where they are those of the host."""
        return None

    @property
    def wants_image(self) -> bool:
        """Whether each run says which image it is to have."""
        return False

    def around(
        self,
        run_id: RunId,  # noqa: ARG002
        workspace: str,  # noqa: ARG002
        image: RunImage | None = None,  # noqa: ARG002
    ) -> AbstractAsyncContextManager[OpenedWall | None]:
        """Have what the wall of a run is made of, None where that is nothing that lasts; programs
        in this directory start and end within the block. A run may have several directories.
        ``image`` is told of its first one where it is wanted.

        Raises TransportError where it cannot be had."""
        return nullcontext()

    def following_links(self, run_id: RunId, changed: LinkChanged) -> AbstractContextManager[None]:
        """Tell of links to the host that programs inside outlive, too; see OutlivesLinks."""
        return following_links(self.outside, run_id, changed)

    def process(self, command: Command) -> AbstractAsyncContextManager[Process]:
        """Start a program inside the wall; see the port."""
        raise NotImplementedError

    async def check(self) -> None:
        """Try once whether programs can be started in it. Raises SortieError with a sentence that
        says what to do."""
        raise NotImplementedError

    async def run_script(self, script: Script) -> bytes:
        """Return what a script writes to stdout; it runs outside."""
        return await self.outside.run_script(script)

    async def resolve_program(self, name: str, path: str | None = None) -> str:
        """Return the absolute path of an executable of the host."""
        return await self.outside.resolve_program(name, path)

    async def sweep(
        self,
        run_ids: Collection[RunId],
        *,
        grace: float,
        roots: Mapping[RunId, ProcessIdentity] | None = None,
    ) -> int:
        """End every process of these runs; see the port."""
        return await self.outside.sweep(run_ids, grace=grace, roots=roots)

    async def clear(self, path: str, *, grace: float) -> int:
        """End what runs that are over left living in a directory; see the port."""
        return await self.outside.clear(path, grace=grace)

    async def occupied(self, path: str) -> Sequence[int]:
        """Return the pids of the processes that live in a directory; see the port."""
        return await self.outside.occupied(path)

    def hurry(self) -> None:
        """Give no process any more grace."""
        self.outside.hurry()
