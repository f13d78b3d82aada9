"""Login files that leave something in the background: it holds the output of every session."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import trio

from sortie.model import RunId
from sortie.transports import Exit
from sortie.transports.remote.transport import ShellTransport
from sortie.transports.ssh.asyncio_thread import AsyncioThread
from sortie.transports.ssh.connection_pool import ConnectionPool
from tests.contract.transport.launching import Launch, everything
from tests.run_ids import own_run_id
from tests.transports.ssh.sshd import Keys, Sshd, requires_sshd, sshd_running, until

pytestmark = [
    requires_sshd,
    pytest.mark.skipif(sys.platform != "linux", reason="the login shell has to be bash"),
]

PATIENCE = 60.0
"""Seconds, of which nothing here may need a part that can be told from the noise."""


@pytest.fixture
def host(tmp_path: Path, keys: Keys) -> Iterator[Sshd]:
    """Give a host whose login leaves a process on the output of each session."""
    stay = tmp_path / "stay"
    stay.touch()
    with sshd_running(tmp_path / "host", keys) as sshd:
        loop = f"(while [ -e {stay} ]; do sleep 0.1; done) &\n"
        (sshd.home / ".bashrc").write_text(loop)
        yield sshd
        stay.unlink()


@pytest.fixture
async def connections(host: Sshd, thread: AsyncioThread) -> AsyncIterator[ConnectionPool]:
    made = ConnectionPool(host.host, host.settings, thread)
    yield made
    await made.aclose()


async def test_a_complete_answer_ends_a_question(
    host: Sshd, connections: ConnectionPool, tmp_path: Path
) -> None:
    """Whoever holds the channel open: the answer says itself that it is all, and its shell is asked
    again."""
    (tmp_path / "file").write_bytes(b"its content")
    transport = ShellTransport(host.host, connections)

    with trio.fail_after(PATIENCE):
        inside = await transport.files.contained(str(tmp_path), str(tmp_path / "host"))
        content = await transport.files.read_file(str(tmp_path), "file", 100)

    assert inside
    assert content == b"its content"
    assert connections.sessions == 1


async def test_a_turn_ends_with_its_last_word(
    host: Sshd, connections: ConnectionPool, tmp_path: Path
) -> None:
    """All output is read, and neither the program's end nor a sweep waits for the other's."""
    told: list[str] = []
    transport = ShellTransport(host.host, connections, notice=told.append)
    launch = Launch(own_run_id("a-run"), str(tmp_path))
    command = launch("sh", "-c", "head -c 300000 /dev/zero; echo bad >&2; exit 3", grace=600.0)

    with trio.fail_after(PATIENCE):
        for _ in range(2):
            async with transport.process(command) as process:
                read = await everything(process)
                exit_ = await process.wait()
        swept = await transport.sweep([RunId("another")], grace=0.0)

    assert read == {1: bytes(300_000), 2: b"bad\n"}
    assert exit_ == Exit(status=3)
    assert swept == 0
    assert len(told) == 1
    assert ".bashrc" in told[0]
    assert host.host in told[0]
    await until(lambda: connections.sessions == 0)
