"""Locks that are nearly always free."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from sortie.resources.locks import held


async def test_a_free_lock_is_taken_at_once() -> None:
    """No other task gets a turn before the block begins."""
    lock, turns = trio.Lock(), list[str]()

    async def other() -> None:
        await trio.lowlevel.checkpoint()
        turns.append("other")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        async with held(lock):
            turns.append("block")
            assert lock.locked()
            await trio.lowlevel.checkpoint()

    assert turns[0] == "block"
    assert not lock.locked()


async def test_one_holds_it_at_a_time(autojump_clock: MockClock) -> None:
    """Others wait, in their order, also for a block that raises."""
    lock, entered = trio.Lock(), list[tuple[int, float]]()
    began = trio.current_time()

    async def hold(number: int) -> None:
        async with held(lock):
            entered.append((number, trio.current_time() - began))
            await trio.sleep(1)
            if number == 0:
                raise ValueError(number)

    async def first() -> None:
        with pytest.raises(ValueError, match="0"):
            await hold(0)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(first)
        await trio.testing.wait_all_tasks_blocked()
        for number in (1, 2):
            nursery.start_soon(hold, number)
            await trio.testing.wait_all_tasks_blocked()

    assert entered == [(0, 0.0), (1, 1.0), (2, 2.0)]
