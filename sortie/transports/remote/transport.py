"""A place that is used through its /bin/sh, as a transport: a host over SSH, or a pod.

Rule 1: the daemon's environment does not go there: a program gets its command's variables and,
where these do not name them, HOST_VARIABLES as the host's login has them.
Rule 2: leaving a process's block takes at most the grace time and some seconds, even where the
host no longer answers; that is a HostError then, and what ran there ends by its lease.
"""

from __future__ import annotations

import posixpath
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
)
from functools import partial
from typing import Literal

import trio

from sortie.config.settings import Isolation
from sortie.model import (
    HostError,
    HostTrouble,
    ProcessIdentity,
    ProgramNotFound,
    RunId,
    TransportError,
)
from sortie.transports import Command, Process, Script
from sortie.transports.lost_links import LinkChanged, Links
from sortie.transports.remote.fence import FindFence, no_fence
from sortie.transports.remote.filesystem import RemoteFiles
from sortie.transports.remote.launch import Bounds
from sortie.transports.remote.namespace_probe import NamespaceProbe
from sortie.transports.remote.namespaces import Namespaces
from sortie.transports.remote.process import RemoteProgram
from sortie.transports.remote.programs import RemotePrograms
from sortie.transports.remote.questions import script_body
from sortie.transports.remote.run_endings import RunEndings, under_way
from sortie.transports.remote.shell import Shell, ShellQuestion
from sortie.transports.remote.shell_link import ShellLink
from sortie.transports.remote.socket_forward import SocketForward
from sortie.transports.remote.supervised_programs import SupervisedPrograms
from sortie.transports.remote.supervisor_scripts import KEPT, supervisor_id
from sortie.transports.remote.unconfirmed_runs import UnconfirmedRuns

Delivery = Literal["stdin", "inline"]


def new_nonce() -> str:
    """Return a text that was never used before."""
    return f"sortie-{secrets.token_hex(16)}"


