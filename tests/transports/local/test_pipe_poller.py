"""Who reads pipes is woken by one who waits for all of them; the test itself writes to them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import trio
import trio.testing

from sortie.transports.local.pipe_poller import PAUSE, PipePoller
from sortie.transports.local.pipes import Output

LIMIT = 30


class Talkers:
    """Some outputs with one poller; what is read of each stands in ``heard``."""

    def __init__(self, count: int) -> None:
        self.poller = PipePoller()
        self.ends = []
        self.outputs = []
        self.heard: list[list[bytes]] = [[] for _ in range(count)]
        for _ in range(count):
            (out, say), (err, say_err) = os.pipe(), os.pipe()
            self.ends.append((say, say_err))
            self.outputs.append(Output({1: out, 2: err}, self.poller))

    def say(self, number: int, text: bytes) -> None:
        os.write(self.ends[number][0], text)

    async def listen(self, number: int) -> None:
        async for _, chunk in self.outputs[number].read():
            self.heard[number].append(chunk)

    def close(self) -> None:
        for ends in self.ends:
            for fd in ends:
                os.close(fd)


@pytest.fixture
def talkers() -> Iterator[Talkers]:
    """Three outputs."""
    some = Talkers(3)
    yield some
    some.close()


async def test_each_hears_its_own(talkers: Talkers) -> None:
    """Also who comes later, and who is still there when others are gone."""
    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(talkers.listen, 0)
            nursery.start_soon(talkers.listen, 1)
            await trio.testing.wait_all_tasks_blocked()
            talkers.say(0, b"zero")
            talkers.say(1, b"one")
            while not (talkers.heard[0] and talkers.heard[1]):
                await trio.sleep(PAUSE)
            talkers.outputs[0].end()
            nursery.start_soon(talkers.listen, 2)
            talkers.say(2, b"two")
            while not talkers.heard[2]:
                await trio.sleep(PAUSE)
            talkers.say(1, b"one more")
            while len(talkers.heard[1]) < 2:
                await trio.sleep(PAUSE)
            nursery.cancel_scope.cancel()

    assert talkers.heard == [[b"zero"], [b"one", b"one more"], [b"two"]]
    for output in talkers.outputs:
        output.close()


async def test_who_is_alone_hears_at_once_and_a_crowd_a_little_later(
    talkers: Talkers, mock_clock: trio.testing.MockClock
) -> None:
    """No time passes for one who talks; after two have talked together, the pause does."""
    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(talkers.listen, number)
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(5):
            talkers.say(0, b"alone ")
            await trio.testing.wait_all_tasks_blocked()
        alone = talkers.heard[0].copy()
        talkers.say(1, b"both")
        talkers.say(2, b"both")
        await trio.testing.wait_all_tasks_blocked()
        both = [talkers.heard[1].copy(), talkers.heard[2].copy()]
        talkers.say(0, b"late")
        await trio.testing.wait_all_tasks_blocked()
        early = talkers.heard[0][len(alone) :]
        mock_clock.jump(PAUSE)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()

    assert alone == [b"alone "] * 5
    assert both == [[b"both"], [b"both"]]
    assert (early, talkers.heard[0][len(alone) :]) == ([], [b"late"])
    for output in talkers.outputs:
        output.close()


async def test_what_nobody_waits_for_is_left_alone(
    talkers: Talkers, mock_clock: trio.testing.MockClock
) -> None:
    """It wakes nobody, however much of it there is, and is read by who comes back for it."""
    chunks = talkers.outputs[0].read()
    with trio.move_on_after(0.001) as patience:
        mock_clock.jump(0.001)
        await anext(chunks)
    talkers.say(0, b"unheard")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(talkers.listen, 1)
        nursery.start_soon(talkers.listen, 2)
        await trio.testing.wait_all_tasks_blocked()  # it would never be, were that looked at
        talkers.say(1, b"heard")
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()

    assert patience.cancelled_caught
    assert talkers.heard[1] == [b"heard"]
    assert await anext(chunks) == (1, b"unheard")
    for output in talkers.outputs:
        output.close()
