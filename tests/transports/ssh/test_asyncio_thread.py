"""The thread between trio and asyncio: calls that always end, news that is never missed."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import threading

import pytest
import trio
import trio.testing

from sortie.transports.ssh.asyncio_thread import (
    AsyncioThread,
    AsyncioThreadGone,
    open_asyncio_thread,
)

PATIENCE = 60.0


def _threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "sortie-ssh"]


def _all_ended() -> bool:
    """Tell whether every asyncio thread ends, given time for its very last lines."""
    for thread in _threads():
        thread.join(PATIENCE)
    return _threads() == []


async def _add(one: int, two: int) -> int:
    await asyncio.sleep(0)
    return one + two


async def _fail() -> None:
    raise OSError("no")


async def test_a_call_gives_the_coroutines_result_or_raises_what_it_raises(
    thread: AsyncioThread,
) -> None:
    """What happens on the asyncio thread reaches the caller as it is."""
    result = await thread.call(_add, 1, 2)

    assert result == 3
    with pytest.raises(OSError, match="no"):
        await thread.call(_fail)


async def test_a_cancelled_call_is_left_after_its_task_has_ended(thread: AsyncioThread) -> None:
    """Nothing of a cancelled call goes on on the asyncio thread."""
    ended = []
    begun = trio.Event()

    async def linger() -> None:
        thread.to_trio(begun.set)
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(0.01)
            ended.append(True)

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(thread.call, linger)
            await begun.wait()
            nursery.cancel_scope.cancel()

    assert ended == [True]


async def test_a_call_under_way_when_the_thread_ends_is_told_so() -> None:
    """A thread that is closed under a call ends that call, and refuses the next."""
    failures: list[AsyncioThreadGone] = []
    begun = trio.Event()

    async def forever(thread: AsyncioThread) -> None:
        thread.to_trio(begun.set)
        await asyncio.sleep(1000)

    async def call(thread: AsyncioThread) -> None:
        try:
            await thread.call(forever, thread)
        except AsyncioThreadGone as exc:
            failures.append(exc)

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery, open_asyncio_thread() as thread:
            nursery.start_soon(call, thread)
            await begun.wait()
    assert len(failures) == 1
    with pytest.raises(AsyncioThreadGone):
        await thread.call(_add, 1, 2)
    assert thread.post(print) is False
    assert _all_ended()


async def test_a_stray_exception_is_logged_and_the_thread_goes_on(
    thread: AsyncioThread, caplog: pytest.LogCaptureFixture
) -> None:
    """A callback that raises costs nothing but a line in the log."""

    def stray() -> None:
        raise ValueError("stray")

    with caplog.at_level(logging.ERROR):
        thread.post(stray)
        result = await thread.call(_add, 1, 2)

    assert result == 3
    assert [record.name for record in caplog.records] == ["sortie.transports.ssh.asyncio_thread"]
    assert caplog.records[0].exc_info is not None


async def test_leaving_is_bounded_where_something_hangs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A thread that blocks is abandoned, with a word in the log."""
    release = threading.Event()
    monkeypatch.setattr("sortie.transports.ssh.asyncio_thread._THREAD_BOUND", 0.05)

    with trio.fail_after(PATIENCE), caplog.at_level(logging.ERROR):
        async with open_asyncio_thread() as thread:
            thread.post(release.wait)

    release.set()
    assert await trio.to_thread.run_sync(_all_ended)
    assert "abandoned" in caplog.text


async def test_what_is_open_is_closed_when_the_thread_ends() -> None:
    """Closers run, all of them, also where one fails."""
    closed = []

    async def close() -> None:
        await asyncio.sleep(0)
        closed.append(True)

    async with open_asyncio_thread() as thread:
        thread.post(thread.closers.add, _fail)
        thread.post(thread.closers.add, close)

    assert closed == [True]


def test_the_thread_ends_with_a_run_that_crashed() -> None:
    """An exception that leaves trio.run takes the thread along."""

    async def crash() -> None:
        async with open_asyncio_thread():
            raise KeyError("crash")

    with pytest.raises(KeyError, match="crash"):
        trio.run(crash)

    assert _all_ended()


def test_an_interrupt_from_the_keyboard_ends_a_call_and_the_run() -> None:
    """KeyboardInterrupt in a waiting call leaves trio.run as it is, and no thread."""

    async def forever() -> None:
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(1000)

    async def main() -> None:
        async with open_asyncio_thread() as thread:
            await thread.call(forever)

    with pytest.raises(KeyboardInterrupt):
        trio.run(main)

    assert _all_ended()


async def test_writing_to_a_link_that_was_cut_is_no_warning(
    thread: AsyncioThread, caplog: pytest.LogCaptureFixture
) -> None:
    """The loss of the link is told by itself; the library's word on each write tells nobody."""
    ours, theirs = socket.socketpair()

    async def write_on() -> None:
        _, writer = await asyncio.open_connection(sock=ours)
        theirs.close()
        for _ in range(20):
            writer.write(b"lost")
        writer.close()

    await thread.call(write_on)

    assert caplog.records == []
