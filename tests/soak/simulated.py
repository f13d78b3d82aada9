"""Hours of full load on a virtual clock: the real loop, workers and database, simulated agents.

Every slot is taken all the time. Agents talk, use tools, end well, fail, leave children; people
put issues back and put them away, so that workspaces come and go. What holds in any simulated day
is judged here too. Memory is what code of the program itself has allocated and still holds, since
the simulation around it keeps some accounts of its own.
"""

from __future__ import annotations

import gc
import os
import tempfile
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from random import Random

import trio

from sortie.scheduler import events as ev
from sortie.transports import Command
from tests.sim.system.determinism import run_seeded
from tests.sim.system.machine import Process, Program, Temper
from tests.sim.system.plug import Plug
from tests.sim.system.programs import Manners, Shell
from tests.sim.system.run import RAM, rendered_inline, sim_issues
from tests.sim.system.trace import Line, Trace
from tests.sim.system.world import Life, SimWorld, sim_settings
from tests.soak.flatness import WRITE_AHEAD_LOG, Look, Quantity

SLOTS = 16
ISSUES = 40
STEP = 60.0
"""Seconds of virtual time between two things that people do."""

LOOKS = 60
QUANTITIES = (
    Quantity(name="memory", unit="bytes", share=0.05, slack=32 * 1024),
    Quantity(name="descriptors", unit="", share=0.0, slack=0),
    Quantity(name="threads", unit="", share=0.0, slack=0),
    WRITE_AHEAD_LOG,
)


class ShortTrace(Trace):
    """A trace that keeps nothing but what is wrong."""

    def note(self, kind: str, told: object) -> None:
        self.lines[:] = [Line(trio.current_time(), kind, told, "")]

    def tell(self, kind: str, thing: object) -> None:
        pass


class BusyShell(Shell):
    """Agents that work for half a minute and mostly end well; hooks that take a moment."""

    def __call__(self, command: Command) -> tuple[str, Program, Temper]:
        """Return the name, the program and the temper of what a command starts."""
        name = "agent" if command.argv[0] == "agent" else command.argv[2]
        draw = self.manners.draw
        if name != "agent":
            return name, _talk(1, 0.05), Temper()
        status = draw.choices([0, 1], [12, 1])[0]
        temper = Temper(dies_after=draw.choice([0.0, 0.1, 1.0]))
        program = _talk(draw.randrange(2, 20), draw.uniform(0.5, 4.0), status)
        if draw.random() < 0.1:
            return name, self._leave_child(program, command), temper
        return name, program, temper

    def _leave_child(self, program: Program, command: Command) -> Program:
        async def leave(process: Process) -> int:
            assert self.machine is not None
            self.machine.start("child", command, _talk(1, 600.0), Temper(), process)
            return await program(process)

        return leave


def _talk(lines: int, every: float, status: int = 0) -> Program:
    async def talk(process: Process) -> int:
        for number in range(lines):
            await trio.sleep(every)
            process.say(f"step {number} of {lines}")
        return status

    return talk


class Soak:
    """One long life; ``looks`` is what was seen, and ``wrongs`` what was broken meanwhile.

    ``count`` is how often it is looked, evenly.
    """

    def __init__(
        self, seed: int, hours: float, report: Callable[[Look], object], count: int = LOOKS
    ) -> None:
        self.looks: list[Look] = []
        self.wrongs: list[str] = []
        self.runs = 0
        self._seed = seed
        self._every = hours * 3600.0 / count
        self._count = count
        self._report = report
        self._draw = Random(f"{seed} soak")

    def live(self) -> None:
        """Live through it."""
        place = RAM if os.path.isdir(RAM) else None
        with (
            tempfile.TemporaryDirectory(prefix="sortie-soak-", dir=place) as directory,
            rendered_inline(),
        ):
            run_seeded(self._seed, lambda: self._hours(f"{directory}/db"))

    async def _hours(self, path: str) -> None:
        names = [f"i{number}" for number in range(ISSUES)]
        trace = ShortTrace(hidden="")
        async with trio.open_nursery() as machinery:
            world = SimWorld(machinery, self._seed, path, trace, sim_issues(names))
            world.settings = sim_settings(
                tracker={"comments": {}},
                agent={"max_concurrent_agents": SLOTS, "max_retry_backoff_ms": 20_000},
                polling={"interval_ms": 10_000},
            )
            manners = Manners(Random(f"{self._seed} programs"), world.move_issue)
            shell = BusyShell(manners)
            shell.machine = world.machine
            world.machine.shell = shell
            await world.live(Plug(), lambda life: self._load(world, life, path))
            machinery.cancel_scope.cancel()
        world.drive.disk.close()
        self.wrongs = [str(line) for line in trace.wrongs]

    async def _load(self, world: SimWorld, life: Life, path: str) -> None:
        tracemalloc.start()
        try:
            began = trio.current_time()
            while len(self.looks) < self._count and not world.trace.wrongs:
                self._befall(world, life)
                await trio.sleep(min(STEP, self._every))
                passed = trio.current_time() - began
                if passed >= self._every * (len(self.looks) + 1):
                    self._look(world, life, path, passed)
        finally:
            tracemalloc.stop()

    def _befall(self, world: SimWorld, life: Life) -> None:
        """Have people put handed-off issues back or away, and finished ones back."""
        for identifier, state in world.tracked.truth.states().items():
            name = identifier.lower()
            if state == "Review":
                world.move_issue(name, self._draw.choices(["Todo", "Done"], [3, 1])[0])
            elif state in ("Done", "Dropped"):
                world.move_issue(name, "Todo")
        if self._draw.random() < 0.2:
            life.orchestrator.tell(ev.RefreshRequested())
        held = [claim.issue.id for claim in life.orchestrator.snapshot().held]
        for issue_id in held:
            life.orchestrator.tell(ev.RetryAsked(issue_id))

    def _look(self, world: SimWorld, life: Life, path: str, passed: float) -> None:
        world.forget_accounts(life)
        self.runs = world.account.begun
        snapshot = life.orchestrator.snapshot()
        look = {
            "hours": passed / 3600.0,
            "runs": float(self.runs),
            "working": float(len(snapshot.worked)),
            "memory": float(allocated()),
            "descriptors": float(len(os.listdir("/proc/self/fd"))),
            "threads": float(threading.active_count()),
            "write-ahead log": float(Path(f"{path}-wal").stat().st_size),
        }
        self.looks.append(look)
        self._report(look)


def allocated() -> int:
    """Return the bytes that the program's own code has allocated and that somebody still holds."""
    gc.collect()
    ours = tracemalloc.Filter(True, "*/sortie/*")
    return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces([ours]).traces)
