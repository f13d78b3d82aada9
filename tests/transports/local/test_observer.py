"""Observations made once for many."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from sortie.transports.local.observer import SharedObservation


class Counter:
    """Counts up by one when it is let."""

    def __init__(self) -> None:
        self.count = 0
        self.gate = trio.Event()

    async def make(self) -> int:
        self.count += 1
        number = self.count
        await self.gate.wait()
        return number


async def test_those_who_ask_meanwhile_share_the_next_one() -> None:
    """An answer was begun after it was asked for, and twenty callers need two of them."""
    counter = Counter()
    shared = SharedObservation(counter.make)
    answers: list[int] = []

    async def ask() -> None:
        answers.append(await shared.ask())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(20):
            nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        counter.gate.set()
    late = await shared.ask()

    assert answers == [1] + [2] * 20
    assert late == 3


async def test_a_cancelled_maker_is_replaced() -> None:
    """When the caller who makes the observation is cancelled, the next in the queue makes it."""
    counter = Counter()
    shared = SharedObservation(counter.make)
    answers: list[int] = []
    scope = trio.CancelScope()

    async def give_up() -> None:
        with scope:
            await shared.ask()

    async def ask() -> None:
        answers.append(await shared.ask())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(give_up)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        scope.cancel()
        counter.gate.set()

    assert answers == [2]


async def test_a_failure_reaches_its_caller_only() -> None:
    """An observation that fails is made again for the next who asks."""
    attempts = 0

    async def make() -> int:
        nonlocal attempts
        attempts += 1
        await trio.lowlevel.checkpoint()
        if attempts == 1:
            raise OSError("too many open files")
        return attempts

    shared = SharedObservation(make)

    with pytest.raises(OSError, match="too many"):
        await shared.ask()

    assert await shared.ask() == 2
