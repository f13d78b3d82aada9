"""The port to the machine that one life of the daemon has."""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

import trio
import trio.abc

from sortie.model import LOCAL, ProcessIdentity, ProgramNotFound, RunId, TransportError
from sortie.transports import Command, Exit, Files, Script
from sortie.workspaces.unsaved_work import LOOK_FOR_WORK
from tests.sim.system.machine import Machine, Process
from tests.sim.system.plug import Plug
from tests.transports.fake_files import FakeFiles


class Handle:
    """A process as the one who started it sees it."""

    def __init__(self, process: Process, transport: SimTransport, grace: float) -> None:
        self._process = process
        self._transport = transport
        self._grace = grace
        self.identity: ProcessIdentity = process.identity
        self.stdin: trio.abc.SendStream | None = None

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """Yield what the process says, until it is gone."""
        process, heard = self._process, 0
        while True:
            while heard < len(process.said):
                heard += 1
                yield 1, process.said[heard - 1]
            if process.gone.is_set():
                return
            await self._transport.plug.through(process.news.wait)

    async def wait(self) -> Exit:
        """Wait until the process is gone."""
        await self._transport.plug.through(self._process.gone.wait)
        assert self._process.exit is not None
        return self._process.exit

    async def end(self) -> Exit:
        """End the process and all that descends from it."""
        root = self._process
        machine = self._transport.machine
        await self._transport.end(lambda: machine.family(root), self._grace)
        return await self.wait()


P = ParamSpec("P")
T = TypeVar("T")


def _plugged(
    method: Callable[Concatenate[FakeFiles, P], Awaitable[T]],
) -> Callable[Concatenate[LifeFiles, P], Coroutine[Any, Any, T]]:
    """Return an operation that the world performs while the life goes on."""

    async def perform(self: LifeFiles, /, *args: P.args, **options: P.kwargs) -> T:
        operation = getattr(self.machine.files, method.__name__)
        return await self.plug.through(partial(operation, *args, **options))

    return perform


class LifeFiles:
    """The machine's files, as one life sees them."""

    def __init__(self, machine: Machine, plug: Plug) -> None:
        self.machine = machine
        self.plug = plug

    async def together(self, work: Callable[[Files], Coroutine[Any, Any, T]]) -> T:
        """Do several operations, one after the other; see the port."""
        return await work(self)

    make_directory = _plugged(FakeFiles.make_directory)
    remove_directory = _plugged(FakeFiles.remove_directory)
    contained = _plugged(FakeFiles.contained)
    read_file = _plugged(FakeFiles.read_file)
    read_file_inside = _plugged(FakeFiles.read_file_inside)
    write_file = _plugged(FakeFiles.write_file)
    remove_file = _plugged(FakeFiles.remove_file)


class SimTransport:
    """A Transport of one life."""

    host = LOCAL

    def __init__(self, machine: Machine, plug: Plug) -> None:
        self.machine = machine
        self.plug = plug
        self.files = LifeFiles(machine, plug)
        self._hurry = trio.Event()

    @asynccontextmanager
    async def process(self, command: Command) -> AsyncIterator[Handle]:
        """Start a program; leaving the block ends its tree."""
        process = await self.plug.through(lambda: self._launch(command))
        handle = Handle(process, self, command.grace)
        try:
            yield handle
        finally:
            with trio.CancelScope(shield=True):
                await handle.end()

    async def _launch(self, command: Command) -> Process:
        files = self.machine.files
        await trio.lowlevel.checkpoint()
        if not await files.contained("/", command.cwd):
            raise TransportError(f"could not start {command.argv[0]}: no directory {command.cwd}")
        if "process" in files.faults:
            raise files.faults["process"]
        return self.machine.launch(command)

    async def end(self, find: object, grace: float) -> int:
        """End the processes that ``find`` returns."""
        assert callable(find)
        await self.plug.through(trio.lowlevel.checkpoint)
        return await self.plug.through(lambda: self.machine.end(find, grace, self._hurry))

    async def sweep(
        self,
        run_ids: Collection[RunId],
        *,
        grace: float,
        roots: Mapping[RunId, ProcessIdentity] | None = None,
    ) -> int:
        """End the processes of these runs, recorded roots included."""
        wanted, identities = frozenset(run_ids), list((roots or {}).values())

        def find() -> list[Process]:
            rooted = [p for p in self.machine.alive if p.root.identity in identities]
            return list(dict.fromkeys(self.machine.of_runs(wanted) + rooted))

        return await self.end(find, grace)

    async def clear(self, path: str, *, grace: float) -> int:
        """End what lives in a directory: nobody in this world is a stranger there."""
        if not await self.occupied(path):
            return 0
        return await self.end(lambda: self.machine.inside(path), grace)

    async def occupied(self, path: str) -> Sequence[int]:
        """Return who lives in a directory."""
        await self.plug.through(trio.lowlevel.checkpoint)
        self.machine.looked[path] = trio.current_time()
        return [process.pid for process in self.machine.inside(path)]

    def hurry(self) -> None:
        """Give no process any more grace."""
        if not self.plug.pulled:
            self._hurry.set()

    async def run_script(self, script: Script) -> bytes:
        """Answer that nothing was found, but at the first look into every third directory that
        some work in it is not pushed yet."""
        await self.plug.through(trio.lowlevel.checkpoint)
        seen = self.machine.asked_for_work
        if script.purpose != LOOK_FOR_WORK or script.cwd in seen:
            return b"end\n"
        seen.add(script.cwd)
        return b"tree 0 1 work\nend\n" if len(seen) % 3 == 0 else b"end\n"

    async def resolve_program(self, name: str, path: str | None = None) -> str:
        """Find no program: what runs here is named by its whole path."""
        await self.plug.through(trio.lowlevel.checkpoint)
        raise ProgramNotFound(f"no program {name!r} on {path}")
