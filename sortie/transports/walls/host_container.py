"""A container of a run on a remote host, which lives as long as the run and no longer.

A program of the run holds the FIFO whose end the container waits for. It lives and ends there as
the others do: with the link, or as long as programs outlive that, and with the run after a crash.

Rule: what the engine has started for a run is gone when the block of the container is left, or when
that program is.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from pathlib import Path

import trio
from msgspec import Struct

from sortie.model import HostError, RunId, TransportError
from sortie.transports import COOKIE, Command, Process, Script, Transport
from sortie.transports.container_entrance import HostEntrance
from sortie.transports.local import fork_server
from sortie.transports.remote.scripts import text
from sortie.transports.walls import on_host
from sortie.transports.walls.container import (
    FIFO,
    Container,
    ContainerPlan,
    arguments_of,
    check_limits,
)
from sortie.transports.walls.container_engine import EngineImage
from sortie.transports.walls.container_names import PREFIX
from sortie.transports.walls.host_engine import ContainerHost

_HOLD = 'exec 3<>"$0" || exit; echo held; exec sleep 2147483647'
"""What keeps the FIFO, its $0, open for writing."""

_REMOVAL_BOUND = 120.0  # seconds for what is done at the end
_REMOVALS = 2
_LIMIT = 4096

_PROGRAMS = {
    "confinement": fork_server.__package__,
    "container_limits": "sortie.transports.walls",
    "container_entry": on_host.__package__,
    "container_programs": on_host.__package__,
    "proxy_lead": on_host.__package__,
}
"""What the python3 of the host runs, by the packages that hold it."""


class _Keeper(Struct, frozen=True, kw_only=True):
    """The process that keeps a container; ``cgroups`` is how many it has for itself."""

    pid: int
    ticks: int
    cgroups: int


@asynccontextmanager
async def open_host_container(
    outside: Transport, host: ContainerHost, plan: ContainerPlan, image: EngineImage
) -> AsyncIterator[Container]:
    """Start a container of an image that the host has, and remove it in the end. Raises
    TransportError."""
    opened = _HostContainer(outside, host, plan)
    async with opened.place() as place, opened.held(place):
        keeper: _Keeper | None = None
        try:
            keeper = await opened.start(place)
            check_limits(host.engine, plan, has_cgroups=keeper.cgroups > 0)
            words = (host.python, "-ISWignore", f"{place}/container_entry.py")
            yield Container(
                name=opened.name,
                entrance=HostEntrance(words=words, pid=keeper.pid, ticks=keeper.ticks),
                digest=image.digest,
                environ={**image.environ, **plan.environ},
            )
        finally:
            with trio.move_on_after(_REMOVAL_BOUND, shield=True):
                await opened.remove(keeper)


class _HostContainer:
    """The steps of one container."""

    def __init__(self, outside: Transport, host: ContainerHost, plan: ContainerPlan) -> None:
        self.name = f"{PREFIX}{secrets.token_hex(8)}-{plan.run_id}"
        self._outside = outside
        self._host = host
        self._plan = plan

    @asynccontextmanager
    async def place(self) -> AsyncIterator[str]:
        """Have a directory with the FIFO, and with what enters the container."""
        made = await self._asked("make a place for a container", "container_place", FIFO)
        place = os.fsdecode(made.partition(b"\0")[0])
        if not place.startswith("/"):
            raise TransportError(
                f"host {self._outside.host} made no place for a container; look at TMPDIR there"
            )
        try:
            for name, package in _PROGRAMS.items():
                content = files(package).joinpath(f"{name}.py").read_bytes()
                await self._outside.files.write_file(place, f"{name}.py", content)
            yield place
        finally:
            with trio.move_on_after(_REMOVAL_BOUND, shield=True), suppress(TransportError):
                await self._asked("remove the place of a container", "remove_socket_place", place)

    @asynccontextmanager
    async def held(self, place: str) -> AsyncIterator[Process]:
        """Have the FIFO held by a program of the run."""
        command = Command(
            argv=("/bin/sh", "-c", _HOLD, f"{place}/fifo/{FIFO}"),
            cwd="/",
            env={COOKIE: RunId(self._plan.run_id)},
            grace=0.0,
        )
        async with self._outside.process(command) as process:
            async for _, chunk in process.output():
                if chunk.startswith(b"held"):
                    yield process
                    return
            raise TransportError(f"host {self._outside.host} could not keep a container")

    async def start(self, place: str) -> _Keeper:
        """Start the container, and return what keeps it."""
        engine = self._host.engine
        await engine.ask(*arguments_of(engine, self._plan, self.name, Path(place)))
        if engine.is_podman:
            pid = os.fsdecode(await self._outside.files.read_file(place, "keeper", _LIMIT) or b"")
        else:
            pid = await engine.ask("inspect", "--format", "{{.State.Pid}}", self.name)
        arguments = ("await", pid.strip(), FIFO)
        said = await self._outside.run_script(
            Script(
                purpose=f"wait for the container {self.name}",
                text='"$@" 2>&1 || :',
                arguments=(
                    self._host.python,
                    "-ISWignore",
                    f"{place}/container_entry.py",
                    *arguments,
                ),
                cwd="/",
                env={},
                limit=_LIMIT,
            )
        )
        words = said.decode(errors="replace").split()
        if len(words) != 2 or not all(word.isdecimal() for word in words):
            raise TransportError(f"the container {self.name}: {' '.join(words)}")
        return _Keeper(pid=int(pid), ticks=int(words[0]), cgroups=int(words[1]))

    async def remove(self, keeper: _Keeper | None) -> None:
        """Kill the container and remove it. What the engine cannot remove once it is killed is left
        to a later start. Raises TransportError where it may live on."""
        killed = False
        if keeper is not None:
            arguments = (str(keeper.pid), str(keeper.ticks))
            said = await self._asked(f"end the container {self.name}", "end_keeper", *arguments)
            killed = said == b"gone"
        for left in reversed(range(_REMOVALS)):
            try:
                await self._host.engine.remove([self.name])
                return
            except HostError:
                raise
            except TransportError:  # as at first where its monitor was killed
                if not (left or killed):
                    raise

    async def _asked(self, purpose: str, name: str, *arguments: str) -> bytes:
        script = b"\n".join(map(text, ("stat_of", "lives", name)))
        return await self._outside.run_script(
            Script(
                purpose=purpose,
                text=script.decode(),
                arguments=arguments,
                cwd="/",
                env={},
                limit=_LIMIT,
            )
        )
