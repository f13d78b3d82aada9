"""Minutes of full load on real processes: the installed daemon, and agents that take 50 ms.

Issues come and go all the time: an agent moves its issue to a terminal state, so that its workspace
is removed; its file goes once nobody needs it, and another issue takes its place. Transcripts reach
their limit early, so that the oldest go, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count as counting
from pathlib import Path

import psutil

from tests.benchmarks.place import BenchmarkPlace, Daemon, benchmark_place
from tests.soak.flatness import WRITE_AHEAD_LOG, Look, Quantity

AGENT = """sleep 0.05
issue={issues}/${{PWD##*/}}
printf -- '---\\ntitle: Done\\nstate: Done\\n---\\n' >"$issue.new"
mv "$issue.new" "$issue.md\""""

SLOTS = 8
WAITING = 24
"""Issues that are there beside those that run, so that no slot is ever free for want of one."""

TRANSCRIPTS = 256 * 1024
"""Bytes that all transcripts may take: those of some six hundred runs."""

LOOKS = 60
QUANTITIES = (
    Quantity(name="memory", unit="bytes", share=0.03, slack=1_000_000),
    Quantity(name="descriptors", unit="", share=0.1, slack=4),
    Quantity(name="threads", unit="", share=0.0, slack=2),
    WRITE_AHEAD_LOG,
    Quantity(name="transcripts", unit="bytes", share=0.1, slack=0.0),
)


class Soak:
    """One daemon under load; ``looks`` is what was seen, ``runs`` how many ended well.

    ``count`` is how often it is looked, evenly.
    """

    def __init__(
        self, minutes: float, report: Callable[[Look], object], count: int = LOOKS
    ) -> None:
        self.looks: list[Look] = []
        self.runs = 0
        self._every = minutes * 60.0 / count
        self._count = count
        self._report = report
        self._numbers = counting()
        self._done: list[tuple[float, Path]] = []

    def live(self) -> None:
        """Live through it; a run that fails, or a process that is left, is an error."""
        with benchmark_place() as place:
            place.write_agent(AGENT.format(issues=place.issues))
            place.configure(
                1.0,
                agent={"max_concurrent_agents": SLOTS},
                history={"max_bytes": TRANSCRIPTS},
            )
            for _ in range(SLOTS + WAITING):
                self._add(place)
            with place.daemon() as daemon:
                place.marks.wait("begun")
                self._load(place, daemon)

    def _load(self, place: BenchmarkPlace, daemon: Daemon) -> None:
        began = time.monotonic()
        while len(self.looks) < self._count:
            passed = time.monotonic() - began
            if passed >= self._every * (len(self.looks) + 1):
                self._look(place, daemon, passed)
            self._turn_over(place, daemon)
            time.sleep(0.2)

    def _turn_over(self, place: BenchmarkPlace, daemon: Daemon) -> None:
        """Note whose runs are over, and add as many new issues."""
        ended = daemon.take("run.finished")
        failed = [line for line in ended if line["status"] != "succeeded"]
        assert failed == [], f"{len(failed)} runs have failed: {failed[:3]}"
        for line in ended:
            self._done.append((time.monotonic(), place.issues / f"{line['issue']}.md"))
            self._add(place)
        self.runs += len(ended)
        old = time.monotonic() - 10.0
        while self._done and self._done[0][0] < old:
            self._done.pop(0)[1].unlink()
        place.marks.clear()

    def _add(self, place: BenchmarkPlace) -> None:
        place.add_issue(f"N-{next(self._numbers)}x")

    def _look(self, place: BenchmarkPlace, daemon: Daemon, passed: float) -> None:
        process = psutil.Process(daemon.pid)
        look = {
            "minutes": passed / 60.0,
            "runs": float(self.runs),
            "memory": float(daemon.memory()),
            "descriptors": _descriptors(process),
            "threads": float(process.num_threads()),
            "write-ahead log": float((place.root / ".sortie.db-wal").stat().st_size),
            "transcripts": _size_of(place.root / ".sortie.db.transcripts"),
            "CPU seconds": daemon.spent().own,
        }
        self.looks.append(look)
        self._report(look)


def _size_of(directory: Path) -> float:
    """Return the bytes of the files in a directory, some of which may go meanwhile."""
    found = 0
    for path in directory.iterdir():
        with suppress(FileNotFoundError):
            found += path.stat().st_size
    return float(found)


def _descriptors(process: psutil.Process) -> float:
    try:
        return float(process.num_fds())
    except psutil.AccessDenied:
        return 0.0  # a daemon shows them to root alone
