"""How long commands take, and a daemon until its first poll is done."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from subprocess import DEVNULL

from tests.benchmarks.place import BenchmarkPlace, benchmark_place
from tests.benchmarks.row import Scale, Value, middle
from tests.benchmarks.spending import of_child
from tests.e2e.place import SORTIE

BARE = (sys.executable, "-I", "-c", "pass")
_IMPORT = re.compile(r"^import time: +(\d+) \|", re.MULTILINE)

COMMANDS = {
    "version": (SORTIE, "--version"),
    "validate": (SORTIE, "validate"),
}


def commands(scale: Scale) -> Mapping[str, Value]:
    """Measure the wall time of commands in turns with a bare interpreter, in milliseconds."""
    ways: dict[str, Sequence[str]] = {**COMMANDS, "bare": BARE}
    walls: dict[str, list[float]] = {name: [] for name in ways}
    spent: dict[str, list[float]] = {name: [] for name in ways}
    with benchmark_place() as place:
        place.write_agent("")
        place.configure()
        for number in range(scale.of(16, 2)):
            for name, argv in ways.items():
                wall, processor = _run(place, argv)
                if number:  # the first one fills caches
                    walls[name].append(wall * 1e3)
                    spent[name].append(processor * 1e3)
        imports = {name: _imports(place, argv) for name, argv in COMMANDS.items()}
    return {
        name: Value(
            ours=middle(walls[name]),
            baseline=middle(walls["bare"]),
            also={
                "CPU": middle(spent[name]),
                "CPU of the baseline": middle(spent["bare"]),
                "importing, as -X importtime tells": imports[name][0],
                "modules imported [count]": imports[name][1],
            },
        )
        for name in COMMANDS
    }


def _imports(place: BenchmarkPlace, argv: Sequence[str]) -> tuple[float, int]:
    """Return the milliseconds that a command spends on imports, and how many modules it imports."""
    told = subprocess.run(
        [sys.executable, "-X", "importtime", *argv],
        cwd=place.root,
        env=place.environ({}),
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    own = [int(found) for found in _IMPORT.findall(told)]
    assert own, "nothing was imported"
    return sum(own) / 1e3, len(own)


def _run(place: BenchmarkPlace, argv: Sequence[str]) -> tuple[float, float]:
    began = time.perf_counter()
    child = subprocess.Popen(
        argv, cwd=place.root, env=place.environ({}), stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL
    )
    processor = of_child(child.pid)
    return time.perf_counter() - began, processor


def first_poll(scale: Scale) -> Mapping[str, Value]:
    """Measure from the start of a daemon to its first poll's end, in milliseconds."""
    walls, spent, bare = [], [], []
    for number in range(scale.of(10, 1)):
        with benchmark_place() as place:
            place.write_agent("")
            place.configure()
            with place.daemon(level="debug") as daemon:
                told = daemon.wait("poll.completed")
                walls.append((told["seen_at"] - daemon.began) * 1e3)
                spent.append(daemon.spent().own * 1e3)
            bare.append(_run(place, BARE)[0] * 1e3)
        if number == 0 and not scale.short:
            walls.clear()
            spent.clear()
            bare.clear()
    return {
        "first-poll": Value(ours=middle(walls), baseline=middle(bare), also={"CPU": middle(spent)})
    }
