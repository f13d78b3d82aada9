"""Times of day of the daemon's clock: the same while the clocks agree, right when they do not."""

from __future__ import annotations

import time

import pytest
import trio
from trio.testing import MockClock

from sortie.daemon.wall_time import wall_time


async def test_one_time_is_one_time_of_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often and whenever it is asked for, so that what stays does not look changed."""
    at = trio.current_time() + 10

    found = set()
    for _ in range(100):
        await trio.lowlevel.checkpoint()
        found.add(wall_time(at))

    assert len(found) == 1


@pytest.mark.parametrize("step", [-3600.0, -1.0, 1.0, 3600.0])
async def test_a_clock_that_was_set_is_followed(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    """A time of day that was corrected, or a machine that slept, moves what is shown with it."""
    monkeypatch.setattr(time, "time", lambda: 1_000_000.0)
    before = wall_time(trio.current_time() + 10)
    monkeypatch.setattr(time, "time", lambda: 1_000_000.0 + step)

    after = wall_time(trio.current_time() + 10)

    assert (after - before).total_seconds() == pytest.approx(step)
