"""What it costs that the programs of a run are in a container, beside the engine's own way."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from tempfile import TemporaryDirectory

import trio

from sortie.model import RunId
from sortie.transports import Command, Transport
from tests.benchmarks.row import Scale, Value, middle
from tests.transports.containers import OneContainer, choice, engine_environ, why_no_containers
from tests.transports.endings import local_transport

PROGRAMS = 100


def programs(scale: Scale) -> Mapping[str, Value]:
    """Measure programs that end at once, in turn in a container and without; milliseconds."""
    why = why_no_containers()
    if why:
        raise RuntimeError(why)
    return trio.run(_programs, scale.often(PROGRAMS, 3), scale.of(10, 1))


async def _programs(count: int, engine_count: int) -> Mapping[str, Value]:
    with TemporaryDirectory() as workspace:
        async with local_transport("namespaces") as local:
            inside = OneContainer(local, choice(), engine_environ())
            await inside.check()
            began = time.perf_counter()
            async with inside.around(RunId(str(uuid.uuid4())), workspace) as wall:
                opened = time.perf_counter() - began
                more, with_it = [], []
                for _ in range(count):
                    without = await _seconds(local, workspace)
                    with_it.append(await _seconds(inside, workspace))
                    more.append(with_it[-1] - without)
                engine = []
                for _ in range(engine_count):
                    began = time.perf_counter()
                    argv = ["podman", "exec", wall.container, "/bin/true"]
                    await trio.run_process(argv, env=engine_environ())
                    engine.append(time.perf_counter() - began)
    return {
        "container.program": Value(
            ours=middle(more) * 1e3,
            baseline=middle(engine) * 1e3,
            also={"all of it": middle(with_it) * 1e3, "the container of a run": opened * 1e3},
        )
    }


async def _seconds(transport: Transport, workspace: str) -> float:
    """Start a program, and return the time until it has ended."""
    command = Command(argv=("/bin/true",), cwd=workspace, env={"PATH": "/usr/bin"}, grace=0.0)
    began = time.perf_counter()
    async with transport.process(command) as process:
        async for _ in process.output():
            pass
        await process.wait()
    return time.perf_counter() - began
