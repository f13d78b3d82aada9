"""A transport whose processes follow a script, on trio's clock.

Its verdict is ``left_running``: processes that outlived their block.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trio
import trio.abc

from sortie.model import LOCAL, ProcessIdentity, ProgramNotFound, RunId, TransportError
from sortie.transports import Command, Exit
from sortie.transports import Script as ShellScript
from tests.transports.fake_files import FakeFiles


@dataclass(frozen=True, slots=True)
class Say:
    """The process writes to stdout (1) or stderr (2)."""

    source: int
    text: bytes


@dataclass(frozen=True, slots=True)
class Pause:
    """The process takes some seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Ends:
    """The root process exits; what follows comes from processes that it left."""

    exit: Exit


@dataclass(frozen=True, slots=True)
class Breaks:
    """The connection to the process is lost."""

    error: TransportError


Step = Say | Pause | Ends | Breaks
Script = Callable[[Command], Sequence[Step]]


@dataclass(slots=True)
class FakeProcess:
    """A process that follows its script while its output is read."""

    steps: Sequence[Step]
    identity: ProcessIdentity
    exit: Exit | None = None
    stdin: trio.abc.SendStream | None = None
    _exited: trio.Event = field(default_factory=trio.Event)
    _broken: TransportError | None = None

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        for step in self.steps:
            match step:
                case Say(source, text):
                    yield source, text
                case Pause(seconds):
                    await trio.sleep(seconds)
                case Ends(end):
                    self._end_with(end)
                case Breaks(error):
                    self._broken = error
                    self._exited.set()
                    raise error
        if self.exit is None:
            await trio.sleep_forever()

    async def wait(self) -> Exit:
        await self._exited.wait()
        if self.exit is None:
            assert self._broken is not None
            raise self._broken
        return self.exit

    async def end(self) -> Exit:
        if self.exit is None:
            self._end_with(Exit(signal=15, by_us=True))
        return await self.wait()

    def _end_with(self, end: Exit) -> None:
        self.exit = end
        self._exited.set()


class FakeTransport:
    """Knows some programs and directories, and runs scripts."""

    def __init__(
        self,
        script: Script,
        *,
        programs: Mapping[str, str] | None = None,
        directories: Collection[str] = ("/work",),
        host: str = LOCAL,
        ending: TransportError | None = None,
        asking: TransportError | None = None,
    ) -> None:
        self._script = script
        self._programs = {"kiro-cli": "/bin/kiro-cli"} if programs is None else programs
        self._ending = ending
        self._asking = asking
        self.files = FakeFiles(directories)
        if asking:
            self.files.faults["contained"] = asking
        self._host = host
        self.commands: list[Command] = []
        self.left_running = 0

    @property
    def host(self) -> str:
        return self._host

    @asynccontextmanager
    async def process(self, command: Command) -> AsyncIterator[FakeProcess]:
        if command.argv[0] not in self._programs.values():
            raise ProgramNotFound(f"{command.argv[0]} does not exist")
        self.commands.append(command)
        identity = ProcessIdentity(pid=len(self.commands), started_at=trio.current_time())
        process = FakeProcess(self._script(command), identity)
        self.left_running += 1
        try:
            await trio.lowlevel.checkpoint()
            yield process
        finally:
            with trio.CancelScope(shield=True):
                if process.exit is None:
                    await trio.sleep(command.grace)
                    await process.end()
                await trio.sleep(0.5)
            self.left_running -= 1
            if self._ending:
                raise self._ending
            await trio.lowlevel.checkpoint()

    async def resolve_program(self, name: str, path: str | None = None) -> str:
        await trio.lowlevel.checkpoint()
        if self._asking:
            raise self._asking
        if name not in self._programs:
            raise ProgramNotFound(f"{name} was not found on {path}")
        return self._programs[name]

    async def run_script(self, script: ShellScript) -> bytes:
        await trio.lowlevel.checkpoint()
        raise TransportError(f"could not {script.purpose}: there is no shell")

    async def clear(self, path: str, *, grace: float) -> int:
        raise NotImplementedError

    async def occupied(self, path: str) -> list[int]:
        raise NotImplementedError

    def hurry(self) -> None:
        raise NotImplementedError

    async def sweep(
        self,
        run_ids: Collection[RunId],
        *,
        grace: float,
        roots: Mapping[RunId, ProcessIdentity] | None = None,
    ) -> int:
        raise NotImplementedError
