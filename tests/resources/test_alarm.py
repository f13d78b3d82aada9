"""Waits end by the real clock, whatever time it is for trio."""

from __future__ import annotations

import threading
import time
from _thread import start_new_thread
from collections.abc import Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from sortie.resources import alarm
from sortie.resources.alarm import Alarm


class Threads:
    """Starts threads, and counts them; the first ``dead`` of them never begin."""

    def __init__(self, dead: int = 0) -> None:
        self.started = 0
        self.ended = threading.Semaphore(0)
        self._dead = dead

    def start(self, work: Callable[..., object], args: tuple[Any, ...]) -> int:
        """Do as ``_thread.start_new_thread``."""
        self.started += 1
        if self.started <= self._dead:
            return 0

        def run() -> None:
            work(*args)
            self.ended.release()

        return start_new_thread(run, ())


def at(deadline: float) -> Callable[[], float]:
    return lambda: deadline


async def late(bell: Alarm, seconds: float) -> bool:
    """Wait for ever with an alarm that is set; tell whether it rang."""
    with bell.set(at(time.monotonic() + seconds)) as scope:
        await trio.sleep_forever()
    return scope.cancelled_caught


async def test_a_wait_ends_in_real_time(autojump_clock: MockClock) -> None:
    """Not before, though for trio hours have passed."""
    bell, began = Alarm(), time.monotonic()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep, 7200)
        rang = await late(bell, 0.1)

    assert rang
    assert time.monotonic() - began >= 0.1
    assert trio.current_time() >= 7200


async def test_who_is_done_in_time_hears_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread serves many waits one after another, and ends when nobody waits any more."""
    threads, bell = Threads(), Alarm()
    monkeypatch.setattr(alarm, "start_new_thread", threads.start)
    deadline = time.monotonic() + 0.2

    scopes = []
    for _ in range(5):
        with bell.set(at(deadline)) as scope:
            await trio.lowlevel.checkpoint()
        scopes.append(scope)
    await trio.to_thread.run_sync(threads.ended.acquire)

    assert [scope.cancel_called for scope in scopes] == [False] * 5
    assert threads.started == 1
    assert await late(bell, 0.05)
    assert threads.started == 2


async def test_a_time_that_is_put_off_is_not_kept() -> None:
    """What counts is the time as it stands when it has come."""
    bell, began = Alarm(), time.monotonic()
    times = iter([0.0, 0.05, 0.1, 0.15])
    latest = 0.0

    def deadline() -> float:
        nonlocal latest
        latest = next(times, latest)
        return began + latest

    with bell.set(deadline) as scope:
        await trio.sleep_forever()

    assert scope.cancelled_caught
    assert time.monotonic() - began >= 0.15


async def test_a_thread_that_never_began_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the next wait that begins after it should have been heard of."""
    threads, bell = Threads(dead=1), Alarm()
    monkeypatch.setattr(alarm, "start_new_thread", threads.start)
    monkeypatch.setattr(alarm, "_OVERDUE", 0.05)

    with trio.fail_after(30), bell.set(at(time.monotonic())) as first:
        await trio.sleep(0.1)
        assert await late(bell, 0.05)
        await trio.sleep_forever()

    assert first.cancelled_caught
    assert threads.started == 2
