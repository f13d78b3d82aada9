"""All that is outside the daemons: machines, the server, hosts, workflows; and who starts them."""

from __future__ import annotations

import traceback
from dataclasses import replace
from random import Random

import trio

from sortie.model import Issue
from sortie.transports import Command
from tests.sim.leases.clocks import Clock
from tests.sim.leases.daemon import SimDaemon
from tests.sim.leases.freezing import FreezablePlug
from tests.sim.leases.hosts import Host
from tests.sim.leases.judge import Judge
from tests.sim.leases.lease_server import LeaseServer
from tests.sim.leases.surroundings import Surroundings
from tests.sim.leases.watchdog import LOOK, SimWatchdog
from tests.sim.leases.wire import Weather, Wire
from tests.sim.leases.workflow import WITNESSES, Fleet, Workflow, drawn_hosts
from tests.sim.system.machine import Machine, Process, Program, Temper
from tests.sim.system.programs import Manners, Shell
from tests.sim.system.run import sim_issues
from tests.sim.system.trace import Trace
from tests.sim.system.tracker import Line
from tests.worker.rig import HOME

LEASE_SECONDS = 15.0
HOSTS = ("h1", "h2")
LONGEST_DEATH = 1.0
"""Seconds after SIGKILL in which a program is gone."""


class Station:
    """A machine with a service that keeps one daemon running: ``daemon`` is the present one.

    ``sleep`` is what freezes with the whole machine, the watchdog included.
    """

    def __init__(self, name: str, world: LeaseWorld, weight: float) -> None:
        self.name = name
        self.weight = weight
        self.clock = Clock(world.draw)
        self.sleep = FreezablePlug()
        self.machine = world.new_machine()
        world.fleet.of_daemons.add(self.machine)
        self.database = Wire(world.nursery, world.draw, world.server.weather)
        self.line = Line()
        self.host_wires = {name: Wire(world.nursery, world.draw, Weather()) for name in world.hosts}
        self.daemon: SimDaemon | None = None
        self.wanted = True
        self.restart_in = 1.0
        self._world = world
        self._count = 0

    async def serve(self) -> None:
        """Start the daemon, and again whenever it has ended, while it is wanted."""
        while True:
            if self.wanted and not self.sleep.is_frozen:
                await self._live()
                await trio.sleep(self.restart_in)
            await trio.sleep(0.5)

    async def _live(self) -> None:
        world, plug = self._world, FreezablePlug()
        self._count += 1
        around = Surroundings(
            nursery=world.nursery,
            draw=world.draw,
            trace=world.trace,
            judge=world.judge,
            fleet=world.fleet.seen_from(self.machine),
            machine=self.machine,
            clock=self.clock,
            plug=plug,
            server=world.server,
            workflows=world.workflows,
            database=self.database,
            line=self.line,
            hosts=world.hosts,
            host_wires=self.host_wires,
        )
        name = f"{self.name}.{self._count}"
        watchdog = SimWatchdog(self.clock, self.sleep, world.draw, lambda: self.kill("watchdog"))
        daemon = SimDaemon(name, around, world.workflows, self.weight, watchdog)
        self.daemon = daemon
        world.daemons.append(daemon)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watchdog.watch)
            try:
                await daemon.run()
            except* Exception as group:
                lines = "".join(traceback.format_exception(group))
                world.trace.wrong(f"{name} crashed:\n{lines}")
            nursery.cancel_scope.cancel()
        world.daemons.remove(daemon)
        self.end_programs()
        self.daemon = None

    def kill(self, by: str) -> None:
        """End the daemon, and what runs on its machine with it."""
        if self.daemon is not None:
            self._world.trace.note("world", f"{self.daemon.id} is killed ({by})")
            self.daemon.around.plug.pull()
            self.end_programs()

    def end_programs(self) -> None:
        """End what the daemon has started on its machine: the kernel does so with its namespace."""
        for process in self.machine.alive:
            process.kill()

    async def stop_for(self, seconds: float) -> None:
        """Stop the daemon with SIGSTOP, and let it go on."""
        if (daemon := self.daemon) is not None:
            daemon.around.plug.freeze(self.clock.boot())
            try:
                await trio.sleep(seconds)
            finally:
                daemon.around.plug.thaw()

    async def sleep_for(self, seconds: float) -> None:
        """Have the whole machine sleep. What it held counts again once the watchdog has had its
        turn after the wake-up: no lease could prevent what happens in that moment."""
        if self.sleep.is_frozen:
            return
        self._world.fleet.asleep.add(self.machine)
        self.sleep.freeze()
        try:
            await self.stop_for(seconds)
        finally:
            self.sleep.thaw()
            with trio.CancelScope(shield=True):
                await trio.sleep(LOOK + 0.05)
            self._world.fleet.asleep.discard(self.machine)


