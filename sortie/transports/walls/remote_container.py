"""A remote host whose programs start in the container of their run, as the user of its login."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from msgspec.structs import replace

from sortie.model import RunId, TransportError
from sortie.transports import Command, Process, Script
from sortie.transports.container_entrance import HostEntrance
from sortie.transports.remote.scripts import text
from sortie.transports.walls import RunImage
from sortie.transports.walls.container import DAEMON_LABEL, Container
from sortie.transports.walls.container_choice import ContainerChoice
from sortie.transports.walls.container_engine import ContainerEngine
from sortie.transports.walls.container_transport import ContainerTransport, check_machine
from sortie.transports.walls.host_container import open_host_container
from sortie.transports.walls.host_engine import ContainerHost, find_container_host
from sortie.transports.walls.way_back import open_way_back

_LIMIT = 1 << 20


class RemoteContainerTransport(ContainerTransport):
    """A remote host, whose programs start in the container of their run.

    In the paths of the choice ``~`` is the home there. ``environ`` is what agents there have of the
    daemon's environment.
    """

    _host: ContainerHost | None = None

    def _started(self, command: Command) -> AbstractAsyncContextManager[Process]:
        if self._network is None:
            return self.outside.process(command)
        return self._networked(command)

    @asynccontextmanager
    async def _networked(self, command: Command) -> AsyncIterator[Process]:
        """Start a program with a network of its own, from which a way leads to the proxy."""
        assert self._network is not None
        assert isinstance(command.container, HostEntrance)
        async with open_way_back(self.outside) as way:
            entrance = replace(command.container, proxy=way.path)
            within = replace(command, container=entrance)
            async with self._network.process(self.outside, within, way.listener) as process:
                yield process

    async def _find_engine(self) -> ContainerEngine:
        self._host = await find_container_host(self.outside, self._choice.engine)
        return self._host.engine

    async def _try(self) -> None:
        host = await self._found_host()
        check_machine(host.machine)
        await host.engine.remove_ended(f"{DAEMON_LABEL}={self._choice.daemon}")
        await self._try_program()

    async def _found_host(self) -> ContainerHost:
        await self._found()
        assert self._host is not None
        return self._host

    @asynccontextmanager
    async def _container(
        self, run_id: RunId, workspace: str | None, image: RunImage
    ) -> AsyncIterator[Container]:
        host = await self._found_host()
        async with self._making:
            known = await host.engine.image(image.name)
        choice = self._choice.at_home(host.home)
        mounted = os.fsdecode(await self._told("cat /proc/self/mountinfo"))
        shown = (*choice.shown(workspace, mounted), *choice.hidden)
        there = await self._there(choice, shown)
        plan = choice.plan_of(run_id, workspace, image, mounted, there)
        async with open_host_container(self.outside, host, plan, known) as container:
            yield container

    async def _there(self, choice: ContainerChoice, paths: tuple[str, ...]) -> Mapping[str, bool]:
        """Make the directories that are a run's own, and return which of the paths are there, and
        whether each is a directory."""
        counts = (str(len(choice.own)), str(len(paths)))
        said = await self._told(text("found_paths").decode(), *counts, *choice.own, *paths)
        told = [os.fsdecode(word) for word in said.split(b"\0")[:-1]]
        if len(told) % 3:
            raise TransportError(f"host {self.host} did not say what a container has to show")
        return {name: kind == "d" for name, kind in zip(told[::3], told[2::3], strict=True)}

    async def _told(self, script: str, *arguments: str) -> bytes:
        return await self.outside.run_script(
            Script(
                purpose="look for what a container shows",
                text=script,
                arguments=arguments,
                cwd="/",
                env={},
                limit=_LIMIT,
            )
        )
