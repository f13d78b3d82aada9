"""What the turns of one running session cost, beside a loop that starts the same agent."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from itertools import pairwise

import trio

from tests.benchmarks.bare import to_nowhere
from tests.benchmarks.place import BenchmarkPlace, benchmark_place
from tests.benchmarks.row import Scale, Value, middle

TURNS = 150
SETTING_UP = 5
"""Turns that are not counted: the first ones import and fill caches."""


def turns(scale: Scale) -> Mapping[str, Value]:
    """Measure turns of an agent that ends at once: the daemon's processor time, and the time from
    the end of one agent to the beginning of the next, both in milliseconds."""
    count, skipped = scale.often(TURNS, 4), scale.of(SETTING_UP, 1)
    with benchmark_place() as place:
        place.write_agent("echo over >&3")
        place.configure(agent={"max_turns": count + skipped})
        bare = _bare(place, scale.of(TURNS, 4))
        bare_trio = trio.run(_bare_trio, place, scale.of(TURNS, 4))
        place.marks.clear()
        place.add_issue("ONE")
        with place.daemon() as daemon:
            place.marks.wait("begun", skipped + 1)
            with daemon.spending() as spending:
                done = len(place.marks.seen("begun")) - 1
                place.marks.wait("over", skipped + count)
            used = spending.used / (skipped + count - done)
            daemon.wait("run.finished", status="succeeded")
    return {
        "turn.cpu": Value(
            ours=used.own * 1e3,
            baseline=bare.cpu,
            also={"trio.run_process": bare_trio.cpu, "the agent itself": used.children * 1e3},
        ),
        "turn.gap": Value(
            ours=gap(place, skipped), baseline=bare.gap, also={"trio.run_process": bare_trio.gap}
        ),
    }


class _Bare:
    """A bare way to start the agent: milliseconds of processor time, and from end to beginning."""

    def __init__(self, cpu: float, gap: float) -> None:
        self.cpu = cpu
        self.gap = gap


def gap(place: BenchmarkPlace, skipped: int = 0) -> float:
    """Return the milliseconds from the end of an agent to the beginning of the next."""
    begun, over = place.marks.seen("begun"), place.marks.seen("over")
    return middle([(b - o) * 1e3 for o, b in list(zip(over, begun[1:], strict=False))[skipped:]])


def _bare(place: BenchmarkPlace, count: int) -> _Bare:
    """Start the agent with posix_spawn, again and again, and wait for it."""
    place.marks.clear()
    argv, environ, spent = [str(place.agent), "chat"], place.environ({}), []
    with to_nowhere() as onto:
        for _ in range(count):
            before = time.thread_time()
            os.waitpid(os.posix_spawn(place.agent, argv, environ, file_actions=onto), 0)
            spent.append((time.thread_time() - before) * 1e3)
    place.marks.wait("over", count)
    return _Bare(middle(spent), gap(place))


async def _bare_trio(place: BenchmarkPlace, count: int) -> _Bare:
    """The same with trio, and with pipes for what the agent writes."""
    place.marks.clear()
    spent = [time.process_time()]
    for _ in range(count):
        await trio.run_process(
            [str(place.agent), "chat"],
            env=place.environ({}),
            stdin=subprocess.DEVNULL,
            capture_stdout=True,
            capture_stderr=True,
        )
        spent.append(time.process_time())
    return _Bare(middle([(b - a) * 1e3 for a, b in pairwise(spent)]), gap(place))
