"""A transport in memory: FakeFiles, and shell scripts by table.

It has no real processes, links, modes or real paths, so it cannot stand in for a real transport
where those are what matters; ``test_fake`` says what it keeps of the port.
Its verdicts are ``alive`` (processes that outlived their block) and ``ran``.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field

import trio
import trio.abc

from sortie.model import (
    LOCAL,
    ProcessesLeft,
    ProcessIdentity,
    ProgramNotFound,
    RunId,
    TransportError,
)
from sortie.transports import Command, Exit, Script, Stdin
from sortie.transports.lost_links import LinkChanged, LostLinks
from tests.transports.fake_files import FakeFiles

FIRST_PID = 1 << 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Does:
    """What a script does: it writes ``output``, and exits with ``status`` after ``seconds``.

    inf seconds: it never ends by itself. It needs ``dies_after`` seconds to end after SIGTERM.
    ``leaves`` are files that it makes in its working directory at the start.
    """

    seconds: float = 0.0
    status: int = 0
    output: bytes = b""
    dies_after: float = 0.0
    leaves: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A process that is gone."""

    script: str
    cwd: str
    env: Mapping[str, str]
    exit: Exit
    seconds: float


class FakeStdin(trio.abc.SendStream):
    """A stdin that its program reads at once; ``received`` is what it has read."""

    def __init__(self, process: FakeProcess) -> None:
        self.received = bytearray()
        self.closed = False
        self._process = process

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes, while the program lives."""
        await self.wait_send_all_might_not_block()
        self.received += data

    async def wait_send_all_might_not_block(self) -> None:
        """Raise where nothing can be sent any more."""
        await trio.lowlevel.checkpoint()
        if self.closed:
            raise trio.ClosedResourceError("this stdin was closed")
        if self._process.is_over():
            raise trio.BrokenResourceError("the program has exited")

    async def aclose(self) -> None:
        """Send no more."""
        self.closed = True
        await trio.lowlevel.checkpoint()


class FakeProcess:
    """A process whose time of death is known, and moves when it is told to end."""

    def __init__(self, pid: int, command: Command, does: Does, hurried: Callable[[], bool]) -> None:
        self.command = command
        self.began = trio.current_time()
        self.identity = ProcessIdentity(pid=pid, started_at=self.began)
        self.exit: Exit | None = None
        self.stdin = FakeStdin(self) if command.stdin is Stdin.PIPE else None
        self._does = does
        self._hurried = hurried
        self._dies_at = self.began + does.seconds
        self._fate = Exit(status=does.status)
        self._ending = False
        self._moved = trio.Event()
        self._read = False

    def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """Yield the output at once, then nothing until the exit."""
        if self._read:
            raise RuntimeError("output may be iterated once")
        self._read = True
        return self._output()

    async def _output(self) -> AsyncIterator[tuple[int, bytes]]:
        await trio.lowlevel.checkpoint()
        if self._does.output:
            yield 1, self._does.output
        await self.wait()

    async def wait(self) -> Exit:
        """Wait for the exit."""
        await trio.lowlevel.checkpoint()
        while self.exit is None:
            moved = self._moved
            with trio.move_on_at(self._dies_at):
                await moved.wait()
                continue
            self.exit = self._fate
        return self.exit

    async def end(self) -> Exit:
        """Send SIGTERM, and SIGKILL after the grace time."""
        if self.exit is None and not self._ending:
            self._ending = True
            grace = 0.0 if self._hurried() else self.command.grace
            polite = self._does.dies_after <= grace
            self._fate = Exit(signal=15 if polite else 9, by_us=True)
            self._die_at(trio.current_time() + min(self._does.dies_after, grace))
        return await self.wait()

    def is_over(self) -> bool:
        """Tell whether it has exited."""
        return self.exit is not None or trio.current_time() >= self._dies_at

    def hurry(self) -> None:
        """Die now, if it is being ended."""
        if self._ending and self.exit is None:
            self._fate = Exit(signal=9, by_us=True)
            self._die_at(trio.current_time())

    def _die_at(self, time: float) -> None:
        self._dies_at = min(self._dies_at, time)
        self._moved.set()
        self._moved = trio.Event()


class FakeTransport:
    """A host in memory.

    ``scripts`` maps the text of ``sh -c`` to what it does; an unknown one exits with 127. Switches:
    ``faults`` maps a method's name to what it raises, ``pauses`` to the seconds that it takes
    first, those of ``files`` too; ``squatters`` maps a directory to pids of strangers that live in
    it, ``leftovers`` to those that runs left there. ``answer`` is what each ``run_script`` finds,
    at first nothing. ``note`` is told of each process.
    """

    def __init__(
        self,
        scripts: Mapping[str, Does] | None = None,
        *,
        host: str = LOCAL,
        directories: Collection[str] = (),
        note: Callable[[str], object] | None = None,
    ) -> None:
        self.scripts = dict(scripts or {})
        self.programs: dict[str, str] = {}
        self.files = FakeFiles(directories)
        self.faults = self.files.faults
        self.pauses = self.files.pauses
        self.squatters: dict[str, list[int]] = {}
        self.leftovers: dict[str, list[int]] = {}
        self.alive: list[FakeProcess] = []
        self.ran: list[Ran] = []
        self.swept: list[frozenset[RunId]] = []
        self.hurried = False
        self.answer = b"end\n"
        self.lost_links = LostLinks()
        self._host = host
        self._pid = FIRST_PID
        self._note = note or (lambda _text: None)

    @property
    def host(self) -> str:
        """The name of the host."""
        return self._host

    def processes_of(self, script: str) -> list[Ran]:
        """Return the processes of a script that are gone, oldest first."""
        return [ran for ran in self.ran if ran.script == script]

    def following_links(self, run_id: RunId, changed: LinkChanged) -> AbstractContextManager[None]:
        """Tell of what is in ``lost_links``."""
        return self.lost_links.followed(run_id, changed)

    # Processes

    @asynccontextmanager
    async def process(self, command: Command) -> AsyncIterator[FakeProcess]:
        """Start a script; leaving the block ends it."""
        await self.files.begin("process")
        if command.argv[0] not in ("/bin/sh", "sh"):
            raise ProgramNotFound(f"could not start {command.argv[0]}: there is no such program")
        if command.cwd not in self.files.directories:
            raise TransportError(f"could not start {command.argv[0]}: no directory {command.cwd}")
        script = command.argv[2]
        does = self.scripts.get(script, Does(status=127, output=b"not found\n"))
        for name, content in does.leaves.items():
            await self.files.write_file(command.cwd, name, content)
        self._pid += 1
        process = FakeProcess(self._pid, command, does, lambda: self.hurried)
        self.alive.append(process)
        self._note(f"runs {script}")
        try:
            yield process
        finally:
            with trio.CancelScope(shield=True):
                exit_ = await process.end()
            self.alive.remove(process)
            seconds = trio.current_time() - process.began
            self.ran.append(
                Ran(script=script, cwd=command.cwd, env=command.env, exit=exit_, seconds=seconds)
            )

    async def resolve_program(self, name: str, path: str | None = None) -> str:
        """Return the path of a program of ``programs``."""
        await self.files.begin("resolve_program")
        if name not in self.programs:
            raise ProgramNotFound(f"no program {name!r} on {path}")
        return self.programs[name]

    async def run_script(self, script: Script) -> bytes:
        """Answer what ``answer`` says."""
        await self.files.begin("run_script")
        return self.answer

    async def sweep(
        self,
        run_ids: Collection[RunId],
        *,
        grace: float,
        roots: Mapping[RunId, ProcessIdentity] | None = None,
    ) -> int:
        """End the processes of these runs."""
        await self.files.begin("sweep")
        recorded = roots or {}
        wanted = frozenset(run_ids) | recorded.keys()
        self.swept.append(wanted)
        found = [p for p in self.alive if _run_of(p) in wanted]
        found += [p for p in self.alive if _run_of(p) is None and p.identity in recorded.values()]
        for process in found:
            await process.end()
        return len(found)

    async def clear(self, path: str, *, grace: float) -> int:
        """End the left-overs that live in a directory; name the squatters."""
        await self.files.begin("clear")
        inside = [home for home in self.leftovers if _lies_in(home, path)]
        ended = sum(len(self.leftovers.pop(home)) for home in inside)
        pids = await self.occupied(path)
        if pids:
            raise ProcessesLeft(
                f"somebody lives in {path}: {pids}", pids=frozenset(pids), ended=ended
            )
        return ended

    async def occupied(self, path: str) -> list[int]:
        """Return who lives in a directory."""
        await self.files.begin("occupied")
        homes = [(p.command.cwd, p.identity.pid) for p in self.alive]
        for others in (self.squatters, self.leftovers):
            homes += [(home, pid) for home, pids in others.items() for pid in pids]
        return [pid for home, pid in homes if _lies_in(home, path)]

    def hurry(self) -> None:
        """Give no process any more grace."""
        self.hurried = True
        for process in self.alive:
            process.hurry()


def _run_of(process: FakeProcess) -> str | None:
    return process.command.env.get("SORTIE_RUN_ID")


def _lies_in(home: str, path: str) -> bool:
    return home == path or home.startswith(f"{path}/")


NEVER = Does(seconds=math.inf)
"""A script that does not end by itself."""
