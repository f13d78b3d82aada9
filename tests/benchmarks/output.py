"""What it costs to read an agent's output and make events of it."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.benchmarks.place import benchmark_place
from tests.benchmarks.row import Scale, Value

MEGABYTES = 200
LINE = 100
"""Characters of a line, with its end; 8 of ten lines of source code are shorter."""


def output(scale: Scale) -> Mapping[str, Value]:
    """Measure a turn that writes much, beside cat into cat; seconds of processor time a GB."""
    size = scale.of(MEGABYTES, 1) * 1_000_000
    with benchmark_place() as place:
        text = place.root / "text"
        _write(text, size)
        place.write_agent(f"cat {text}\necho over >&3")
        place.configure()
        place.add_issue("ONE")
        with place.daemon() as daemon:
            place.marks.wait("begun")
            before = daemon.spent()
            place.marks.wait("over")
            daemon.wait("turn.completed", outcome="completed")
            used = daemon.spent() - before
        bare = _bare(text)
    each = 1e9 / size
    return {"output": Value(ours=used.own * each, baseline=bare * each)}


def _write(path: Path, size: int) -> None:
    words = "It reads a file of the project and says what it has found in there, and goes on "
    with path.open("w") as file:
        for number in range(size // LINE):
            file.write(f"{number:09} {words}".ljust(LINE - 1)[: LINE - 1] + "\n")


def _bare(path: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["sh", "-c", f"cat {path} | cat >/dev/null"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
