"""Which of a turn's two deadlines ends it, and when."""

from __future__ import annotations

import math

import pytest
import trio
from trio.testing import MockClock

from sortie.worker import turn_deadlines
from sortie.worker.turn_deadlines import TurnDeadlines

TURN, SILENCE = 100.0, 30.0


@pytest.mark.parametrize(
    ("silence_limit", "heard", "ends_at", "by_silence"),
    [
        (SILENCE, [], 30.0, True),
        (SILENCE, [20.0, 45.0], 75.0, True),
        (SILENCE, [20.0, 45.0, 70.0], 100.0, False),
        (TURN, [], 100.0, False),
        (math.inf, [20.0], 100.0, False),
    ],
)
async def test_the_earlier_one_ends_it(
    autojump_clock: MockClock,
    silence_limit: float,
    heard: list[float],
    ends_at: float,
    by_silence: bool,
) -> None:
    """Silence is counted from the last output; where both end together it was the turn."""
    began = trio.current_time()
    deadlines = TurnDeadlines(TURN, silence_limit)

    with deadlines.scope:
        for at in heard:
            await trio.sleep_until(began + at)
            deadlines.output_came(trio.current_time())
        await trio.sleep_forever()

    assert trio.current_time() - began == ends_at
    assert deadlines.silence_is_first is by_silence


async def test_what_is_heard_too_late_changes_nothing(autojump_clock: MockClock) -> None:
    """A turn that is being ended for its silence is ended for that, however long that takes."""
    deadlines = TurnDeadlines(TURN, SILENCE)

    with deadlines.scope:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(TURN - SILENCE - 1.0)
            deadlines.output_came(trio.current_time())

    assert deadlines.scope.cancelled_caught
    assert deadlines.silence_is_first


@pytest.mark.parametrize(
    ("steps", "ends_at", "by_silence"),
    [
        ([(25.0, "lost"), (50.0, "back")], 60.0, True),  # HEARING, and no more
        ([(5.0, "lost"), (15.0, "back")], 40.0, True),  # what was left
        ([(25.0, "lost"), (26.0, "heard"), (50.0, "back")], 80.0, True),
        ([(25.0, "lost"), (26.0, "lost"), (50.0, "back"), (51.0, "back")], 60.0, True),
        ([(25.0, "lost")], 100.0, False),
        ([(25.0, "lost"), (85.0, "back")], 95.0, True),
    ],
)
async def test_silence_without_a_link_is_not_counted(
    autojump_clock: MockClock,
    monkeypatch: pytest.MonkeyPatch,
    steps: list[tuple[float, str]],
    ends_at: float,
    by_silence: bool,
) -> None:
    """What was left of it goes on with the new link, and what was said meanwhile is waited for."""
    monkeypatch.setattr(turn_deadlines, "HEARING", 10.0)
    began = trio.current_time()
    deadlines = TurnDeadlines(TURN, SILENCE)

    with deadlines.scope:
        for at, step in steps:
            await trio.sleep_until(began + at)
            if step == "heard":
                deadlines.output_came(trio.current_time())
            else:
                deadlines.link_changed(step == "lost")
        await trio.sleep_forever()

    assert trio.current_time() - began == ends_at
    assert deadlines.silence_is_first is by_silence


async def test_a_link_that_is_lost_too_late_changes_nothing(autojump_clock: MockClock) -> None:
    """A turn that is being ended for its silence is ended for that."""
    deadlines = TurnDeadlines(TURN, SILENCE)

    with deadlines.scope:
        try:
            await trio.sleep_forever()
        finally:
            deadlines.link_changed(True)

    assert deadlines.scope.cancelled_caught
    assert deadlines.silence_is_first
