"""Starts the programs of a remote host, and keeps in mind which of them may be left."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import (
    AsyncExitStack,
    asynccontextmanager,
)

import trio
from msgspec import Struct

from sortie.config.settings import Isolation
from sortie.model import (
    HostError,
    HostTrouble,
    TransportError,
)
from sortie.transports import Command
from sortie.transports.container_entrance import ContainerEntrance
from sortie.transports.remote.container_launch import namespaces_in
from sortie.transports.remote.fence import FindFence, LeaderFence
from sortie.transports.remote.launch import Bounds, NoRoomForNamespace
from sortie.transports.remote.launch_scripts import inline_command, launch_script
from sortie.transports.remote.namespace_probe import NamespaceProbe
from sortie.transports.remote.namespaces import Namespaces
from sortie.transports.remote.process import RemoteProgram
from sortie.transports.remote.protocol import LaunchOutput
from sortie.transports.remote.remote_launch import RemoteLaunch, check_speakable
from sortie.transports.remote.run_endings import under_way
from sortie.transports.remote.scripts import SHELL
from sortie.transports.remote.shell import Shell
from sortie.transports.remote.supervised_programs import SupervisedPrograms
from sortie.transports.remote.unconfirmed_runs import UnconfirmedRuns

_MOST_TRIES = 3  # to make a namespace where one could be made before


class RemotePrograms(Struct, frozen=True, kw_only=True):
    """Starts programs; see ShellTransport for what they depend on."""

    host: str
    shell: Shell
    supervised: SupervisedPrograms
    unconfirmed: UnconfirmedRuns
    probe: NamespaceProbe
    isolation: Isolation
    bounds: Bounds
    inline: bool
    variables: tuple[str, ...]
    new_nonce: Callable[[], str]
    fence: FindFence
    hurry: trio.Event

    @property
    def outlive_links(self) -> bool:
        """Whether programs outlive their links."""
        return self.supervised.wanted and not self.inline

    @asynccontextmanager
    async def started(self, command: Command) -> AsyncIterator[RemoteProgram]:
        """Start a program; leaving the block ends its whole tree. See the port."""
        check_speakable(command, inline=self.inline)
        for left in reversed(range(_MOST_TRIES)):
            container = command.container
            if command.listener is not None or isinstance(container, ContainerEntrance):
                unknown = f"could not start {command.argv[0][:80]} on host {self.host}"
                raise TransportError(f"{unknown}: its network or container is of another machine")
            namespaces = namespaces_in(command) or await self.namespaces()
            if command.wrappers:
                if namespaces is None:
                    raise self._no_sandbox(command)
                namespaces = namespaces.around_sandbox
            async with AsyncExitStack() as stack:
                try:
                    process = await stack.enter_async_context(
                        self._started_once(command, namespaces)
                    )
                except NoRoomForNamespace:
                    if not left:
                        raise
                else:
                    yield process
                    return
            self.probe.forget()

    async def namespaces(self) -> Namespaces | None:
        """Return how programs get a PID namespace on the host; None where they get none.

        Raises HostError where they have to and it gives none, or cannot be asked.
        """
        if self.isolation is Isolation.NONE:
            return None
        found = await self.probe.find()
        if isinstance(found, Namespaces):
            return found
        if self.isolation is not Isolation.PID_NAMESPACE:
            return None
        raise HostError(
            HostTrouble.UNREACHABLE,
            f"host {self.host} gives no PID namespace, which isolation: pid-namespace demands:"
            f" {found.reason}; allow user namespaces there, or set isolation to auto",
        )

    def _no_sandbox(self, command: Command) -> TransportError:
        return TransportError(
            f"could not start {command.argv[0][:80]} on host {self.host}: its sandbox needs a PID"
            " namespace, and programs get none there; 'sortie doctor' says why"
            f" (hosts.{self.host}.isolation): lift that, or set sandbox.kind to none"
        )

    @asynccontextmanager
    async def _started_once(
        self, command: Command, namespaces: Namespaces | None
    ) -> AsyncIterator[RemoteProgram]:
        launch = self.launch(command, self.new_nonce(), namespaces, await self.fence())
        if command.on_record is not None and self.outlive_links:
            await command.on_record(launch.nonce)
        async with under_way(launch.marker), AsyncExitStack() as stack:
            process = await self._prepared(launch, stack)
            async with self.left(launch.cookie, process):
                await process.start(self.bounds)
                yield process

    def launch(
        self,
        command: Command,
        nonce: str,
        namespaces: Namespaces | None,
        fence: LeaderFence | None,
    ) -> RemoteLaunch:
        """Return what a program is started by."""
        return RemoteLaunch(
            command=command,
            nonce=nonce,
            lease=self.bounds.lease,
            inline=self.inline,
            namespaces=namespaces,
            variables=self.variables,
            fence=fence,
        )

    async def _prepared(self, launch: RemoteLaunch, stack: AsyncExitStack) -> RemoteProgram:
        """Begin the script of a launch; it ends with the stack. Raises HostError."""
        attempt = f"start {launch.command.argv[0][:80]}"
        if self.outlive_links:
            return await self.supervised.begin(launch, attempt, stack)
        line, text = SHELL, launch_script(launch)
        if self.inline:
            line, text = inline_command(launch, text), b""
        parser = LaunchOutput(launch.nonce)
        script = await self.shell.begin(attempt, launch.nonce, text, command=line, parser=parser)
        stack.callback(script.channel.abort)
        return RemoteProgram(self.shell, launch, script, self.hurry, stack)

    @asynccontextmanager
    async def left(self, run_id: str, process: RemoteProgram) -> AsyncIterator[None]:
        """End with the block what was started in it, and keep in mind where that is not sure."""
        self.unconfirmed.begin(run_id, process)
        failed = gone = False
        try:
            yield
        except TransportError:
            failed = True
            raise
        finally:
            try:
                await process.leave()
                gone = True
            finally:
                self.unconfirmed.end(run_id, process, gone=gone, failed=failed)
