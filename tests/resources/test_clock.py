"""Time stands still while the daemon does, and nothing is judged before what is pending is read."""

from __future__ import annotations

import time

import trio
import trio.testing

from sortie.resources.clock import GAP_THRESHOLD, SETTLING, PauseClock


class Source:
    """A monotonic clock that a test can advance."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


class Leap:
    """The real monotonic clock, with leaps in it."""

    def __init__(self) -> None:
        self.leapt = 0.0

    def __call__(self) -> float:
        return time.perf_counter() + self.leapt


def test_time_passes_as_usual() -> None:
    """Neither a short delay nor a long sleep that was meant is a gap."""
    source = Source()
    clock = PauseClock(source)
    began = clock.current_time()

    source.seconds += GAP_THRESHOLD
    after_work = clock.current_time()
    to_sleep = clock.deadline_to_sleep_time(after_work + 60)
    source.seconds += 60 + GAP_THRESHOLD
    after_sleep = clock.current_time()

    assert after_work - began == GAP_THRESHOLD
    assert to_sleep == 60
    assert after_sleep - after_work == 60 + GAP_THRESHOLD
    assert clock.paused == 0


def test_a_gap_counts_for_nothing() -> None:
    """What a sleep takes more than was meant is forgiven as a whole, and then some."""
    source = Source()
    clock = PauseClock(source)
    began = clock.current_time()

    clock.deadline_to_sleep_time(began + 1)
    source.seconds += 500
    woken = clock.current_time()
    source.seconds += SETTLING
    settled = clock.current_time()
    source.seconds += 0.5
    later = clock.current_time()

    assert woken == began
    assert settled == began
    assert later == began + 0.5
    assert clock.paused == 500


def test_a_standstill_is_slept_through() -> None:
    """A deadline that is near does not keep the loop busy while the time stands still."""
    source = Source()
    clock = PauseClock(source)
    deadline = clock.current_time() + 0.25

    source.seconds += 100

    assert clock.deadline_to_sleep_time(deadline) == SETTLING + 0.25


def test_what_is_pending_is_read_before_a_limit_is_judged() -> None:
    """A limit that has passed during a gap ends nobody whose output came meanwhile."""
    leap = Leap()
    heard: list[object] = []
    gaps: list[float] = []

    async def main() -> bool:
        send, receive = trio.open_memory_channel[str](10)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(clock.tick, gaps.append)
            with trio.move_on_after(30) as limit:
                leap.leapt += 3600  # the process is stopped, and the agent speaks
                send.send_nowait("still here")
                await trio.sleep(0)
                heard.append(await receive.receive())
            while not gaps:
                await trio.sleep(0.05)
            nursery.cancel_scope.cancel()
        return limit.cancelled_caught

    clock = PauseClock(leap)

    assert trio.run(main, clock=clock) is False
    assert heard == ["still here"]
    assert 3600 <= gaps[0] < 3610


def test_silence_is_still_noticed_after_a_gap() -> None:
    """A limit is only put off: who stays silent is found out by the rest of it."""
    leap = Leap()

    async def main() -> bool:
        with trio.move_on_after(0.2) as limit:
            leap.leapt += 3600
            await trio.sleep_forever()
        return limit.cancelled_caught

    assert trio.run(main, clock=PauseClock(leap)) is True


async def test_an_idle_daemon_is_woken_less_often(autojump_clock: trio.testing.MockClock) -> None:
    """Once in five seconds while nothing runs, once a second while something does."""
    asked: list[float] = []

    def is_idle() -> bool:
        asked.append(trio.current_time())
        return len(asked) <= 3

    with trio.move_on_after(17.5):
        await PauseClock().tick(lambda _seconds: None, is_idle)

    assert asked == [0, 5, 10, 15, 16, 17]
