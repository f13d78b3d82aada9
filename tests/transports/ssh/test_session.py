"""One session as asyncssh drives it: what is written when, and the end of the lease."""

from __future__ import annotations

import asyncio
from typing import cast

import asyncssh

from sortie.transports.ssh import session as session_module
from sortie.transports.ssh.asyncio_thread import AsyncioThread
from sortie.transports.ssh.protocol import Dialogue
from sortie.transports.ssh.receive_buffer import ReceiveBuffer
from sortie.transports.ssh.session import Session
from tests.transports.ssh.pipes import Direct


class Host:
    """It is to a session what asyncssh's channel is, and notes what it is told."""

    def __init__(self) -> None:
        self.told: list[bytes | str] = []

    def write(self, data: bytes) -> None:
        self.told.append(data)

    def write_eof(self) -> None:
        self.told.append("eof")

    def set_write_buffer_limits(self, high: int) -> None:
        assert high == 0


def begin(dialogue: Dialogue | None) -> tuple[Session, Host]:
    """Open a session."""
    buffer = ReceiveBuffer(cast(AsyncioThread, Direct()), lambda: None, dialogue)
    session, host = Session("h", buffer), Host()
    session.connection_made(cast("asyncssh.SSHClientChannel[bytes]", host))
    session.session_started()
    return session, host


def test_the_script_is_given_and_answered_at_once() -> None:
    """And the beats begin with GO, as the lease does."""

    async def main() -> list[bytes | str]:
        session, host = begin(Dialogue(b"script", "n", beat=0.01))
        session.data_received(b"\1n here 1 - \n", None)
        while len(host.told) < 4:
            await asyncio.sleep(0.01)
        session.connection_lost(None)
        return host.told[:4]

    assert asyncio.run(main()) == [b"script", b"go\n", b"\n", b"\n"]


def test_before_a_stdin_there_is_no_beat() -> None:
    """It would be taken for a part of it."""

    async def main() -> list[bytes | str]:
        session, host = begin(Dialogue(b"script", "n"))
        session.data_received(b"\1n here 1 - \n", None)
        await asyncio.sleep(0.05)
        return host.told

    assert asyncio.run(main()) == [b"script", b"go\n"]


def test_the_lease_ends_a_moment_after_the_exit() -> None:
    """Also on a host that does not close a command's stdin when it has exited."""

    async def main() -> list[bytes | str]:
        session, host = begin(None)
        session.exit_status_received(3)
        assert host.told == []
        while not host.told:
            await asyncio.sleep(0.01)
        return host.told

    assert asyncio.run(main()) == ["eof"]


def test_a_channel_that_closes_at_once_is_not_written_to() -> None:
    """Its end was the lease's."""

    async def main() -> list[bytes | str]:
        session, host = begin(None)
        session.exit_signal_received("KILL", False, "", "")
        session.connection_lost(None)
        await asyncio.sleep(2 * session_module.CLOSING)
        return host.told

    assert asyncio.run(main()) == []
