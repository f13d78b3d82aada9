"""Shells that have answered and stay for the next question, on a real sshd."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from sortie.model import HostError, TransportError
from sortie.transports.remote import shell as shell_module
from sortie.transports.remote.protocol import ScriptOutput
from sortie.transports.remote.shell import Shell, ShellQuestion
from sortie.transports.remote.transport import ShellTransport, new_nonce
from sortie.transports.ssh import connection_pool as pool_module
from sortie.transports.ssh.asyncio_thread import AsyncioThread
from sortie.transports.ssh.channel import SshChannel
from sortie.transports.ssh.connection_pool import ConnectionPool
from tests.transports.ssh.raw import output, running
from tests.transports.ssh.sshd import Sshd, requires_sshd, until

pytestmark = [
    requires_sshd,
    pytest.mark.skipif(sys.platform != "linux", reason="the login shell has to be bash"),
]

HELLO = ShellQuestion(attempt="greet", body=[b"whole yes hello"])
HANGING = ShellQuestion(attempt="wait", body=[b"sleep 1000"], bound=0.3)


class Counted(ConnectionPool):
    """ConnectionPool that counts the sessions that are opened."""

    opened = 0

    async def open(self, command: str, text: bytes, parser: ScriptOutput) -> SshChannel:
        self.opened += 1
        return await super().open(command, text, parser)


@pytest.fixture
async def pool(sshd: Sshd, thread: AsyncioThread) -> AsyncIterator[Counted]:
    made = Counted(sshd.host, sshd.settings, thread)
    yield made
    await made.aclose()


@pytest.fixture
def shell(pool: Counted) -> Shell:
    return Shell(pool, new_nonce, handshake=30.0)


def pids(sshd: Sshd) -> list[int]:
    """Return the pids of what runs on the host because of a login."""
    return [int(entry.split()[0]) for entry in sshd.running()]


async def test_questions_in_a_row_need_one_login(
    sshd: Sshd, pool: Counted, shell: Shell, tmp_path: Path
) -> None:
    """What one has changed for itself does not reach the next."""
    changing = ShellQuestion(attempt="change", body=[f"cd '{tmp_path}'; a=1; whole yes".encode()])
    asking = ShellQuestion(attempt="ask", body=[b'whole yes "$PWD${a-}"'])

    said = [(await shell.ask(question)).said for question in (changing, asking, asking)]

    assert said == ["", "/", "/"]
    assert (pool.opened, pool.sessions) == (1, 1)
    with trio.fail_after(60):  # what has answered last may not have exited yet
        while len(pids(sshd)) != 1:
            await trio.sleep(0.01)


async def test_a_no_keeps_the_shell(pool: Counted, shell: Shell) -> None:
    """It is an answer; so is one that fails behind its yes, which is an error."""
    with pytest.raises(TransportError, match="because"):
        await shell.ask(ShellQuestion(attempt="ask", body=[b"no because"]))
    with pytest.raises(TransportError, match="exit 3"):
        await shell.ask(ShellQuestion(attempt="ask", body=[b"yes; echo half; exit 3"]))

    assert (await shell.ask(HELLO)).said == "hello"
    assert pool.opened == 1


async def test_what_hangs_is_ended_with_its_shell(sshd: Sshd, pool: Counted, shell: Shell) -> None:
    """Neither its bound nor a cancellation leaves anything on the host, and others are answered
    meanwhile."""
    await shell.ask(HELLO)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(shell.ask, ShellQuestion(attempt="wait", body=[b"sleep 1000"]))
        await until(lambda: any("sleep" in entry for entry in sshd.running()))
        assert (await shell.ask(HELLO)).said == "hello"
        nursery.cancel_scope.cancel()
    with pytest.raises(HostError, match=r"did not answer in 0\.3 s"):
        await shell.ask(HANGING)

    await until(lambda: not any("sleep" in entry for entry in sshd.running()))
    assert (await shell.ask(HELLO)).said == "hello"


async def test_a_shell_that_is_gone_is_not_asked(sshd: Sshd, pool: Counted, shell: Shell) -> None:
    """Whoever has ended it meanwhile, or cut the link: another one answers."""
    await shell.ask(HELLO)
    for pid in pids(sshd):
        os.kill(pid, signal.SIGKILL)
    await until(lambda: pool.sessions == 0)
    first = await shell.ask(HELLO)
    sshd.kill_links()
    await until(lambda: pool.links == 0)
    second = await shell.ask(HELLO)

    assert (first.said, second.said, pool.opened) == ("hello", "hello", 3)


async def test_a_shell_that_has_waited_long_is_tried_first(
    sshd: Sshd, pool: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that does not answer any more is no trouble of the host."""
    monkeypatch.setattr(shell_module, "_TRUSTED_FOR", 0.0)
    shell = Shell(pool, new_nonce, handshake=4.0)
    await shell.ask(HELLO)
    await shell.ask(HELLO)
    opened = pool.opened
    stopped = pids(sshd)
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)

    said = (await shell.ask(HELLO)).said
    for pid in stopped:
        with suppress(ProcessLookupError):  # the host may have ended it already
            os.kill(pid, signal.SIGCONT)

    assert (opened, said, pool.opened) == (1, "hello", 2)


async def test_shells_give_way_where_the_host_has_no_room(
    sshd: Sshd, pool: Counted, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that is needed is worth more than a login that is saved."""
    monkeypatch.setattr(pool_module, "_MOST_CONNECTIONS", 1)
    monkeypatch.setattr(pool_module, "ROOM_BOUND", 60.0)
    sshd.stop()
    sshd.options["MaxSessions"] = 1
    sshd.start()
    await shell.ask(HELLO)
    assert pool.sessions == 1

    async with running(pool, "echo there") as channel:
        said = b"".join([chunk async for _, chunk in output(channel)])

    assert said == b"there\n"


async def test_an_unwanted_host_keeps_no_shell(sshd: Sshd, pool: Counted, shell: Shell) -> None:
    """Neither one that waits nor one that answers then."""
    await shell.ask(HELLO)
    pool.set_wanted(False)
    await until(lambda: pool.sessions == 0)

    await shell.ask(HELLO)

    await until(lambda: pool.sessions == 0 and not sshd.running())


async def test_a_program_is_looked_for_where_the_login_has_it_now(
    sshd: Sshd, pool: Counted, tmp_path: Path
) -> None:
    """A PATH that was mended in the meantime counts without a restart."""
    transport = ShellTransport(sshd.host, pool)
    tool = tmp_path / "bin" / "a-tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    with pytest.raises(TransportError):
        await transport.resolve_program("a-tool")

    (sshd.home / ".bashrc").write_text(f"PATH=$PATH:{tool.parent}\n")

    assert await transport.resolve_program("a-tool") == str(tool)
