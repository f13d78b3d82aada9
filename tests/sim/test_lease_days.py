"""Days of several daemons that lead the same workflows: one leader at a time, and one in time."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import Counter

import pytest

from tests.sim.leases.day import live_through

DAYS = 60
CHUNK = 4
FULL = pytest.mark.full


def _live(seeds: range) -> Counter[str | None]:
    """Live days, and count the leaderships by what ended them."""
    ended = Counter[str | None]()
    for seed in seeds:
        day = live_through(seed)
        wrongs = "\n".join(map(str, day.trace.wrongs[:5]))
        assert not wrongs, f"{wrongs}\nreplay with: python -m tests.sim --lease-day {seed}"
        ended.update(day.leaderships)
    return ended


@pytest.mark.parametrize(
    "first",
    [pytest.param(n, marks=FULL if n >= 2 * CHUNK else ()) for n in range(0, DAYS, CHUNK)],
)
def test_days_of_several_daemons_keep_every_promise(first: int) -> None:
    """Whatever processes, clocks, networks and the server do: one leader acts, no issue has two
    agents, nothing is done twice or lost, and each workflow is taken over in time."""
    _live(range(first, first + CHUNK))


@FULL
def test_the_days_reach_every_end_of_a_leadership() -> None:
    """Leaders die, give back, drain, and hand over to the daemon that is preferred."""
    assert _live(range(100, 130)).keys() >= {"expired", "released", "drained", "moved", None}


def test_a_lease_day_replays_exactly() -> None:
    """Two processes that hash differently see the same day, to the last line."""
    script = "from tests.sim.test_lease_days import digest; print(digest(6))"

    seen = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": hashing},
            check=True,
            capture_output=True,
        ).stdout
        for hashing in ("1", "2")
    }

    assert len(seen) == 1


def digest(seed: int) -> str:
    """Return a day's trace as a short text."""
    lines = "\n".join(map(str, live_through(seed).trace.lines))
    return hashlib.sha256(lines.encode()).hexdigest()
