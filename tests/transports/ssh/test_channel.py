"""One command on a host: its streams, its end, and the beats that keep it alive."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator

import psutil
import pytest
import trio
import trio.testing

from sortie.model import HostTrouble
from sortie.transports.remote.channel import PAUSE_ABOVE
from sortie.transports.ssh.asyncio_thread import AsyncioThread
from sortie.transports.ssh.channel import SshChannel
from sortie.transports.ssh.connection_pool import ConnectionPool
from tests.transports.ssh.raw import output, running
from tests.transports.ssh.sshd import Sshd, requires_sshd, until

pytestmark = requires_sshd
PATIENCE = 60.0


@pytest.fixture
async def connections(sshd: Sshd, thread: AsyncioThread) -> AsyncIterator[ConnectionPool]:
    """Give the connections to a running host."""
    made = ConnectionPool(sshd.host, sshd.settings, thread)
    yield made
    await made.aclose()


async def everything(channel: SshChannel) -> dict[int, bytes]:
    """Read a channel's output to its end."""
    read = {1: b"", 2: b""}
    async for number, chunk in output(channel):
        read[number] += chunk
    return read


async def test_both_streams_and_the_status_are_told(connections: ConnectionPool) -> None:
    """All bytes come with the number of their stream, and then the exit status."""
    async with running(connections, "printf one; printf two >&2; exit 7") as channel:
        read = await everything(channel)

    assert read == {1: b"one", 2: b"two"}
    assert (channel.exit_status, channel.exit_signal, channel.lost) == (7, None, None)
    assert channel.closed.is_set()


async def test_a_death_by_signal_is_told_as_one(connections: ConnectionPool) -> None:
    """A signal comes by its name and without a status."""
    async with running(connections, "kill -s KILL $$") as channel:
        await everything(channel)

    assert (channel.exit_status, channel.exit_signal, channel.lost) == (None, "KILL", None)


async def test_any_bytes_pass_both_ways(connections: ConnectionPool) -> None:
    """Bytes that are no text, and more of them than any window takes, come back as they went."""
    data = os.urandom(3 << 20)

    async with running(connections, "exec cat") as channel, trio.open_nursery() as nursery:

        async def feed() -> None:
            for start in range(0, len(data), 100_000):
                await channel.send(data[start : start + 100_000])
            channel.write_eof()

        nursery.start_soon(feed)
        read = await everything(channel)

    assert read[1] == data
    assert channel.exit_status == 0


async def test_who_sends_waits_for_the_host(connections: ConnectionPool) -> None:
    """What the host does not take is not sent; what it never will take is not waited for."""
    sent: list[bool] = []

    async with running(connections, "echo $$; exec sleep 1000") as channel:

        async def send() -> None:
            sent.append(await channel.send(b"x" * (8 << 20)))

        pid = int((await anext(output(channel)))[1])
        async with trio.open_nursery() as nursery:
            with trio.move_on_after(0.1) as limit:
                await send()
            nursery.start_soon(send)
            psutil.Process(pid).kill()
            await everything(channel)
        await send()

    assert limit.cancelled_caught
    # What was under way when the command died, its sshd may have taken and dropped.
    assert len(sent) == 2
    assert not sent[1]


async def test_the_command_has_no_terminal_and_nothing_of_our_environment(
    connections: ConnectionPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a terminal nor variables of this process reach the host."""
    monkeypatch.setenv("LC_SORTIE", "leaked")

    async with running(connections, '[ -t 0 ] || printf "none $LC_SORTIE"') as channel:
        read = await everything(channel)

    assert read[1] == b"none "


async def test_unread_output_holds_the_command_back_and_nobody_else(
    connections: ConnectionPool,
) -> None:
    """A channel that is not read keeps a bounded amount here; others go on; nothing is lost."""
    amount = 20_000_000
    async with running(connections, f"head -c {amount} /dev/zero") as stalled:
        await until(lambda: stalled._paused)
        async with running(connections, "echo free") as other:
            assert await everything(other) == {1: b"free\n", 2: b""}
        assert stalled._received <= 2 * PAUSE_ABOVE

        read = 0
        async for _, chunk in output(stalled):
            read += len(chunk)
            assert stalled._received - read <= 2 * PAUSE_ABOVE + 32768

    assert read == amount
    assert stalled.exit_status == 0


async def test_a_command_that_closes_its_output_keeps_its_stdin(
    connections: ConnectionPool,
) -> None:
    """The end of its output ends neither its lease nor the channel."""
    command = "exec >&- 2>&-; read -r line; exit ${#line}"
    async with running(connections, command) as channel, trio.open_nursery() as nursery:
        nursery.start_soon(everything, channel)
        with trio.move_on_after(0.2) as limit:
            await channel.over.wait()
        assert limit.cancelled_caught
        channel.write(b"abc\n")
        await channel.over.wait()

    assert channel.exit_status == 3


async def test_beats_come_while_trio_is_busy(connections: ConnectionPool, sshd: Sshd) -> None:
    """A trio thread that does not return to its loop does not end a lease."""
    beaten = sshd.home / "beaten"
    counting = f"for i in 1 2 3 4 5; do IFS= read -r _ || exit 1; done; echo y > {beaten}"

    async with running(connections, counting) as channel:
        channel.beat(0.01)
        deadline = time.monotonic() + PATIENCE
        while not beaten.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert beaten.exists()
        await everything(channel)

    assert channel.exit_status == 0


async def test_leaving_the_block_ends_the_commands_stdin(
    connections: ConnectionPool, sshd: Sshd
) -> None:
    """An aborted channel is over at once here; there, the command sees the end of its lease."""
    seen = sshd.home / "seen"

    async with running(connections, f"cat; echo y > {seen}") as channel:
        pass

    assert channel.closed.is_set()
    await channel.over.wait()
    assert await everything(channel) == {1: b"", 2: b""}
    assert (channel.exit_status, channel.lost) == (None, None)
    await until(seen.exists)


async def test_a_lost_link_is_told_as_a_drop(connections: ConnectionPool, sshd: Sshd) -> None:
    """Without status and signal there is a reason; what came before it is still read."""
    async with running(connections, "printf before; exec cat") as channel:
        assert await anext(output(channel)) == (1, b"before")
        sshd.kill_links()
        await channel.over.wait()
        assert [item async for item in output(channel)] == []

    assert (channel.exit_status, channel.exit_signal) == (None, None)
    assert channel.lost is not None
    assert channel.lost.trouble is HostTrouble.DROPPED
    assert sshd.host in str(channel.lost)
