"""Threads that cannot be had are waited for, and nothing is lost over it."""

from __future__ import annotations

import threading

import pytest
import trio
import trio.testing

from sortie.resources import (
    Resource,
    Shortage,
    Shortages,
    keep_account,
    patiently,
    run_in_thread,
)
from sortie.resources.threads import SHORTAGE_RETRY_LIMIT
from tests.resources.scarcity import no_threads


async def test_work_is_done_once_a_thread_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is done once, and its place is free again afterwards."""
    limiter = trio.CapacityLimiter(1)
    told: list[Shortage] = []
    account = Shortages(begun=told.append)
    keep_account(account)
    done: list[int] = []

    with no_threads(monkeypatch) as limit:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: run_in_thread(done.append, 1, limiter=limiter))
            while limit.refused < 3:
                await trio.sleep(0.01)
            limit.reached = False

    assert done == [1]
    assert limiter.borrowed_tokens == 0
    assert [shortage.resource for shortage in told] == [Resource.PROCESSES]
    assert "processes and threads" in account.shortages[0]


async def test_a_shortage_that_lasts_is_named(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    """Who needs a thread is told why there is none, and has lost no slot over it."""
    limiter = trio.CapacityLimiter(1)

    with no_threads(monkeypatch), pytest.raises(Shortage, match="processes and threads"):
        await run_in_thread(print, limiter=limiter)

    assert SHORTAGE_RETRY_LIMIT - 5 < trio.current_time() <= SHORTAGE_RETRY_LIMIT
    assert limiter.borrowed_tokens == 0


async def test_work_that_meets_a_shortage_is_not_done_again() -> None:
    """What may have done something is not repeated; the shortage is noted all the same."""
    account = Shortages()
    keep_account(account)
    done: list[int] = []

    def work() -> None:
        done.append(1)
        raise MemoryError

    with pytest.raises(MemoryError):
        await run_in_thread(work)

    assert done == [1]
    assert len(account.shortages) == 1


async def test_other_failures_are_not_waited_out(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Only a shortage passes by itself."""

    async def fail() -> None:
        raise RuntimeError("no such thing")

    with pytest.raises(RuntimeError, match="no such thing"):
        await patiently(fail)

    assert trio.current_time() == 0


async def test_what_is_abandoned_holds_its_place_until_it_is_over() -> None:
    """Who is cancelled goes on at once; the thread that hangs counts until it does not."""
    limiter = trio.CapacityLimiter(1)
    go_on = threading.Event()

    with trio.move_on_after(0.05) as scope:
        await run_in_thread(go_on.wait, 60, limiter=limiter, abandon_on_cancel=True)
    held = limiter.borrowed_tokens
    go_on.set()
    await run_in_thread(print, limiter=limiter)

    assert scope.cancelled_caught
    assert held == 1
    assert limiter.borrowed_tokens == 0


async def test_a_cancellation_waits_for_work_that_does_not_ask() -> None:
    """Its result is not lost."""
    begun, go_on = threading.Event(), threading.Event()
    answers: list[bool] = []

    def wait() -> bool:
        begun.set()
        return go_on.wait(60)

    async def work() -> None:
        with scope:
            answers.append(await run_in_thread(wait))

    scope = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work)
        await run_in_thread(begun.wait, 60)
        scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        before = list(answers)
        go_on.set()

    assert before == []
    assert answers == [True]


async def test_work_is_done_although_a_thread_could_not_be_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where one hangs and no other can be had, all wait until there is one; none is lost."""
    go_on = threading.Event()
    done: list[int] = []

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_in_thread, go_on.wait, 60)
        await trio.sleep(0.05)
        with no_threads(monkeypatch) as limit:
            for number in range(5):
                nursery.start_soon(run_in_thread, done.append, number)
            while limit.refused < 3:
                await trio.sleep(0.01)
            before = list(done)
            limit.reached = False
        while len(done) < 5:
            await trio.sleep(0.01)
        go_on.set()

    assert before == []
    assert sorted(done) == [*range(5)]
