"""Starts that are broken off: either nothing starts, or what started is ended for certain."""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace

from sortie.model import RunId
from sortie.transports import Command
from sortie.transports.remote.launch import Bounds
from sortie.transports.remote.protocol import Item, LaunchOutput, ScriptOutput
from sortie.transports.remote.transport import ShellTransport
from sortie.transports.ssh.asyncio_thread import AsyncioThread
from sortie.transports.ssh.channel import SshChannel
from sortie.transports.ssh.connection_pool import ConnectionPool
from tests.transports.leftovers import holders
from tests.transports.ssh.pipes import Logins
from tests.transports.ssh.raw import running
from tests.transports.ssh.sshd import Sshd, requires_sshd

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the host's /proc is looked at")

PATIENCE = 60.0


@pytest.fixture
def run_id() -> Iterator[RunId]:
    """Give a run id, and check that nothing of the run is left."""
    cookie = RunId(str(uuid.uuid4()))
    yield cookie
    assert holders(cookie) == []


@pytest.fixture
def command(tmp_path: Path, run_id: RunId) -> Command:
    """Make a command that leaves a file where it has run, and stays."""
    env = {"PATH": os.environ["PATH"], "SORTIE_RUN_ID": run_id}
    argv = ("sh", "-c", "touch ran; exec sleep 1000")
    return Command(argv=argv, cwd=str(tmp_path), env=env, grace=0.2)


@pytest.fixture
async def connections(sshd: Sshd, thread: AsyncioThread) -> AsyncIterator[Counted]:
    """Give the connections to a host, one of which is there."""
    made = Counted(sshd.host, sshd.settings, thread)
    async with running(made, "true") as channel:
        await channel.over.wait()
    made.commands = 0
    yield made
    await made.aclose()


class Counted(ConnectionPool):
    """ConnectionPool that count what is run over them."""

    commands = 0

    async def open(self, command: str, text: bytes, parser: ScriptOutput) -> SshChannel:
        self.commands += 1
        return await super().open(command, text, parser)


async def enter(transport: ShellTransport, command: Command) -> None:
    """Start a program, and be cancelled meanwhile."""
    async with transport.process(command):
        raise AssertionError("not cancelled")


@requires_sshd
async def test_a_session_that_opens_late_starts_nothing(
    sshd: Sshd, connections: Counted, command: Command, tmp_path: Path
) -> None:
    """Who breaks off in time is gone at once, and the host's shell is not told to go on."""
    transport = ShellTransport(sshd.host, connections)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(enter, transport, command)
        while connections.sessions == 0:
            await trio.sleep(0)
        nursery.cancel_scope.cancel()

    with trio.fail_after(PATIENCE):
        while sshd.running() or connections.sessions:
            await trio.sleep(0.01)
    assert not (tmp_path / "ran").exists()


async def test_a_refusal_that_nobody_heard_leaves_nothing_to_do(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host has said that it did not start the program: it is not asked to end it."""
    logins, scope, feed = Logins(tmp_path), trio.CancelScope(), LaunchOutput.feed

    def feed_and_cancel(self: LaunchOutput, number: int, chunk: bytes) -> Iterator[Item]:
        for item in feed(self, number, chunk):
            if (item[2] or "").startswith("missing"):
                scope.cancel()
            yield item

    monkeypatch.setattr(LaunchOutput, "feed", feed_and_cancel)
    with scope:
        await enter(ShellTransport("h", logins.connections), replace(command, argv=("no-such",)))

    assert scope.cancelled_caught
    assert len(logins.commands) == 1
    await logins.quiet()


@requires_sshd
async def test_a_start_may_be_broken_off_at_any_moment(
    sshd: Sshd, connections: Counted, command: Command, run_id: RunId
) -> None:
    """Wherever it is, nothing of it is left when it has been left, or a little later, unstarted."""
    transport = ShellTransport(sshd.host, connections)
    for milliseconds in range(0, 40, 2):
        with trio.move_on_after(milliseconds / 1000):
            async with transport.process(command):
                await trio.sleep_forever()
        left = holders(run_id)
        assert left == [], f"{left} after {milliseconds} ms"
    with trio.fail_after(PATIENCE):
        while sshd.running() or connections.sessions:
            await trio.sleep(0.01)


@requires_sshd
async def test_output_that_nobody_reads_does_not_keep_the_watchdog_from_speaking(
    sshd: Sshd, connections: Counted, command: Command
) -> None:
    """What has filled every buffer is taken when the program is ended: nobody else has to look."""
    chatty = replace(command, argv=("sh", "-c", "yes & exec sleep 1000"))

    async with ShellTransport(sshd.host, connections).process(chatty) as process:
        await trio.sleep(0.5)
        await process.end()

    assert connections.commands == 1


async def test_a_host_that_is_slow_after_its_first_word_is_not_silent(
    tmp_path: Path, command: Command
) -> None:
    """The shell's bound is for its first word, though that is read late; the start has its own."""
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / "head").write_text(f'#!/bin/sh\nsleep 4\nexec {shutil.which("head")} "$@"\n')
    (slow / "head").chmod(0o755)
    logins = Logins(tmp_path, PATH=f"{slow}:{os.environ['PATH']}")
    transport = ShellTransport("h", logins.connections, bounds=Bounds(handshake=3.0))

    async with transport.process(command) as process:
        await process.end()
    await logins.quiet()


async def test_who_breaks_off_a_slow_start_leaves_nothing(tmp_path: Path, command: Command) -> None:
    """The host was told to go on, and trio has not heard of it; it is waited for all the same."""
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / "head").write_text(f'#!/bin/sh\nsleep 0.5\nexec {shutil.which("head")} "$@"\n')
    (slow / "head").chmod(0o755)
    logins = Logins(tmp_path, PATH=f"{slow}:{os.environ['PATH']}")
    transport = ShellTransport("h", logins.connections)

    with trio.move_on_after(0.3) as limit:
        async with transport.process(command):
            raise AssertionError("it has not started")
    assert limit.cancelled_caught
    await logins.quiet()
