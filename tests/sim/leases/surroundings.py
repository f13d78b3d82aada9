"""What one process has around it: its machine, its clock, and the ways to everything else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

import trio

from tests.sim.leases.clocks import Clock
from tests.sim.leases.freezing import FreezablePlug
from tests.sim.leases.hosts import Host
from tests.sim.leases.judge import Judge
from tests.sim.leases.lease_server import LeaseServer
from tests.sim.leases.wire import Wire
from tests.sim.leases.workflow import Fleet, Workflow
from tests.sim.system.machine import Machine
from tests.sim.system.trace import Trace
from tests.sim.system.tracker import Line


@dataclass(slots=True)
class Surroundings:
    """``nursery`` is the world's: what is in it outlives the process."""

    nursery: trio.Nursery
    draw: Random
    trace: Trace
    judge: Judge
    fleet: Fleet
    machine: Machine
    clock: Clock
    plug: FreezablePlug
    server: LeaseServer
    workflows: list[Workflow]
    database: Wire
    line: Line
    hosts: Mapping[str, Host]
    host_wires: Mapping[str, Wire]

    def boot(self) -> float:
        """Return the boot clock's time, as the process sees it."""
        return self.plug.frozen_at if self.plug.is_frozen else self.clock.boot()
