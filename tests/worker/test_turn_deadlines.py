"""Which of a turn's two deadlines ends it, and when."""

from __future__ import annotations

import math

import pytest
import trio
from trio.testing import MockClock

from sortie.worker.turn_deadlines import TurnDeadlines

TURN, PATIENCE = 100.0, 30.0


@pytest.mark.parametrize(
    ("patience", "heard", "ends_at", "by_silence"),
    [
        (PATIENCE, [], 30.0, True),
        (PATIENCE, [20.0, 45.0], 75.0, True),
        (PATIENCE, [20.0, 45.0, 70.0], 100.0, False),
        (TURN, [], 100.0, False),
        (math.inf, [20.0], 100.0, False),
    ],
)
async def test_the_earlier_one_ends_it(
    autojump_clock: MockClock,
    patience: float,
    heard: list[float],
    ends_at: float,
    by_silence: bool,
) -> None:
    """Silence is counted from what was heard last; where both end together it was the turn."""
    began = trio.current_time()
    deadlines = TurnDeadlines(TURN, patience)

    with deadlines.kept():
        for at in heard:
            await trio.sleep_until(began + at)
            deadlines.heard(trio.current_time())
        await trio.sleep_forever()

    assert trio.current_time() - began == ends_at
    assert deadlines.silence_is_first is by_silence


async def test_what_is_heard_too_late_changes_nothing(autojump_clock: MockClock) -> None:
    """A turn that is being ended for its silence is ended for that, however long that takes."""
    deadlines = TurnDeadlines(TURN, PATIENCE)

    with deadlines.kept():
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(TURN - PATIENCE - 1.0)
            deadlines.heard(trio.current_time())

    assert deadlines.scope.cancelled_caught
    assert deadlines.silence_is_first


async def silent_turn(
    begins: float, patience: float, heard: list[float], ends: list[float]
) -> None:
    """Take a turn from a time on, with signs of life at others, and note when it was ended."""
    began = trio.current_time()
    await trio.sleep_until(began + begins)
    deadlines = TurnDeadlines(TURN, patience)
    with deadlines.kept():
        for at in heard:
            await trio.sleep_until(began + at)
            deadlines.heard(trio.current_time())
        await trio.sleep_forever()
    assert deadlines.scope.cancelled_caught
    ends.append(trio.current_time() - began)


async def test_each_of_many_is_ended_at_its_own_time(autojump_clock: MockClock) -> None:
    """Whoever came first, was heard last, or has the least patience."""
    ends: list[float] = []

    async with trio.open_nursery() as nursery:
        nursery.start_soon(silent_turn, 0.0, PATIENCE, [29.0, 31.0], ends)
        nursery.start_soon(silent_turn, 0.0, PATIENCE, [], ends)
        nursery.start_soon(silent_turn, 2.0, PATIENCE, [], ends)
        nursery.start_soon(silent_turn, 3.0, 5.0, [4.0], ends)
        nursery.start_soon(silent_turn, 3.0, math.inf, [], ends)
        nursery.start_soon(silent_turn, 70.0, PATIENCE, [80.0], ends)  # when most are over

    assert ends == [9.0, 30.0, 32.0, 61.0, 103.0, 110.0]


async def test_one_that_takes_long_to_end_keeps_nobody(autojump_clock: MockClock) -> None:
    """While what was silent is cleaned up after, others are ended when it is their time."""
    ends: list[float] = []

    async def slow() -> None:
        with TurnDeadlines(TURN, PATIENCE).kept():
            try:
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    await trio.sleep(1000.0)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(slow)
        nursery.start_soon(silent_turn, 10.0, PATIENCE, [], ends)
        nursery.start_soon(silent_turn, 50.0, PATIENCE, [60.0], ends)

    assert ends == [40.0, 90.0]


async def test_nothing_wakes_for_turns_that_are_over(autojump_clock: MockClock) -> None:
    """A turn leaves no deadline behind; the next one is watched all the same."""
    for _ in range(2):
        began = trio.current_time()
        with trio.move_on_after(1.0), TurnDeadlines(TURN, PATIENCE).kept():
            await trio.sleep_forever()
        await trio.testing.wait_all_tasks_blocked()

        assert trio.current_time() - began == 1.0
        assert trio.lowlevel.current_statistics().seconds_to_next_deadline == math.inf
    ends: list[float] = []
    await silent_turn(0.0, PATIENCE, [], ends)
    assert ends == [30.0]