class ShellTransport:
    """Files and processes of one host, by the name that it is configured with.

    With ``delivery`` inline, a command's variables stand in the remote command line, and its
    first argument is a piece of shell that is neither resolved nor quoted. ``notice`` is told what
    the host's operator should know of, though it works, and ``isolated`` what ends the processes of
    its runs. ``links`` is told of links that programs have outlived, which
    keep ``kept`` bytes of each stream there. ``variables`` are as for a launch. ``fence`` makes the
    root ours before anything is changed there, where the workflow has a lease, and ``spare`` is
    told which programs go on where that is taken over, by the ids of their supervisors.
    """

    def __init__(
        self,
        host: str,
        link: ShellLink,
        *,
        delivery: Delivery = "stdin",
        bounds: Bounds | None = None,
        new_nonce: Callable[[], str] = new_nonce,
        notice: Callable[[str], object] | None = None,
        isolation: Isolation = Isolation.NONE,
        isolated: Callable[[str], object] | None = None,
        links: Links | None = None,
        kept: int = KEPT,
        variables: tuple[str, ...] = (),
        fence: FindFence = no_fence,
        spare: Callable[[Collection[str]], object] = lambda _ids: None,
    ) -> None:
        self._host = host
        self._link = link
        self._fence = fence
        self._spare = spare
        self._inline = delivery == "inline"
        self._bounds = bounds or Bounds()
        self._shell = Shell(link, new_nonce, self._bounds.handshake, notice)
        self._probe = NamespaceProbe(self._shell, lambda: link.generation, isolated)
        self._unconfirmed = UnconfirmedRuns()
        self.files = RemoteFiles(self._shell, fence)
        self._hurry = trio.Event()
        self._endings = RunEndings(self._shell, self.files, self._unconfirmed, self._hurry)
        self._links = links or Links(new_nonce=new_nonce)
        self._supervised = SupervisedPrograms(
            self._shell, self._hurry, self._links, self._bounds.reattach, kept
        )
        self._programs = RemotePrograms(
            host=host,
            shell=self._shell,
            supervised=self._supervised,
            unconfirmed=self._unconfirmed,
            probe=self._probe,
            isolation=isolation,
            bounds=self._bounds,
            inline=self._inline,
            variables=variables,
            new_nonce=new_nonce,
            fence=fence,
            hurry=self._hurry,
        )

    @property
    def host(self) -> str:
        """The name of the host."""
        return self._host

    def hurry(self) -> None:
        """Give no process any more grace, from now on and whatever is under way."""
        self._hurry.set()

    def forwarded(self, path: str, here: str) -> AbstractAsyncContextManager[None]:
        """Have a unix socket of this machine on the host; see ForwardsSockets. Where programs
        outlive their links, it is opened again after one that was lost."""
        if not self._supervised.wanted:
            return self._link.forwarded(path, here)
        remove = partial(self.files.remove_file, *posixpath.split(path))
        forward = SocketForward(
            link=self._link, path=path, here=here, remove=remove, reattach=self._bounds.reattach
        )
        return forward.opened()

    def following_links(self, run_id: RunId, changed: LinkChanged) -> AbstractContextManager[None]:
        """Tell of links that programs of a run outlive; see OutlivesLinks."""
        return self._links.lost_now.followed(run_id, changed)

    def process(self, command: Command) -> AbstractAsyncContextManager[Process]:
        """Start a program; leaving the block ends its whole tree. See the port."""
        return self._programs.started(command)

    @property
    def keeps_programs(self) -> bool:
        """Whether programs outlive their links. See KeepsPrograms."""
        return self._programs.outlive_links

    async def kept(self, names: Collection[str]) -> Collection[str]:
        """Return which programs can be gone on with; see KeepsPrograms. A root that is taken over
        meanwhile from an older leader is taken over with them."""
        ids = {supervisor_id(name): name for name in names}
        self._spare(ids)
        try:
            found = await self._supervised.adoptable(ids, await self._fence())
        finally:
            self._spare(())
        return [ids[known] for known in found if known in ids]

    def adopted(self, command: Command, name: str) -> AbstractAsyncContextManager[Process]:
        """Go on with a program that another daemon has started; see KeepsPrograms."""
        return self._adopted(command, name)

    @asynccontextmanager
    async def _adopted(self, command: Command, name: str) -> AsyncIterator[RemoteProgram]:
        launch = self._programs.launch(
            command, name, await self._programs.namespaces(), await self._fence()
        )
        async with under_way(launch.marker), AsyncExitStack() as stack:
            try:
                process = await self._supervised.adopt(launch, stack)
                await process.go_on(self._bounds)
            except TransportError as exc:
                await stack.aclose()  # what is under way is not swept
                await self.sweep([RunId(launch.cookie)], grace=command.grace)
                raise HostError(HostTrouble.DISRUPTED, str(exc)) from exc
            async with self._programs.left(launch.cookie, process):
                yield process

    async def isolation(self) -> tuple[bool, str]:
        """Return whether the host gives PID namespaces, with a sentence for its operator.

        Raises HostError where it cannot be asked.
        """
        found = await self._probe.find()
        return isinstance(found, Namespaces), found.sentence

    async def sweep(
        self,
        run_ids: Collection[RunId],
        *,
        grace: float,
        roots: Mapping[RunId, ProcessIdentity] | None = None,
    ) -> int:
        """End every process of these runs on the host, whoever started it; see the port.

        Raises HostError where the host cannot be reached, and TransportError where it has no
        /proc to look at.
        """
        fence = await self._fence()
        ended = await self._endings.sweep(run_ids, roots or {}, grace=grace)
        if run_ids and self._supervised.wanted:
            await self._supervised.end(run_ids, fence)
        self._unconfirmed.discard(run_ids)
        return ended

    async def clear(self, path: str, *, grace: float) -> int:
        """End what runs that are over left living in a directory of the host; see the port."""
        return await self._endings.clear(path, grace=grace, fence=await self._fence())

    async def occupied(self, path: str) -> list[int]:
        """Return the pids of the host's processes that live in a directory; see the port.

        Raises TransportError where the host has no /proc to look at.
        """
        pids = await self.files.occupied(path)
        if pids is None:
            raise TransportError(
                f"could not look who lives in {path}: host {self._host} has no /proc; look there,"
                " and remove it by hand"
            )
        return list(pids)

    async def try_link(self, bound: float) -> None:
        """Have the host answer a new shell in so many seconds. Raises HostError."""
        await self._shell.try_link(bound, anew=True)

    async def run_script(self, script: Script) -> bytes:
        """Return what a script writes to stdout; see the port. It runs in a shell that is kept."""
        body = script_body(script)
        question = ShellQuestion(
            attempt=script.purpose,
            body=body,
            limit=script.limit,
            bound=script.bound,
            fence=await self._fence(),
        )
        return (await self._shell.ask(question)).content

    async def resolve_program(self, name: str, path: str | None = None) -> str:
        """Return the absolute path of an executable on the host; see the port.

        ``path`` None means the PATH of the host's login. Where secrets are delivered inline, a
        command is a piece of shell, which is returned as it is.
        """
        if not name or "\0" in name:
            raise ProgramNotFound(f"there is no program with the name {name!r}")
        if self._inline:
            return name
        try:
            return await self.files.resolve_program(name, path)
        except HostError:
            raise
        except TransportError as exc:
            raise ProgramNotFound(str(exc)) from exc
