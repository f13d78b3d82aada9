"""A stdin that is written while its program runs."""

from __future__ import annotations

import pytest
import trio
import trio.abc
import trio.testing

from sortie.transports import Exit, Process, Stdin, Transport
from tests.contract.transport.launching import Launch, everything

CHUNK = 65536
MOST_HELD = 64 * CHUNK
"""Bytes that may be on their way to a program that does not read."""


def stdin_of(process: Process) -> trio.abc.SendStream:
    """Return the stdin that was asked for."""
    assert process.stdin is not None
    return process.stdin


async def fill(stdin: trio.abc.SendStream, seconds: float = 1.0) -> int:
    """Send until the program's stdin has taken nothing for a while; return the bytes it took."""
    sent = 0
    while sent <= 2 * MOST_HELD:
        with trio.move_on_after(seconds) as patience:
            await stdin.send_all(bytes(CHUNK))
        if patience.cancelled_caught:
            break
        sent += CHUNK
    return sent


async def test_each_line_is_answered_before_the_next_is_written(
    transport: Transport, launch: Launch
) -> None:
    """What is sent arrives at once, and nothing waits for more or for the end."""
    lines = [b'{"question": %d}\n' % number for number in range(100)]
    answers = []

    async with transport.process(launch("cat", stdin=Stdin.PIPE)) as process:
        output = process.output()
        for line in lines:
            await stdin_of(process).send_all(line)
            answer = b""
            while not answer.endswith(b"\n"):
                answer += (await anext(output))[1]
            answers.append(answer)

    assert answers == lines


async def test_what_is_large_goes_both_ways_at_once(transport: Transport, launch: Launch) -> None:
    """Every byte comes back, whatever it is, and the end of the stdin is the program's end."""
    content = bytes(range(256)) * (8 << 12)

    async with transport.process(launch("cat", stdin=Stdin.PIPE)) as process:

        async def send() -> None:
            async with stdin_of(process) as stdin:
                await stdin.send_all(content)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            read = await everything(process)
        exit_ = await process.wait()

    assert read == {1: content, 2: b""}
    assert exit_ == Exit(status=0)


async def test_closing_is_the_end_of_the_stdin(transport: Transport, launch: Launch) -> None:
    """What was sent before is read; closing may be repeated, and nothing can be sent after it."""
    async with transport.process(launch("cat", stdin=Stdin.PIPE)) as process:
        stdin = stdin_of(process)
        await stdin.send_all(b"last")
        await stdin.aclose()
        await stdin.aclose()
        with pytest.raises(trio.ClosedResourceError):
            await stdin.send_all(b"more")
        read = await everything(process)
        exit_ = await process.wait()
        with pytest.raises(trio.ClosedResourceError):
            await stdin.send_all(b"more")

    assert (read[1], exit_) == (b"last", Exit(status=0))


async def test_an_exit_breaks_the_stdin(transport: Transport, launch: Launch) -> None:
    """Sending fails from the exit on, and closing does not."""
    async with transport.process(launch.sh("exit 3", stdin=Stdin.PIPE)) as process:
        await process.wait()
        with pytest.raises(trio.BrokenResourceError):
            await fill(stdin_of(process))
        await stdin_of(process).aclose()
        exit_ = await process.wait()

    assert exit_ == Exit(status=3)


async def test_an_exit_breaks_what_is_being_sent(transport: Transport, launch: Launch) -> None:
    """Who waits for a program to read learns that it has exited."""
    script = "echo ready; sleep 0.2; exit 3"
    async with transport.process(launch.sh(script, stdin=Stdin.PIPE)) as process:
        assert await anext(process.output()) == (1, b"ready\n")
        with trio.fail_after(60), pytest.raises(trio.BrokenResourceError):
            await stdin_of(process).send_all(bytes(2 * MOST_HELD))

        assert await process.wait() == Exit(status=3)


