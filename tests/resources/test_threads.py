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
    check_cancelled,
    keep_account,
    patiently,
    run_in_thread,
    work_queue,
)
from sortie.resources.threads import PATIENCE
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

    assert PATIENCE - 5 < trio.current_time() <= PATIENCE
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


async def test_work_can_ask_whether_anybody_waits_for_it() -> None:
    """A cancellation waits for the work, which may end itself."""
    working = threading.Lock()
    asked: list[int] = []

    def work() -> None:
        with working:
            while True:
                asked.append(1)
                check_cancelled()

    with trio.move_on_after(0.05) as scope:
        await run_in_thread(work)

    assert scope.cancelled_caught
    assert asked
    assert not working.locked()


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


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """All work waits for the work before it, however long that takes."""
    monkeypatch.setattr(work_queue, "LONGEST_PIECE", 60)


@pytest.mark.usefixtures("patient")
async def test_work_that_was_not_begun_is_not_done_for_nobody() -> None:
    """Who is cancelled while other work is done goes on at once, and its place is free."""
    limiter = trio.CapacityLimiter(2)
    go_on = threading.Event()
    done: list[int] = []

    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: run_in_thread(go_on.wait, 60, limiter=limiter))
        await trio.testing.wait_all_tasks_blocked()
        with trio.CancelScope() as scope:
            nursery.start_soon(_cancel_when_blocked, scope)
            await run_in_thread(done.append, 1, limiter=limiter)
        held = limiter.borrowed_tokens
        go_on.set()
    await run_in_thread(done.append, 2)

    assert scope.cancelled_caught
    assert (done, held) == ([2], 1)


@pytest.mark.usefixtures("patient")
async def test_one_thread_does_what_waits_in_the_order_in_which_it_came() -> None:
    """No other one is woken for it."""
    go_on = threading.Event()
    done: list[tuple[int, int]] = []

    def work(number: int) -> None:
        done.append((number, threading.get_ident()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_in_thread, go_on.wait, 60)
        for number in range(30):
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(run_in_thread, work, number)
        await trio.testing.wait_all_tasks_blocked()
        go_on.set()

    assert [number for number, _ in done] == [*range(30)]
    assert len({thread for _, thread in done}) == 1


async def test_nobody_waits_for_long_behind_what_hangs() -> None:
    """Another thread goes on, also where work hangs that was begun before others came."""
    go_on = threading.Event()
    done: list[int] = []

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(run_in_thread, go_on.wait, 60)
            nursery.start_soon(run_in_thread, done.append, 1)
        with trio.fail_after(30):
            for number in range(10):
                await run_in_thread(done.append, number)
        go_on.set()

    assert len(done) == 13


async def test_who_hangs_and_comes_back_leaves_the_work_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There are not more and more threads that take work."""
    hang, stay = threading.Event(), threading.Event()
    done: list[int] = []

    async with trio.open_nursery() as nursery:
        async with trio.open_nursery() as hanging:
            for _ in range(5):
                hanging.start_soon(run_in_thread, hang.wait, 60)
            await trio.testing.wait_all_tasks_blocked()
            await run_in_thread(print)
            monkeypatch.setattr(work_queue, "LONGEST_PIECE", 60)
            nursery.start_soon(run_in_thread, stay.wait, 60)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(run_in_thread, done.append, 1)
            await trio.testing.wait_all_tasks_blocked()
            hang.set()
        await trio.sleep(0.05)
        before = list(done)
        stay.set()

    assert (before, done) == ([], [1])


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


async def test_who_finds_no_place_waits_for_one() -> None:
    """As many threads work at once as the limiter has places, and all work is done."""
    limiter = trio.CapacityLimiter(2)
    at_once: list[int] = []

    def work() -> None:
        at_once.append(1)
        seen.append(len(at_once))
        both.wait(30)
        at_once.pop()

    seen: list[int] = []
    both = threading.Barrier(2)
    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(lambda: run_in_thread(work, limiter=limiter))

    assert len(seen) == 6
    assert max(seen) == 2


async def _cancel_when_blocked(scope: trio.CancelScope) -> None:
    await trio.testing.wait_all_tasks_blocked()
    scope.cancel()
