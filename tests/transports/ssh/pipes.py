"""A stand-in for a host: logins run on this machine, over pipes, with any login shell.

It is to SshTransport what ConnectionPool is, without SSH. As sshd does, it runs a command through
the login shell in a session of its own and closes its stdin when it has exited.
Its verdict is ``running``: what the logins have left.
"""

from __future__ import annotations

import os
import signal
import subprocess
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import cast

import psutil
import trio

from sortie.transports.ssh.asyncio_thread import AsyncioThread
from sortie.transports.ssh.channel import Channel
from sortie.transports.ssh.connection_pool import ConnectionPool
from sortie.transports.ssh.conversation import Conversation
from sortie.transports.ssh.login_limit import LoginLimit
from sortie.transports.ssh.protocol import GO, Dialogue
from sortie.transports.ssh.receive_buffer import ReceiveBuffer
from sortie.transports.ssh.session import Session

_MARK = "SORTIE_TEST_LOGIN"


class Direct:
    """It is to a channel what AsyncioThread is, where there is no thread but ours."""

    def post(self, fn: Callable[..., object], *args: object) -> bool:
        fn(*args)
        return True

    to_trio = post

    async def call(self, fn: Callable[..., Awaitable[object]], *args: object) -> object:
        return await fn(*args)


class PipeSession:
    """It is to a channel what Session is; what it moves are the pipes of a login."""

    def __init__(self, process: trio.Process, nursery: trio.Nursery, buffer: ReceiveBuffer) -> None:
        self._process = process
        self._nursery = nursery
        self._buffer = buffer
        self._to_write, self._written = trio.open_memory_channel[bytes](10_000)
        self._resumed = trio.Event()
        self._closed = False
        self._scopes: list[trio.CancelScope] = []

    def write(self, data: bytes) -> None:
        with suppress(trio.ClosedResourceError, trio.BrokenResourceError):
            self._to_write.send_nowait(data)

    async def send(self, data: bytes) -> bool:
        for at in range(0, max(len(data), 1), 4096):
            while self._written.statistics().current_buffer_used:
                await trio.sleep(0.001)
            if self._closed:
                return False
            self.write(bytes(data[at : at + 4096]))
        return True

    def write_eof(self) -> None:
        self._closed = True
        self._to_write.close()

    def abort(self) -> None:
        self.write_eof()

    def kill(self) -> None:
        """Do nothing, as hosts do that pass no signals on."""

    def beat(self, every: float, data: bytes = b"\n") -> None:
        self._start(self._beat, every, data)

    def resume(self) -> None:
        if self._buffer.stalled and self._buffer.has_room:
            self._buffer.stalled = False
            self._resumed.set()
            self._resumed = trio.Event()

    def begin(self) -> None:
        """Run the tasks that move the bytes."""
        self._start(self._feed)
        self._start(self._live)
        if self._buffer.dialogue is not None:
            self.write(self._buffer.dialogue.script)

    def close(self) -> None:
        """Move no more bytes."""
        self.write_eof()
        for scope in self._scopes:
            scope.cancel()

    def _start(self, move: Callable[..., Awaitable[None]], *args: object) -> None:
        """Run a task that goes on where what surrounds it is cancelled."""
        scope = trio.CancelScope(shield=True)
        self._scopes.append(scope)

        async def run() -> None:
            with scope:
                await move(*args)

        self._nursery.start_soon(run)

    async def _beat(self, every: float, data: bytes) -> None:
        while True:
            await trio.sleep(every)
            self.write(data)

    async def _feed(self) -> None:
        assert self._process.stdin is not None
        async with self._process.stdin:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                async for data in self._written:
                    await self._process.stdin.send_all(data)
        self._closed = True

    async def _live(self) -> None:
        """Tell of the output, the exit, and, when all of it has come, the end."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read, 1, self._process.stdout)
            nursery.start_soon(self._read, 2, self._process.stderr)
            nursery.start_soon(self._watch)
        self._buffer.end(None)

    async def _read(self, number: int, stream: trio.abc.ReceiveStream) -> None:
        async with stream:
            async for chunk in stream:
                if self._buffer.receive(number, bytes(chunk)):
                    self.write(GO)
                    assert self._buffer.dialogue is not None
                    if self._buffer.dialogue.beat is not None:
                        self.beat(self._buffer.dialogue.beat)
                if self._buffer.overflows:
                    self._buffer.stalled = True
                    await self._resumed.wait()

    async def _watch(self) -> None:
        code = await self._process.wait()
        if code >= 0:
            self._buffer.exit_status = code
        else:
            self._buffer.exit_signal = signal.Signals(-code).name.removeprefix("SIG")
        self._buffer.exit()
        self.write_eof()


class PipeChannel(Channel):
    """A login's channel, as SshTransport has it."""

    def __init__(self, process: trio.Process, buffer: ReceiveBuffer, session: PipeSession) -> None:
        super().__init__(cast(AsyncioThread, Direct()), buffer, cast(Session, session))
        self.pid = process.pid


class Logins:
    """A host of our own making; ``shell`` is its login shell, ``sh`` its /bin/sh."""

    def __init__(
        self, home: Path, shell: Sequence[str] = ("sh",), sh: str = "/bin/sh", **env: str
    ) -> None:
        self.shell = tuple(shell)
        self.sh = sh
        self.name = str(uuid.uuid4())
        self.commands: list[str] = []
        self.channels: list[PipeChannel] = []
        self.login_limit = LoginLimit("h")
        self.first_links = 1
        self.env: Mapping[str, str] = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            _MARK: self.name,
            **env,
        }

    @property
    def connections(self) -> ConnectionPool:
        """This host for SshTransport."""
        return cast(ConnectionPool, self)

    @asynccontextmanager
    async def channel(
        self, command: str, dialogue: Dialogue | None = None
    ) -> AsyncIterator[PipeChannel]:
        """Log in, and run a command through the login shell."""
        self.commands.append(command)
        process = await trio.lowlevel.open_process(
            [*self.shell, "-c", command.replace("/bin/sh", self.sh)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=self.env,
            cwd=self.env["HOME"],
        )
        # By hand, so that what the block raises is not wrapped in a group.
        manager = trio.open_nursery()
        nursery = await manager.__aenter__()
        buffer = ReceiveBuffer(cast(AsyncioThread, Direct()), lambda: None, dialogue)
        session = PipeSession(process, nursery, buffer)
        channel = PipeChannel(process, buffer, session)
        self.channels.append(channel)
        session.begin()
        try:
            yield channel
        finally:
            session.close()
            nursery.cancel_scope.shield = True
            await manager.__aexit__(None, None, None)

    def take_shell(self) -> None:
        """Have no shell that was kept, so that every question has a login of its own."""

    def keep_shell(self, _: Conversation) -> bool:
        """Keep none."""
        return False

    def running(self) -> list[str]:
        """Return what still runs because of a login, but for what cleared its environment."""
        found = []
        for process in self._processes():
            with suppress(psutil.Error):  # it has ended meanwhile
                found.append(f"{process.pid} {' '.join(process.cmdline())}")
        return found

    async def quiet(self) -> None:
        """Wait until nothing runs because of a login."""
        while self.running():
            await trio.sleep(0.005)

    def _processes(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.environ().get(_MARK) == self.name:
                    yield process
