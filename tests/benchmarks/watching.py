"""What it costs that people look at the dashboard of a daemon that has much to do."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from statistics import fmean

import trio

from sortie.model import IssueId, Streak, Trigger, WaitKind
from sortie.scheduler.records import RecordRetry
from sortie.store.sqlite import open_store
from tests.benchmarks.place import PATIENCE, BenchmarkPlace, Daemon, benchmark_place
from tests.benchmarks.row import Scale, Value
from tests.benchmarks.sessions import PREFIX, speakers_in, talk
from tests.store.records import an_issue

RUNS, WAITS, BROWSERS = 200, 2000, 10
_HOURS = 24 * 3600.0
_NOTHING = 1e-6


@dataclass(slots=True)
class Watcher:
    """A browser that follows the overview; ``updates`` are those it was sent, of ``size`` bytes."""

    updates: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What a daemon spent a second, and the updates a second and bytes of each that one saw;
    ``fewest`` are the updates of whoever was sent least."""

    share: float
    updates: float = 0.0
    fewest: int = 0
    size: float = 0.0


def watching(scale: Scale) -> Mapping[str, Value]:
    """Measure with 200 runs that say a line a second each, and 2,000 issues that wait."""
    runs = [f"{PREFIX}{number}" for number in range(scale.of(RUNS, 4))]
    with benchmark_place() as place:
        pipes = place.root / "pipes"
        pipes.mkdir()
        place.write_agent(f'exec cat "{pipes}/${{PWD##*/}}"')
        place.configure(agent={"max_concurrent_agents": len(runs), "stop_grace_ms": 5000})
        _have_wait(place, [f"W-{number}" for number in range(scale.of(WAITS, 5))])
        place.add_issues(runs)
        with speakers_in(pipes, runs) as speakers, place.crowded_daemon() as daemon:
            daemon.wait("http.listening")
            place.marks.wait("begun", len(runs))
            with _talking(speakers, scale):
                return _measured(daemon, scale)


def _measured(daemon: Daemon, scale: Scale) -> Mapping[str, Value]:
    time.sleep(scale.of(3.0, 0.3))
    rounds = [
        tuple(_share(daemon, browsers, scale) for browsers in (0, 1, BROWSERS))
        for _ in range(scale.of(3, 1))
    ]
    alone, one, ten = (_together(seen) for seen in zip(*rounds, strict=True))
    assert min(one.fewest, ten.fewest) > 0, "somebody was sent nothing"
    # In the short form the difference may drown in what else the daemon does.
    for_one = max(one.share - alone.share, _NOTHING) / one.updates
    for_ten = max(ten.share - alone.share, _NOTHING) / ten.updates
    return {
        "watching.update": Value(
            ours=for_one * 1e3,
            also={
                "with ten": for_ten * 1e3,
                "updates a second [/s]": one.updates,
                "an update [KiB]": one.size / 1024,
                "share of a core, nobody watching [%]": alone.share * 100,
                "share of a core, one watching [%]": one.share * 100,
                "share of a core, ten watching [%]": ten.share * 100,
            },
        ),
        "watching.ten": Value(ours=for_ten / for_one),
    }


def _together(seen: Iterable[Watched]) -> Watched:
    """Return the means of windows that are as long as each other."""
    each = list(seen)
    return Watched(
        share=fmean(one.share for one in each),
        updates=fmean(one.updates for one in each),
        size=fmean(one.size for one in each),
        fewest=min(one.fewest for one in each),
    )


def _share(daemon: Daemon, browsers: int, scale: Scale) -> Watched:
    """Return what the daemon spends while so many browsers watch."""
    with _watching(daemon, browsers) as watchers:
        time.sleep(scale.of(2.0, 0.2))
        seen = [(each.updates, each.size) for each in watchers[:1]]
        spent, began = daemon.spent().own, time.perf_counter()
        time.sleep(scale.of(10.0, 1.5))
        spent, seconds = daemon.spent().own - spent, time.perf_counter() - began
        if not watchers:
            return Watched(share=spent / seconds)
        fewest = min(each.updates for each in watchers)
        updates, size = watchers[0].updates - seen[0][0], watchers[0].size - seen[0][1]
    return Watched(
        share=spent / seconds, updates=updates / seconds, size=size / max(updates, 1), fewest=fewest
    )


@contextmanager
def _watching(daemon: Daemon, count: int) -> Iterator[list[Watcher]]:
    connections, watchers, threads = [], [], []
    for _ in range(count):
        connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=PATIENCE)
        connection.request("GET", "/live")
        answer = connection.getresponse()
        assert answer.status == 200, answer.status
        watcher = Watcher()
        thread = threading.Thread(target=_follow, args=(answer, watcher), daemon=True)
        thread.start()
        connections.append(connection)
        watchers.append(watcher)
        threads.append(thread)
    try:
        yield watchers
    finally:
        for connection in connections:
            with suppress(OSError):
                if connection.sock is not None:
                    connection.sock.shutdown(2)
        for thread in threads:
            thread.join(PATIENCE)


def _follow(answer: http.client.HTTPResponse, watcher: Watcher) -> None:
    with suppress(OSError, http.client.HTTPException, ValueError):
        while line := answer.readline():
            watcher.size += len(line)
            watcher.updates += line.startswith(b"event: page")


@contextmanager
def _talking(speakers: list[int], scale: Scale) -> Iterator[None]:
    over = threading.Event()
    thread = threading.Thread(target=talk, args=(speakers, scale.of(1.0, 20.0), over))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _have_wait(place: BenchmarkPlace, names: list[str]) -> None:
    """Have issues wait for another run, as a daemon before has recorded it."""
    place.add_issues(names)

    async def record() -> None:
        async with open_store(str(place.root / ".sortie.db")) as store:
            records = [
                RecordRetry(
                    issue=an_issue(name, id=IssueId(name), identifier=name, state="Todo"),
                    kind=WaitKind.RETRY,
                    trigger=Trigger.ERROR,
                    streak=Streak(failures=1),
                    delay=_HOURS,
                )
                for name in names
            ]
            await store.commit(records, time.time())

    trio.run(record)
