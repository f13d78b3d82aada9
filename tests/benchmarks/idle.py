"""What a daemon costs that has nothing to do."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping

from tests.benchmarks.place import benchmark_place
from tests.benchmarks.row import Scale, Value
from tests.benchmarks.spending import clock_of

HOUR = 3600.0
POLL = 5.0
BARE = """
import os, sys, trio
async def main():
    while True:
        os.listdir(sys.argv[1])
        await trio.sleep(float(sys.argv[2]))
trio.run(main)
"""
"""The least that a program on trio can do that looks into a directory again and again."""


def idle(scale: Scale) -> Mapping[str, Value]:
    """Measure a daemon without issues beside a bare program, at the same time; seconds an hour."""
    poll, span = scale.of(POLL, 0.5), scale.of(12 * POLL, 1.0)
    with benchmark_place() as place:
        place.write_agent("")
        place.configure(poll)
        bare = subprocess.Popen([sys.executable, "-c", BARE, str(place.issues), str(poll)])
        try:
            with place.daemon(level="debug") as daemon:
                daemon.wait("poll.completed", 2)
                time.sleep(scale.of(1.0, 0.1))
                began = time.perf_counter()
                ours, base = daemon.spent().own, clock_of(bare.pid)
                time.sleep(span)
                over = time.perf_counter()
                ours, base = daemon.spent().own - ours, clock_of(bare.pid) - base
        finally:
            bare.kill()
            bare.wait()
    an_hour = HOUR / (over - began)
    return {"idle": Value(ours=ours * an_hour, baseline=base * an_hour)}
