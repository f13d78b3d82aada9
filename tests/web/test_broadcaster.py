"""Live events: made once for all, coalesced, resumed, and never waited for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import trio
from trio.testing import MockClock

from sortie.web.broadcaster import (
    BUFFER,
    KEPT_BYTES,
    KEPT_UPDATES,
    Broadcaster,
    Message,
    Pace,
    Subscriber,
)


@dataclass
class CountingFeed:
    """A feed of a number; ``looks`` counts how often it was asked."""

    number: int = 0
    padding: bytes = b""
    looks: int = 0
    wholes: int = 0
    seen: int | None = field(default=None, init=False)

    def changes(self) -> Sequence[Message]:
        self.looks += 1
        before, self.seen = self.seen, self.number
        if before in (None, self.number):
            return ()
        return (Message(event="number", data=b"%d%b" % (self.number, self.padding)),)

    def whole(self) -> Sequence[Message]:
        self.wholes += 1
        return (Message(event="all", data=b"%d" % (self.seen or 0)),)


@asynccontextmanager
async def running(feed: CountingFeed, pace: Pace | None = None) -> AsyncIterator[Broadcaster]:
    broadcaster = Broadcaster(feed, "life", pace)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(broadcaster.run)
        with trio.fail_after(3600):
            yield broadcaster
        nursery.cancel_scope.cancel()


async def next_block(listener: Subscriber) -> bytes:
    block = await listener.next_block()
    assert block is not None
    return block


async def test_nothing_is_made_while_nobody_listens(autojump_clock: MockClock) -> None:
    """However much happens, the feed is not asked, before anybody came and after all have gone."""
    feed = CountingFeed()
    async with running(feed) as broadcaster:
        broadcaster.notify()
        await trio.sleep(60)
        before = feed.looks
        with broadcaster.listening(None):
            await trio.sleep(0.5)
        during = feed.looks
        for _ in range(60):
            broadcaster.notify()
            await trio.sleep(1)

    assert (before, feed.looks - during) == (0, 0)
    assert during > 0


async def test_an_update_is_made_once_for_all(autojump_clock: MockClock) -> None:
    """Ten listeners get the very same bytes, of one look."""
    feed = CountingFeed()
    async with running(feed) as broadcaster:
        contexts = [broadcaster.listening(None) for _ in range(10)]
        listeners = [context.__enter__() for context in contexts]
        for listener in listeners:
            await listener.next_block()
        looks = feed.looks
        feed.number = 1
        broadcaster.notify()
        blocks = [await listener.next_block() for listener in listeners]
        for context in contexts:
            context.__exit__(None, None, None)

    assert feed.looks == looks + 1
    assert all(block is blocks[0] for block in blocks)


async def test_updates_are_coalesced(autojump_clock: MockClock) -> None:
    """A hundred changes in a second are one update or two, and the last has the last word."""
    feed = CountingFeed()
    async with running(feed) as broadcaster:
        with broadcaster.listening(None) as listener:
            await listener.next_block()
            looks = feed.looks
            for number in range(1, 101):
                feed.number = number
                broadcaster.notify()
                await trio.sleep(0.01)
            await trio.sleep(1.5)
            blocks = [await next_block(listener) for _ in range(listener.waiting)]

    assert feed.looks - looks <= 3
    assert len(blocks) <= 2
    assert b"data: 100\n" in blocks[-1]


async def test_what_nobody_told_of_is_seen_all_the_same(autojump_clock: MockClock) -> None:
    """A feed is asked now and then without being stirred."""
    feed = CountingFeed()
    async with running(feed, Pace(shortest=1.0, longest=5.0)) as broadcaster:
        with broadcaster.listening(None) as listener:
            await listener.next_block()
            feed.number = 1
            began = trio.current_time()
            await listener.next_block()

    assert trio.current_time() - began <= 6.5


async def test_who_comes_back_is_told_what_it_missed(autojump_clock: MockClock) -> None:
    """By the id of its last update; also what happened while nobody listened at all."""
    feed = CountingFeed()
    async with running(feed) as broadcaster:
        with broadcaster.listening(None) as listener:
            await listener.next_block()
            for number in (1, 2):
                feed.number = number
                broadcaster.notify()
                await listener.next_block()
        feed.number = 3
        with broadcaster.listening("life-1") as listener:
            told = [await next_block(listener) for _ in range(listener.waiting)]
        with broadcaster.listening("life-3") as listener:
            nothing = listener.waiting

    assert [block.split(b"\n")[0] for block in told] == [b"id: life-2", b"id: life-3"]
    assert feed.wholes == 1
    assert nothing == 0


@pytest.mark.parametrize(
    "last_id",
    [
        "other-1",
        "life-2",
        "life-",
        "life--1",
        "life-1.0",
        "life-\u0661",
        "life-" + "9" * 5000,
        "",
        "-",
        "x",
        "life-1\n",
    ],
)
async def test_an_id_that_is_none_gets_everything(last_id: str) -> None:
    """One of another life, one that is not given yet, and nonsense."""
    feed = CountingFeed()
    broadcaster = Broadcaster(feed, "life")
    with broadcaster.listening(None):
        feed.number = 1
        broadcaster.look_now()

    with broadcaster.listening(last_id) as listener:
        block = await next_block(listener)

    assert block == b"id: life-1\nevent: all\ndata: 1\n\n"


@pytest.mark.parametrize(
    ("updates", "padding"), [(KEPT_UPDATES + 1, 0), (3, KEPT_BYTES // 2)], ids=["many", "large"]
)
async def test_who_has_missed_more_than_is_kept_gets_everything(updates: int, padding: int) -> None:
    """What is kept is bounded in number and in bytes."""
    feed = CountingFeed(padding=b"x" * padding)
    broadcaster = Broadcaster(feed, "life")
    with broadcaster.listening(None):
        pass
    for number in range(1, updates + 1):
        feed.number = number
        broadcaster.look_now()

    with broadcaster.listening("life-0") as listener:
        first = await next_block(listener)
    with broadcaster.listening(f"life-{updates - 1}") as listener:
        recent = await next_block(listener)

    assert first == b"id: life-%d\nevent: all\ndata: %d\n\n" % (updates, updates)
    assert recent.startswith(b"id: life-%d\nevent: number\n" % updates)


async def test_who_does_not_keep_up_is_dropped_alone() -> None:
    """The slow one is told that it is dropped; the quick one goes on and misses nothing."""
    feed = CountingFeed()
    broadcaster = Broadcaster(feed, "life")
    dropped: list[str] = []
    with (
        broadcaster.listening(None, lambda: dropped.append("slow")),
        broadcaster.listening(None, lambda: dropped.append("quick")) as quick,
    ):
        await quick.next_block()
        for number in range(1, BUFFER + 5):
            feed.number = number
            broadcaster.look_now()
            block = await next_block(quick)
            assert b"data: %d\n" % number in block
        left = broadcaster.listeners

    assert dropped == ["slow"]
    assert left == 1


async def test_lines_and_several_events_are_framed() -> None:
    """Each line of data has its prefix, no line ending of the data ends an event, and the id comes
    with the last event of an update."""

    class PageFeed(CountingFeed):
        def whole(self) -> Sequence[Message]:
            return (
                Message(event="a", data=b"one\ntwo\r\nthree\rfour"),
                Message(event="b", data=b"event: c\n\ndata: d"),
            )

    broadcaster = Broadcaster(PageFeed(), "life")
    with broadcaster.listening(None) as listener:
        block = await listener.next_block()

    assert block == (
        b"event: a\ndata: one\ndata: two\ndata: three\ndata: four\n\n"
        b"id: life-0\nevent: b\ndata: event: c\ndata: \ndata: data: d\n\n"
    )
