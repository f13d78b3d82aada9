"""Refusals that are remembered for some time."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from sortie.model import ProgramNotFound
from sortie.transports.walls.refusals import REMEMBERED, Refusals


async def test_a_refusal_is_repeated_for_some_time(autojump_clock: MockClock) -> None:
    """The attempt is made again after that, and what it returns then is told."""
    refusals, attempts = Refusals(), 0

    async def attempt() -> int:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise ProgramNotFound("there is none")
        return attempts

    for _ in range(3):
        with pytest.raises(ProgramNotFound, match="there is none"):
            await refusals.or_repeat("a", attempt)
    other = await refusals.or_repeat("b", attempt)
    await trio.sleep(REMEMBERED + 1)

    assert other == 2
    assert await refusals.or_repeat("a", attempt) == 3
