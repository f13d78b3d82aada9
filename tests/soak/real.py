"""Minutes of full load on real processes: the installed daemon, and agents that take 50 ms.

Issues come and go all the time: one that is handed off is moved to a terminal state, so that its
workspace is removed, and its file goes once nobody needs it; another takes its place.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count as counting
from pathlib import Path

import psutil

from tests.benchmarks.place import HANDED_OFF, BenchmarkPlace, Daemon, benchmark_place
from tests.soak.flatness import Look, Quantity

SLOTS = 8
WAITING = 24
"""Issues that are there beside those that run, so that no slot is ever free for want of one."""

LOOKS = 60
QUANTITIES = (
    Quantity(name="memory", unit="bytes", share=0.03, slack=1_000_000),
    Quantity(name="descriptors", unit="", share=0.1, slack=4),
    Quantity(name="threads", unit="", share=0.0, slack=2),
    Quantity(name="write-ahead log", unit="bytes", share=0.05, slack=64 * 1024),
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
        self._put_away: list[tuple[float, Path]] = []

    def live(self) -> None:
        """Live through it; a run that fails, or a process that is left, is an error."""
        with benchmark_place() as place:
            place.write_agent("exec sleep 0.05")
            place.configure(1.0, agent={"max_concurrent_agents": SLOTS})
            for _ in range(SLOTS + WAITING):
                self._add(place)
            with place.daemon() as daemon:
                daemon.wait("run.finished")
                self._load(place, daemon)
                failed = [line for line in daemon.lines("run.finished") if _is_bad(line)]
                assert failed == [], f"{len(failed)} runs have failed: {failed[:3]}"

    def _load(self, place: BenchmarkPlace, daemon: Daemon) -> None:
        began = time.monotonic()
        while len(self.looks) < self._count:
            passed = time.monotonic() - began
            if passed >= self._every * (len(self.looks) + 1):
                self._look(place, daemon, passed)
            self._turn_over(place, daemon)
            time.sleep(0.2)

    def _turn_over(self, place: BenchmarkPlace, daemon: Daemon) -> None:
        """Put away what was handed off, and add as many new issues."""
        moved = daemon.take("issue.moved", state=HANDED_OFF)
        for line in moved:
            place.add_issue(line["issue"], state="Done")
            self._put_away.append((time.monotonic(), place.issues / f"{line['issue']}.md"))
            self._add(place)
        self.runs += len(moved)
        old = time.monotonic() - 10.0
        while self._put_away and self._put_away[0][0] < old:
            self._put_away.pop(0)[1].unlink()
        place.marks.clear()

    def _add(self, place: BenchmarkPlace) -> None:
        place.add_issue(f"N-{next(self._numbers)}x")

    def _look(self, place: BenchmarkPlace, daemon: Daemon, passed: float) -> None:
        process = psutil.Process(daemon.pid)
        look = {
            "minutes": passed / 60.0,
            "runs": float(self.runs),
            "memory": float(daemon.memory()),
            "descriptors": float(process.num_fds()),
            "threads": float(process.num_threads()),
            "write-ahead log": float((place.root / ".sortie.db-wal").stat().st_size),
            "CPU seconds": daemon.spent().own,
        }
        self.looks.append(look)
        self._report(look)


def _is_bad(line: dict[str, object]) -> bool:
    return line.get("status") not in ("succeeded", None)
