"""Every persistence point of a day: the daemon is killed on either side of each commit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.sim.system.run import Plan, live_through
from tests.sim.system.store import CrashPoint


def every_crash(plan: Plan) -> Iterator[Plan]:
    """Yield a day with a crash for each commit of a day, and each side of it."""
    for number in range(1, live_through(plan).commits + 1):
        yield replace(plan, crash=CrashPoint("before", number))
        yield replace(plan, crash=CrashPoint("after", number))
