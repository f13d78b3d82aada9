"""What comes from a host on its way to a reader who may be slow or absent."""

from __future__ import annotations

from typing import cast

import trio
import trio.testing

from sortie.transports.ssh.asyncio_thread import AsyncioThread
from sortie.transports.ssh.channel import Channel
from sortie.transports.ssh.protocol import Dialogue
from sortie.transports.ssh.receive_buffer import BACKLOG, HIGH, LOW, ReceiveBuffer
from sortie.transports.ssh.session import Session
from tests.transports.ssh.pipes import Direct

HERE = b"\1n here 7 - \n"
STARTED = b"\1n started 1\n"


def make(dialogue: Dialogue | None = None) -> ReceiveBuffer:
    return ReceiveBuffer(cast(AsyncioThread, Direct()), lambda: None, dialogue)


async def test_a_reader_who_falls_behind_holds_the_host_back() -> None:
    """From HIGH on, until no more than LOW waits."""
    buffer = make()
    for _ in range(HIGH // LOW):
        buffer.receive(1, bytes(LOW))
    assert not buffer.overflows
    buffer.receive(1, b"x")
    assert buffer.overflows

    while not buffer.has_room:
        assert buffer.take() is not None
    assert buffer.waiting <= LOW


async def test_while_draining_nothing_waits_and_memory_is_bounded() -> None:
    """The host is held back no longer, and what is more than a backlog is dropped."""
    buffer = make()
    buffer.drains = True
    for _ in range(40):
        buffer.receive(1, bytes(BACKLOG // 16))
        assert not buffer.overflows

    assert sum(len(chunk) for _, chunk in buffer.chunks) == BACKLOG


async def test_trio_is_not_woken_for_the_word_that_is_answered() -> None:
    """It is there to be read, and told of with the next one."""
    buffer = make(Dialogue(b"", "n"))
    woken: list[list[str]] = []

    async def listen() -> None:
        await buffer.waker.wait()
        woken.append(list(buffer.words))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await trio.testing.wait_all_tasks_blocked()
        assert buffer.receive(1, HERE)
        await trio.testing.wait_all_tasks_blocked()
        assert (woken, list(buffer.words)) == ([], ["here 7 -"])
        assert not buffer.receive(1, STARTED)

    assert woken == [["here 7 -", "started 1"]]


async def test_trio_is_woken_for_a_word_that_gets_no_answer_any_more() -> None:
    """Nothing else would come."""
    dialogue = Dialogue(b"", "n")
    buffer = make(dialogue)
    dialogue.withdraw()

    assert not buffer.receive(1, HERE)
    with trio.fail_after(20):
        await buffer.waker.wait()


async def test_what_follows_a_gap_is_dropped_too() -> None:
    """A reader who comes late gets the beginning, and nothing that does not belong to it."""
    buffer = make()
    buffer.drains = True
    buffer.receive(1, bytes(BACKLOG))
    buffer.receive(1, b"lost")
    buffer.take()
    buffer.receive(1, b"late")

    assert not buffer.chunks


async def test_a_reader_is_told_when_somebody_stays() -> None:
    """The output ends though the channel does not; what has come is read before."""
    buffer = make(Dialogue(b"", "n"))
    channel = Channel(cast(AsyncioThread, Direct()), buffer, cast(Session, None))
    read: list[bytes] = []

    async def listen() -> None:
        async for _, chunk in channel.output():
            read.append(chunk)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await trio.testing.wait_all_tasks_blocked()
        buffer.receive(1, STARTED + b"last")
        await trio.testing.wait_all_tasks_blocked()
        buffer.receive(2, b"\1n gone 5\n")

    assert read == [b"last"]


async def test_it_is_over_when_somebody_stays() -> None:
    """Who stays may hold the channel open for ever; when all are gone, it closes."""
    for last, over in ((b"\1n gone\n", False), (b"\1n gone 5\n", True)):
        buffer = make(Dialogue(b"", "n"))
        buffer.receive(2, last)
        assert buffer.over.is_set() is over
    buffer.end(None)
    assert buffer.over.is_set()


async def test_the_end_brings_what_was_held_back() -> None:
    """A last byte that could have begun a word."""
    buffer = make(Dialogue(b"", "n"))
    buffer.receive(1, STARTED)
    buffer.receive(2, b"\1n started\n")
    buffer.receive(2, b"end\1")
    buffer.end(None)

    assert b"".join(chunk for _, chunk in buffer.chunks) == b"end\1"
