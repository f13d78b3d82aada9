"""What two inner parts cost by themselves: the scheduler at a poll, and the store at a commit."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from sortie.scheduler import events as ev
from sortie.store.sqlite import open_store
from tests.benchmarks.row import Scale, Value, middle
from tests.scheduler.driver import Driver, issue
from tests.store.records import T0, begin

CANDIDATES = 5000
SLOTS = 10  # of the default policy
COMMITS = 500
PAGE = 4096


def scheduler(scale: Scale) -> Mapping[str, Value]:
    """Measure a poll's answer while all slots are taken, in milliseconds, beside a sort of it."""
    driver = Driver()
    count = scale.of(CANDIDATES, 100)
    issues = tuple(issue(f"i{number}") for number in range(count))
    driver.put(*issues)
    driver.settle(driver.tell(ev.TimePassed()))
    ours, base = [], []
    for _ in range(scale.of(30, 3)):
        driver.now += 1.0
        began = time.thread_time()
        driver.scheduler.handle(ev.CandidatesFetched(issues=issues), driver.now)
        handled = time.thread_time()
        sorted(issues, key=lambda one: (one.priority or 0, one.created_at, one.identifier))
        ours.append((handled - began) * 1e3)
        base.append((time.thread_time() - handled) * 1e3)
    claims = len(driver.scheduler.snapshot(driver.now).claims)
    assert claims == min(count, SLOTS), f"{claims} issues were taken"
    return {"scheduler.poll": Value(ours=middle(ours), baseline=middle(base))}


def store(scale: Scale) -> Mapping[str, Value]:
    """Measure synchronized commits of one record, in milliseconds, beside a synchronized write."""
    count = scale.of(COMMITS, 5)
    with TemporaryDirectory(prefix="sortie-benchmark-") as directory:
        ours = trio.run(_commit, Path(directory), 1, count)
        ten = trio.run(_commit, Path(directory), 10, count)
        base = _write(Path(directory) / "bare", count)
    return {"store.commit": Value(ours=ours, baseline=base, also={"with ten records": ten})}


async def _commit(directory: Path, records: int, count: int) -> float:
    spent = []
    async with open_store(str(directory / f"{records}.db")) as database:
        for number in range(count):
            batch = [begin(f"{number}-{n}", issue(f"{number}-{n}")) for n in range(records)]
            began = time.perf_counter()
            await database.commit(batch, T0)
            spent.append((time.perf_counter() - began) * 1e3)
        assert len((await database.recover()).unfinished) == count * records
    return middle(spent)


def _write(path: Path, count: int) -> float:
    spent, page = [], bytes(PAGE)
    with path.open("wb", buffering=0) as file:
        for _ in range(count):
            began = time.perf_counter()
            file.write(page)
            os.fdatasync(file.fileno())
            spent.append((time.perf_counter() - began) * 1e3)
    return middle(spent)
