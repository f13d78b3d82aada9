"""The machine: processes and files that outlive any number of the daemon's lives.

Rule 1: a process lives by its program, a task here, until it exits or is ended; a daemon that
dies takes none with it.
Rule 2: SIGTERM takes ``dies_after`` seconds to have an effect (inf: none), SIGKILL ``lingers``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass

import trio

from sortie.model import ProcessIdentity, RunId
from sortie.transports import Command, Exit
from tests.sim.system.trace import Trace
from tests.transports.fake_files import FakeFiles

FIRST_PID = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Temper:
    """How a process dies: seconds after SIGTERM, and after SIGKILL."""

    dies_after: float = 0.0
    lingers: float = 0.0


class Process:
    """A process; ``root`` is the one that the daemon started, itself or what it descends from."""

    def __init__(
        self, pid: int, name: str, command: Command, temper: Temper, root: Process | None
    ) -> None:
        self.pid = pid
        self.name = name
        self.env: Mapping[str, str] = command.env
        self.cwd = command.cwd
        self.temper = temper
        self.root = root or self
        self.identity = ProcessIdentity(pid=pid, started_at=trio.current_time())
        self.said: list[bytes] = []
        self.news = trio.Event()
        self.gone = trio.Event()
        self.exit: Exit | None = None
        self.scope = trio.CancelScope()
        self._fate = Exit(signal=9)
        self._ending = False
        self.is_killed = False

    @property
    def cookie(self) -> str:
        """The run that it belongs to, "" for none."""
        return self.env.get("SORTIE_RUN_ID", "")

    @property
    def issue_id(self) -> str:
        """The issue that its run works on, "" for none."""
        return self.env.get("SORTIE_ISSUE_ID", "")

    def __str__(self) -> str:
        return f"{self.name} {self.pid} of {self.issue_id or 'nobody'} ({self.cookie[:8]})"

    def say(self, text: str) -> None:
        """Write a line to stdout."""
        self.said.append(text.encode() + b"\n")
        self._ring()

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._ending = True
        self.die_in(self.temper.dies_after, 15)

    def kill(self) -> None:
        """Send SIGKILL: it runs nothing any more, though it may linger."""
        self._ending = self.is_killed = True
        self.die_in(self.temper.lingers, 9)

    def die_in(self, seconds: float, signal: int) -> None:
        """Die of a signal in so many seconds, unless it is gone before."""
        at = trio.current_time() + seconds
        if at < self.scope.deadline:
            self.scope.deadline = at
            self._fate = Exit(signal=signal)

    def be_gone(self, status: int | None) -> None:
        """Be over, with an exit status or by what was to kill it."""
        exit_ = Exit(status=status) if status is not None else self._fate
        self.exit = Exit(status=exit_.status, signal=exit_.signal, by_us=self._ending)
        self.gone.set()
        self._ring()

    def _ring(self) -> None:
        self.news.set()
        self.news = trio.Event()


Program = Callable[[Process], Awaitable[int]]
"""What a process does; returns its exit status."""

Shell = Callable[[Command], tuple[str, Program, Temper]]
"""What a command turns out to be: its name, what it does and how it dies."""


class SimFiles(FakeFiles):
    """A file system; ``removed`` is told of each directory that is gone."""

    removed: Callable[[str], object] = staticmethod(lambda _path: None)

    async def remove_directory(self, root: str, name: str) -> bool:
        """Remove ``root/name`` with all it holds."""
        removed = await super().remove_directory(root, name)
        if removed:
            self.removed(f"{root}/{name}")
        return removed


class Machine:
    """Processes in a nursery of the world's own, and a file system.

    ``shell`` says what commands do. ``started`` is told of each process before it does anything;
    ``looked`` says when the daemon last looked who lives in a directory, ``asked_for_work`` in
    which ones it has looked for work that is not pushed.
    """

    def __init__(self, nursery: trio.Nursery, shell: Shell, trace: Trace) -> None:
        self.files = SimFiles()
        self.looked: dict[str, float] = {}
        self.asked_for_work: set[str] = set()
        self.alive: list[Process] = []
        self.started: Callable[[Process], object] = lambda _process: None
        self._nursery = nursery
        self.shell = shell
        self._trace = trace
        self._pid = FIRST_PID

    def launch(self, command: Command) -> Process:
        """Start what a command names."""
        name, program, temper = self.shell(command)
        return self.start(name, command, program, temper)

    def start(
        self,
        name: str,
        command: Command,
        program: Program,
        temper: Temper,
        parent: Process | None = None,
    ) -> Process:
        """Start a process, of a parent where it has one."""
        self._pid += 1
        process = Process(self._pid, name, command, temper, parent and parent.root)
        self._trace.note("machine", f"starts {process}")
        self.started(process)
        self.alive.append(process)
        self._nursery.start_soon(self._live, process, program)
        return process

    async def _live(self, process: Process, program: Program) -> None:
        status: int | None = None
        with process.scope:
            status = await program(process)
        self.alive.remove(process)
        process.be_gone(status)
        self._trace.note("machine", f"gone is {process}: {process.exit}")

    def family(self, root: Process) -> list[Process]:
        """Return what lives of a process and all that descends from it."""
        return [process for process in self.alive if process.root is root]

    def of_runs(self, run_ids: Collection[RunId]) -> list[Process]:
        """Return the processes that carry one of these cookies."""
        return [process for process in self.alive if process.cookie in run_ids]

    def inside(self, path: str) -> list[Process]:
        """Return the processes that live in a directory."""
        return [p for p in self.alive if p.cwd == path or p.cwd.startswith(f"{path}/")]

    async def end(self, find: Callable[[], list[Process]], grace: float, hurry: trio.Event) -> int:
        """End what ``find`` finds, SIGTERM first; return how many there were at the beginning."""
        first = find()
        for process in first:
            process.terminate()
        if not hurry.is_set():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_until, hurry, nursery.cancel_scope)
                with trio.move_on_after(grace):
                    await _all_gone(first)
                nursery.cancel_scope.cancel()
        while left := find():
            for process in left:
                process.kill()
            await _all_gone(left)
        return len(first)


async def _until(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


async def _all_gone(processes: list[Process]) -> None:
    for process in processes:
        await process.gone.wait()
