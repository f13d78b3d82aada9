"""Simulated days of the whole system: run as many as one likes, or replay one.

python -m tests.sim --seeds 1000 [--start S] [--jobs J]
python -m tests.sim --points 3 [--start S]      kill at every persistence point of three days
python -m tests.sim --replay SEED[:short][:before:K|:after:K]
python -m tests.sim --lease-days 1000 [--start S] [--jobs J]    days of several daemons
python -m tests.sim --lease-day SEED                            show one of them
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from tests.sim.leases.day import live_through as lease_day
from tests.sim.system.crashing import every_crash
from tests.sim.system.run import Plan, live_through, plan_of
from tests.sim.system.trace import Trace

SHOWN = 3
_Plan = TypeVar("_Plan")


def main(arguments: list[str]) -> int:
    """Obey a command line and return the exit code: 1 where a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--seeds", type=int, help="how many days to live through")
    what.add_argument("--points", type=int, help="how many days to kill at every point")
    what.add_argument("--replay", metavar="SEED", help="show one day, event by event")
    what.add_argument("--lease-days", type=int, help="how many days of several daemons")
    what.add_argument("--lease-day", type=int, metavar="SEED", help="show such a day")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    given = parser.parse_args(arguments)
    if given.replay is not None:
        return show(live_through(plan_of(given.replay)).trace)
    if given.lease_day is not None:
        return show(lease_day(given.lease_day).trace)
    if given.lease_days is not None:
        seeds = range(given.start, given.start + given.lease_days)
        return live_through_all(seeds, given.jobs, _lease_verdict, "--lease-day")
    count = given.seeds if given.seeds is not None else given.points
    seeds = range(given.start, given.start + count)
    if given.seeds is not None:
        return live_through_all(map(Plan, seeds), given.jobs, _verdict, "--replay")
    return live_through_all(_points(seeds), given.jobs, _verdict, "--replay")


def _points(seeds: range) -> Iterator[Plan]:
    for seed in seeds:
        yield from every_crash(Plan(seed, short=True))


def show(trace: Trace) -> int:
    """Show a day."""
    for line in trace.lines:
        sys.stdout.write(f"{line}\n")
    return 1 if trace.wrongs else 0


def live_through_all(
    plans: Iterable[_Plan],
    jobs: int,
    verdict: Callable[[_Plan], tuple[_Plan, list[str]]],
    replay: str,
) -> int:
    """Live through days and tell what was wrong with any; the option ``replay`` shows one."""
    days = failed = 0
    with multiprocessing.Pool(jobs) as pool:
        for plan, wrongs in pool.imap(verdict, plans):
            days += 1
            if wrongs:
                failed += 1
                lines = "\n".join(f"  {wrong[:500]}" for wrong in wrongs[:SHOWN])
                how = f"replay with: python -m tests.sim {replay} {plan}"
                sys.stdout.write(f"day {plan}:\n{lines}\n  {how}\n")
                sys.stdout.flush()
    sys.stdout.write(f"{days} days, {failed} of them wrong\n")
    return 1 if failed else 0


def _verdict(plan: Plan) -> tuple[Plan, list[str]]:
    try:
        return plan, [str(wrong) for wrong in live_through(plan).trace.wrongs]
    except Exception:  # the edge: one day that cannot be simulated is one wrong day
        return plan, [traceback.format_exc()]


def _lease_verdict(seed: int) -> tuple[int, list[str]]:
    try:
        return seed, [str(wrong) for wrong in lease_day(seed).trace.wrongs]
    except Exception:  # the edge: one day that cannot be simulated is one wrong day
        return seed, [traceback.format_exc()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
