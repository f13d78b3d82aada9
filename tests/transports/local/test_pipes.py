"""The output of a process, read from pipes that the test itself writes to."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import trio
import trio.testing

from sortie.transports.local.pipes import CHUNK, Output

LIMIT = 60


class Written:
    """Two pipes and the output that reads them; ``ends`` are to write to."""

    def __init__(self) -> None:
        (out, self.out), (err, self.err) = os.pipe(), os.pipe()
        self.ends = {1: self.out, 2: self.err}
        self.output = Output({1: out, 2: err})

    def end(self, number: int) -> None:
        os.close(self.ends.pop(number))

    def close(self) -> None:
        for fd in self.ends.values():
            os.close(fd)


@pytest.fixture
def written() -> Iterator[Written]:
    """Pipes whose writing ends are closed after the test."""
    pipes = Written()
    yield pipes
    pipes.close()


@pytest.mark.parametrize("flooded", [1, 2])
async def test_a_pipe_that_is_always_full_does_not_hide_the_other(
    written: Written, flooded: int
) -> None:
    """Each has its turn, however much the other one brings."""
    chunks = written.output.read()
    os.write(written.ends[3 - flooded], b"heard")
    seen = []

    with trio.fail_after(LIMIT):
        while (3 - flooded, b"heard") not in seen:
            os.set_blocking(written.ends[flooded], False)
            os.write(written.ends[flooded], b"x" * 4096)
            seen.append(await anext(chunks))

    assert len(seen) <= 3
    written.output.close()


async def test_the_output_ends_when_both_pipes_have_ended(written: Written) -> None:
    """One that has ended is not read any more, and the other one to its end."""
    chunks = written.output.read()
    os.write(written.out, b"one")
    os.write(written.err, b"two")
    written.end(1)

    with trio.fail_after(LIMIT):
        seen = {await anext(chunks), await anext(chunks)}
        written.end(2)
        rest = [chunk async for chunk in chunks]

    assert seen == {(1, b"one"), (2, b"two")}
    assert rest == []
    written.output.close()


async def test_what_a_pipe_held_at_the_end_is_read(written: Written) -> None:
    """It ends while a task waits, after what is there, though the pipes are held open."""
    seen = []

    async def read() -> None:
        seen.extend([chunk async for chunk in written.output.read()])

    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await trio.testing.wait_all_tasks_blocked()
            os.write(written.err, b"last words")
            written.output.end()

    assert seen == [(2, b"last words")]
    written.output.close()


@pytest.mark.parametrize("ended", [False, True])
async def test_nothing_is_read_once_it_is_closed(written: Written, ended: bool) -> None:
    """Whoever reads on is told, and touches no descriptor that has another use by then."""
    chunks = written.output.read()
    os.write(written.out, b"x" * CHUNK)
    if ended:
        written.output.end()

    written.output.close()

    with pytest.raises(trio.ClosedResourceError):
        await anext(chunks)


async def test_closing_wakes_a_task_that_waits(written: Written) -> None:
    """It does not wait for what will never come."""

    async def read() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await anext(written.output.read())

    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await trio.testing.wait_all_tasks_blocked()
            written.output.close()
