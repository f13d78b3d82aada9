"""Output on its way to a reader who may be slow or absent."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from sortie.transports.ssh.output import BACKLOG, Output


async def test_a_chunk_waits_for_its_reader(autojump_clock: trio.testing.MockClock) -> None:
    """Only one chunk is in memory until somebody reads."""
    output = Output()
    await output.put(1, b"first")

    with trio.move_on_after(1) as bound:
        await output.put(1, b"second")

    assert bound.cancelled_caught
    assert await anext(output.read()) == (1, b"first")


async def test_while_ending_nothing_waits_and_memory_is_bounded() -> None:
    """Without a reader all is taken, and what is more than a backlog is dropped."""
    output = Output()
    output.drain()
    for _ in range(40):
        await output.put(1, bytes(BACKLOG // 16))
    output.end()

    read = [len(chunk) async for _, chunk in output.read()]

    assert sum(read) == BACKLOG


async def test_drain_lets_one_who_waits_go_on() -> None:
    """Somebody who waits for room when the end begins waits no longer, and loses nothing."""
    output = Output()
    await output.put(1, b"first")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(output.put, 2, b"second")
        await trio.testing.wait_all_tasks_blocked()
        output.drain()
    output.end()

    assert [item async for item in output.read()] == [(1, b"first"), (2, b"second")]


async def test_output_is_read_once() -> None:
    """A second reader is refused at once."""
    output = Output()
    output.read()

    with pytest.raises(RuntimeError):
        output.read()
