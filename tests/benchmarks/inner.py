"""What a commit of the store costs by itself."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from sortie.store import Store
from sortie.store.sqlite import open_store
from tests.benchmarks.row import Scale, Value, middle
from tests.scheduler.driver import issue
from tests.store.records import T0, begin

COMMITS = 500
PAGE = 4096


def store(scale: Scale) -> Mapping[str, Value]:
    """Measure synchronized commits of one record, in milliseconds, beside a synchronized write."""
    count = scale.of(COMMITS, 5)
    with TemporaryDirectory(prefix="sortie-benchmark-") as directory:
        ours = trio.run(commit_times, open_store(f"{directory}/1.db"), 1, count)
        ten = trio.run(commit_times, open_store(f"{directory}/10.db"), 10, count)
        base = _write(Path(directory) / "bare", count)
    return {"store.commit": Value(ours=ours, baseline=base, also={"with ten records": ten})}


async def commit_times(
    store: AbstractAsyncContextManager[Store], records: int, count: int
) -> float:
    """Return how long commits of so many records take in the median, in milliseconds."""
    spent = []
    async with store as database:
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