class LeaseWorld:
    """Everything; ``stations`` are the machines of daemons."""

    def __init__(self, nursery: trio.Nursery, seed: int, directory: str, trace: Trace) -> None:
        self.nursery = nursery
        self.trace = trace
        self.draw = Random(f"{seed} leases")
        self.manners = Manners(Random(f"{seed} programs"), self.move_issue)
        self.fleet = Fleet(nursery, _TemperateShell(self.manners), trace)
        self.server = LeaseServer(Clock(self.draw), LEASE_SECONDS, trace)
        self.server.notify = self._notify
        self.judge = Judge(self.server, trace)
        self.hosts = {name: Host(name, self.new_machine()) for name in HOSTS}
        self.loses_notifications = 0.0
        self.daemons: list[SimDaemon] = []
        count = self.draw.choice([1, 1, 2, 2, 3])
        self.workflows = [
            Workflow(
                f"w{number}",
                _issues(number, self.draw.choice([1, 2, 3])),
                drawn_hosts(self.draw),
                f"{directory}/w{number}",
                self.server,
                trace,
            )
            for number in range(count)
        ]
        weights = [self.draw.choice([1.0, 1.0, 2.0]) for _ in range(self.draw.randint(2, 4))]
        self.stations = [Station(f"d{n}", self, weight) for n, weight in enumerate(weights)]

    def new_machine(self) -> Machine:
        """Return a machine on which nothing runs."""
        shell = _TemperateShell(self.manners)
        machine = shell.machine = Machine(self.nursery, shell, self.trace)
        machine.files.directories.add(HOME)
        machine.started = _see_started
        self.fleet.machines.append(machine)
        return machine

    def begin(self) -> None:
        """Start services, hosts and the judge."""
        for station in self.stations:
            self.nursery.start_soon(station.serve)
        for host in self.hosts.values():
            self.nursery.start_soon(host.watch)
        names = [workflow.name for workflow in self.workflows]
        self.nursery.start_soon(self.judge.watch, names, self.daemons)

    async def end(self) -> None:
        """Kill all daemons: what they shield from cancellation would wait for the world."""
        for station in self.stations:
            station.wanted = False
            station.kill("the day is over")
        while self.daemons:
            await trio.sleep(0.1)

    def workflow_of(self, issue_id: str) -> Workflow:
        """Return the workflow that has an issue."""
        return next(workflow for workflow in self.workflows if workflow.owns(issue_id))

    def move_issue(self, name: str, state: str) -> None:
        """Have a person or an agent move an issue."""
        if name:
            self.workflow_of(name).move_issue(name, state)

    def _notify(self) -> None:
        for daemon in self.daemons:
            fair = daemon.around.database.is_fair
            if fair and self.draw.random() >= self.loses_notifications:
                daemon.keeper.woken.set()


def _issues(number: int, count: int) -> list[Issue]:
    return sim_issues([f"w{number}{letter}" for letter in "abc"[:count]])


class _TemperateShell(Shell):
    """Programs that are gone before a lease is over whose watchdog has killed them."""

    def __call__(self, command: Command) -> tuple[str, Program, Temper]:
        """Return the name, the program and the temper of what a command starts."""
        name, program, temper = super().__call__(command)
        return name, program, replace(temper, lingers=min(LONGEST_DEATH, temper.lingers))


def _see_started(process: Process) -> None:
    WITNESSES.get().process_started(process)
