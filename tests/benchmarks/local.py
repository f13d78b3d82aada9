"""What a poll costs the scheduler, and how many commits a second the store makes.

python -m tests.benchmarks.local [--directory D]     the disk to write to
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import trio

from sortie.scheduler import events as ev
from sortie.store.sqlite import open_store
from tests.scheduler.driver import Driver, issue
from tests.store.records import T0, begin

CANDIDATES = 5000
POLLS = 30
SLOTS = 10  # of the default policy
COMMITS = 500


def poll_time(candidates: int = CANDIDATES, polls: int = POLLS) -> float:
    """Return the median of seconds in which the scheduler handles a poll with all slots taken."""
    driver = Driver()
    issues = tuple(issue(f"i{n}") for n in range(candidates))
    driver.put(*issues)
    driver.settle(driver.tell(ev.TimePassed()))
    spent = []
    for _ in range(polls):
        driver.now += 1.0
        began = time.perf_counter()
        driver.tell(ev.CandidatesFetched(issues=issues))
        spent.append(time.perf_counter() - began)
    claims = len(driver.scheduler.snapshot(driver.now).claims)
    assert claims == min(candidates, SLOTS), f"{claims} issues were taken"
    return median(spent)


async def commit_time(directory: Path, records: int = 1, commits: int = COMMITS) -> float:
    """Return the median of seconds in which so many records are committed to a disk at once."""
    spent = []
    async with open_store(str(directory / f"{records}.db")) as store:
        for number in range(commits):
            batch = [begin(f"{number}-{n}", issue(f"{number}-{n}")) for n in range(records)]
            began = time.perf_counter()
            await store.commit(batch, T0)
            spent.append(time.perf_counter() - began)
    return median(spent)


def main(arguments: list[str]) -> int:
    """Obey a command line and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.local", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--directory", help="where the database is made; default: TMPDIR")
    given = parser.parse_args(arguments)
    sys.stdout.write(f"poll of {CANDIDATES} candidates: {poll_time() * 1e3:.1f} ms\n")
    with TemporaryDirectory(dir=given.directory) as directory:
        for records in (1, 10):
            seconds = trio.run(commit_time, Path(directory), records)
            sys.stdout.write(
                f"commit of {records} records: {seconds * 1e3:.2f} ms,"
                f" {records / seconds:.0f} records a second\n"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
