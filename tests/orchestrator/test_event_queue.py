"""The queue of events: everything once and in order, and no wake-up for news alone."""

from __future__ import annotations

import math

import trio
from trio.testing import MockClock

from sortie.model import ProcessIdentity, RunId
from sortie.orchestrator.event_queue import PATIENCE, EventQueue
from sortie.scheduler import Event
from sortie.scheduler import events as ev

NEWS = ev.ProcessLaunched(RunId("run-1"), ProcessIdentity(pid=7, started_at=1.0))
POLL = ev.RefreshRequested()


class Loop:
    """Takes from a queue; ``taken`` are the events of each time with the time that it was."""

    def __init__(self, queue: EventQueue) -> None:
        self.queue = queue
        self.taken: list[tuple[float, list[Event]]] = []

    async def run(self, until: float = math.inf) -> None:
        while True:
            batch = await self.queue.take(until)
            self.taken.append((trio.current_time(), [event for event, _ in batch]))
            for _, done in batch:
                if done is not None:
                    done.set()


async def test_news_waits_for_others_and_not_for_long(autojump_clock: MockClock) -> None:
    """It comes with the next other event, in the order of telling, or by itself in time."""
    queue, began = EventQueue(), trio.current_time()
    loop = Loop(queue)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(loop.run)
        await trio.sleep(1.0)
        queue.tell(NEWS)
        await trio.sleep(PATIENCE / 2)
        queue.tell(NEWS)
        queue.tell(POLL)
        await trio.sleep(1.0)
        queue.tell(NEWS)
        await trio.sleep(PATIENCE / 2)
        queue.tell(NEWS)
        await trio.sleep(1.0)
        nursery.cancel_scope.cancel()

    times = [at - began for at, _ in loop.taken]
    assert [events for _, events in loop.taken] == [[NEWS, NEWS, POLL], [NEWS, NEWS]]
    assert times == [1.0 + PATIENCE / 2, 2.0 + PATIENCE / 2 + PATIENCE]


async def test_news_that_waits_already_is_taken_in_time(autojump_clock: MockClock) -> None:
    """Also where it was told before anybody took from the queue."""
    queue, began = EventQueue(), trio.current_time()
    queue.tell(NEWS)

    batch = await queue.take(math.inf)

    assert batch == [(NEWS, None)]
    assert trio.current_time() - began == PATIENCE


async def test_a_commit_takes_news_along(autojump_clock: MockClock) -> None:
    """What came before it is handled before it, and its teller hears when it is done."""
    queue = EventQueue()
    loop = Loop(queue)
    queue.tell(NEWS)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(loop.run)
        await queue.commit(POLL)
        nursery.cancel_scope.cancel()

    assert [events for _, events in loop.taken] == [[NEWS, POLL]]


async def test_the_time_that_was_waited_for_is_told_last(autojump_clock: MockClock) -> None:
    """Whether or not something else came meanwhile; news does not put it off."""
    queue = EventQueue()
    until = trio.current_time() + PATIENCE / 2
    queue.tell(NEWS)

    first = await queue.take(until)
    second = await queue.take(until)

    assert first == [(NEWS, None), (ev.TimePassed(), None)]
    assert second == [(ev.TimePassed(), None)]
    assert trio.current_time() == until
