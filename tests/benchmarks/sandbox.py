"""What it costs to start a program in a sandbox, beside one without."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory

import trio

from sortie.model.allowed_hosts import allowed_host
from sortie.transports import Command, Transport
from sortie.transports.walls.bubblewrap import BubblewrapTransport, surroundings
from sortie.transports.walls.enclosure import Enclosure, arguments, view_of
from sortie.transports.walls.run_network import RunNetwork
from tests.benchmarks.row import Scale, Value, middle
from tests.transports.endings import local_transport

STARTS = 100


def starts(scale: Scale) -> Mapping[str, Value]:
    """Measure the start and end of a program, in milliseconds beyond those of one without a wall.

    The ways take turns, so that what else the machine does is in all of them.
    """
    with TemporaryDirectory() as place:
        return trio.run(_starts, Path(place), scale.often(STARTS, 2))


async def _starts(place: Path, count: int) -> Mapping[str, Value]:
    env = {"PATH": os.environ["PATH"], "HOME": str(place)}
    command = Command(argv=("/bin/true",), cwd=str(place), env=env, grace=0.0)
    alone: list[float] = []
    walled: list[float] = []
    listed: list[float] = []
    bare: list[float] = []
    bare_walled: list[float] = []
    found = surroundings(command)
    words = arguments(found, view_of(Enclosure(), found), {}, has_network=True)
    bubblewrap = [which("bwrap") or "bwrap", *words, "--", "/bin/true"]
    async with local_transport("namespaces") as local:
        network = RunNetwork(allowed=(allowed_host("localhost:1"),), tell=lambda _: None)
        wall = BubblewrapTransport(local, Enclosure())
        netted = BubblewrapTransport(local, Enclosure(), network)
        for _ in range(count):
            alone.append(await _one(local, command))
            walled.append(await _one(wall, command))
            listed.append(await _one(netted, command))
            bare.append(_bare(["/bin/true"]))
            bare_walled.append(_bare(bubblewrap))
    base = middle(alone)
    return {
        "sandbox.bubblewrap": Value(
            ours=middle(walled) - base,
            baseline=middle(bare_walled) - middle(bare),
            also={"with a list of hosts": middle(listed) - base, "without a wall": base},
        )
    }


async def _one(transport: Transport, command: Command) -> float:
    before = time.perf_counter()
    async with transport.process(command) as process:
        async for _ in process.output():
            pass
        await process.wait()
    return (time.perf_counter() - before) * 1e3


def _bare(argv: list[str]) -> float:
    before = time.perf_counter()
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
    return (time.perf_counter() - before) * 1e3