async def test_a_program_may_close_its_stdin(transport: Transport, launch: Launch) -> None:
    """Sending fails then, though the program goes on; and it is ended as others are."""
    script = "exec 0<&-; echo closed; exec sleep 1000"
    async with transport.process(launch.sh(script, stdin=Stdin.PIPE)) as process:
        assert await anext(process.output()) == (1, b"closed\n")
        with trio.fail_after(60), pytest.raises(trio.BrokenResourceError):
            await fill(stdin_of(process))
        exit_ = await process.end()

    assert exit_ == Exit(signal=15, by_us=True)


async def test_a_program_that_does_not_read_holds_up_who_sends(
    transport: Transport, launch: Launch
) -> None:
    """It takes what pipes hold and no more; who waits can give up, and the program is ended."""
    async with transport.process(launch("sleep", "1000", stdin=Stdin.PIPE, grace=60)) as process:
        sent = await fill(stdin_of(process))
        exit_ = await process.end()
        with pytest.raises(trio.BrokenResourceError):
            await stdin_of(process).send_all(b"more")

    assert 0 < sent <= MOST_HELD
    assert exit_ == Exit(signal=15, by_us=True)  # within the grace time


async def test_a_program_that_does_not_read_can_be_read(
    transport: Transport, launch: Launch
) -> None:
    """Its output comes and its exit is told, while somebody waits to send."""
    script = "head -c 3000000 /dev/zero; exit 3"
    broken = []

    async with transport.process(launch.sh(script, stdin=Stdin.PIPE)) as process:

        async def send() -> None:
            try:
                await stdin_of(process).send_all(bytes(2 * MOST_HELD))
            except trio.BrokenResourceError:
                broken.append(True)

        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(send)
                await trio.testing.wait_all_tasks_blocked(0.01)
                read = await everything(process)
                exit_ = await process.wait()

    assert len(read[1]) == 3_000_000
    assert exit_ == Exit(status=3)
    assert broken == [True]


async def test_a_block_is_left_with_bytes_that_were_not_sent(
    transport: Transport, launch: Launch
) -> None:
    """Leaving takes no longer for them, and breaks what is still being sent, and all after it."""
    caught: list[type[Exception]] = []

    async def send(stdin: trio.abc.SendStream) -> None:
        try:
            await stdin.send_all(bytes(2 * MOST_HELD))
        except trio.BrokenResourceError as exc:
            caught.append(type(exc))

    command = launch("sleep", "1000", stdin=Stdin.PIPE, grace=60)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery, transport.process(command) as process:
            stdin = stdin_of(process)
            nursery.start_soon(send, stdin)
            await trio.testing.wait_all_tasks_blocked(0.01)

    assert caught == [trio.BrokenResourceError]
    with pytest.raises((trio.BrokenResourceError, trio.ClosedResourceError)):
        await stdin.send_all(b"more")


async def test_sending_can_be_cancelled_with_the_block(
    transport: Transport, launch: Launch
) -> None:
    """A deadline over a turn ends it while it sends."""
    with trio.fail_after(60), trio.move_on_after(0.5) as turn:
        async with transport.process(
            launch("sleep", "1000", stdin=Stdin.PIPE, grace=60)
        ) as process:
            await stdin_of(process).send_all(bytes(2 * MOST_HELD))

    assert turn.cancelled_caught


async def test_one_task_sends_at_a_time(transport: Transport, launch: Launch) -> None:
    """A second sender is refused, as lines would be mixed; who sends while it is closed learns."""
    caught: list[type[Exception]] = []

    async def send(stdin: trio.abc.SendStream) -> None:
        try:
            await stdin.send_all(bytes(2 * MOST_HELD))
        except trio.ClosedResourceError as exc:
            caught.append(type(exc))

    async with transport.process(launch("sleep", "1000", stdin=Stdin.PIPE, grace=60)) as process:
        stdin = stdin_of(process)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send, stdin)
            await trio.testing.wait_all_tasks_blocked(0.01)
            with pytest.raises(trio.BusyResourceError):
                await stdin.send_all(b"more")
            await stdin.aclose()

    assert caught == [trio.ClosedResourceError]
