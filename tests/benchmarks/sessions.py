"""What many sessions at once cost: silent ones, and ones whose agents talk."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.bare import readers
from tests.benchmarks.place import BenchmarkPlace, benchmark_place
from tests.benchmarks.row import Scale, Value
from tests.benchmarks.spending import Spending

LINE = b"It reads a file of the project and says what it has found in there, and then goes on.\n"
PREFIX = "S-"
STEPS = 50
"""Into so many parts a round of lines is cut, so that not all agents talk at the same moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowded:
    """A crowd of sessions: the share of a core that it takes, resident memory in bytes for each
    and at the most, and how many were started a second."""

    share: float
    each: float
    peak: int
    starts: float


def silent(scale: Scale) -> Mapping[str, Value]:
    """Measure 200 sessions whose agents say nothing."""
    ours, base = crowd(scale.of(200, 4), 0.0, scale)
    return {
        "silent.share": _share(ours, base),
        "silent.memory": Value(ours=ours.each / 1024, baseline=base.each / 1024),
    }


def talking(scale: Scale) -> Mapping[str, Value]:
    """Measure 200 sessions whose agents write 10 lines a second each."""
    ours, base = crowd(scale.of(200, 4), 10.0, scale)
    return {"talking.200": _share(ours, base)}


def thousand(scale: Scale) -> Mapping[str, Value]:
    """Measure 1,000 sessions whose agents write a line a second each."""
    ours, base = crowd(scale.of(1000, 6), scale.of(1.0, 20.0), scale)
    return {
        "talking.1000.share": _share(ours, base),
        "talking.1000.peak": Value(ours=ours.peak / 1e6, baseline=base.peak / 1e6),
        "talking.1000.starts": Value(ours=ours.starts, baseline=base.starts),
    }


def crowd(count: int, lines: float, scale: Scale) -> tuple[Crowded, Crowded]:
    """Have sessions whose agents write so many lines a second; return ours and the bare one."""
    with benchmark_place() as place:
        pipes = place.root / "pipes"
        pipes.mkdir()
        names = [f"{PREFIX}{number}" for number in range(count)]
        place.write_agent(f'exec cat "{pipes}/${{PWD##*/}}"')
        with speakers_in(pipes, names) as speakers:
            base = _bare(place, count, speakers, lines, scale)
            place.marks.clear()
            return _ours(place, names, speakers, lines, scale), base


def _ours(
    place: BenchmarkPlace, names: list[str], speakers: list[int], lines: float, scale: Scale
) -> Crowded:
    count = len(names)
    place.configure(agent={"max_concurrent_agents": count, "stop_grace_ms": 5000})
    with place.crowded_daemon() as daemon:
        daemon.wait("http.listening")
        time.sleep(scale.of(2.0, 0.2))
        before = daemon.memory()
        place.add_issues(names)
        daemon.refresh()
        first, last = place.marks.wait("begun"), place.marks.wait("begun", count)
        share = _share_of(daemon.spending, speakers, lines, scale)
        each = (daemon.memory() - before) / count
        peak = daemon.peak()
    return Crowded(share=share, each=each, peak=peak, starts=_rate(count, first, last))


def _bare(
    place: BenchmarkPlace, count: int, speakers: list[int], lines: float, scale: Scale
) -> Crowded:
    root = place.root / "bare"
    with readers(place.agent, root, 0, PREFIX) as alone:
        time.sleep(1.0)
        before = alone.memory()
    with readers(place.agent, root, count, PREFIX) as program:
        first, last = place.marks.wait("begun"), place.marks.wait("begun", count)
        share = _share_of(program.spending, speakers, lines, scale)
        peak = program.memory()
    each = (peak - before) / count
    return Crowded(share=share, each=each, peak=peak, starts=_rate(count, first, last))


def _rate(count: int, first: float, last: float) -> float:
    """Return how many began a second; a few may begin within one reading of the clock."""
    return count / max(last - first, 1e-4)


def _share_of(
    spending: Callable[[], AbstractContextManager[Spending]],
    speakers: list[int],
    lines: float,
    scale: Scale,
) -> float:
    """Return the share of a core that somebody spends while the agents talk."""
    over = threading.Event()
    talker = threading.Thread(target=talk, args=(speakers, lines, over))
    talker.start()
    try:
        time.sleep(scale.of(3.0, 0.3))
        with spending() as spent:
            began = time.perf_counter()
            time.sleep(scale.of(20.0, 1.2))  # a silent daemon wakes once a second
            seconds = time.perf_counter() - began
        return spent.used.own / seconds
    finally:
        over.set()
        talker.join()


def talk(speakers: list[int], lines: float, over: threading.Event) -> None:
    """Have each agent say so many lines a second, one after the other, evenly."""
    if lines == 0.0:
        return
    due = time.perf_counter()
    while True:
        for step in range(STEPS):
            for speaker in speakers[step::STEPS]:
                os.write(speaker, LINE)
            due += 1.0 / lines / STEPS
            if over.wait(max(0.0, due - time.perf_counter())):
                return


@contextmanager
def speakers_in(pipes: Path, names: list[str]) -> Iterator[list[int]]:
    """Make a FIFO for each agent, which passes on what is written into it."""
    for name in names:
        os.mkfifo(pipes / name)
    speakers = [os.open(pipes / name, os.O_RDWR) for name in names]
    try:
        yield speakers
    finally:
        for speaker in speakers:
            os.close(speaker)


def _share(ours: Crowded, base: Crowded) -> Value:
    return Value(ours=ours.share * 100, baseline=base.share * 100)
