"""A stand-in for a host: logins run on this machine, over pipes, with any login shell.

It is to ShellTransport what ConnectionPool is, without SSH. As sshd does, it runs a command through
the login shell in a session of its own and closes its stdin when it has exited.
Its verdict is ``running``: what the logins have left.
"""

from __future__ import annotations

import os
import signal
import subprocess
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

import asyncssh
import psutil
import trio

from sortie.transports.remote.login_limit import LoginLimit
from sortie.transports.remote.protocol import ScriptOutput
from sortie.transports.remote.remote_script import RemoteScript
from sortie.transports.ssh.asyncio_thread import AsyncioThread
from sortie.transports.ssh.channel import SshChannel
from sortie.transports.ssh.connection_pool import ConnectionPool

_MARK = "SORTIE_TEST_LOGIN"


class Direct:
    """It is to a channel what AsyncioThread is, where there is no thread but ours."""

    def post(self, fn: Callable[..., object], *args: object) -> bool:
        fn(*args)
        return True

    to_trio = post

    def later(self, seconds: float, fn: Callable[[], object]) -> trio.CancelScope:
        async def run() -> None:
            await trio.sleep(seconds)
            fn()

        return self.start(run)

    def start(self, move: Callable[..., Awaitable[None]], *args: object) -> trio.CancelScope:
        """Run a task that goes on where what surrounds it is cancelled."""
        scope = trio.CancelScope(shield=True)

        async def run() -> None:
            with scope:
                await move(*args)

        trio.lowlevel.spawn_system_task(run)
        return scope


class Pipes:
    """It is to a channel what asyncssh's is; what it moves are the pipes of a login."""

    def __init__(self, process: trio.Process, thread: Direct, channel: SshChannel) -> None:
        self.to_write, self._written = trio.open_memory_channel[bytes](10_000)
        self._process = process
        self._channel = channel
        self._resumed: trio.Event | None = None
        self._moves = [thread.start(self._feed), thread.start(self._live)]

    def set_write_buffer_limits(self, _: int) -> None:
        """Have no limit of its own."""

    def write(self, data: bytes) -> None:
        with suppress(trio.ClosedResourceError, trio.BrokenResourceError):
            self.to_write.send_nowait(data)

    def write_eof(self) -> None:
        self.to_write.close()

    abort = write_eof

    def kill(self) -> None:
        """Do nothing, as hosts do that pass no signals on."""

    def pause_reading(self) -> None:
        self._resumed = trio.Event()

    def resume_reading(self) -> None:
        if self._resumed is not None:
            self._resumed.set()
            self._resumed = None

    def close(self) -> None:
        """Move no more bytes."""
        self.write_eof()
        for scope in self._moves:
            scope.cancel()

    async def _feed(self) -> None:
        assert self._process.stdin is not None
        async with self._process.stdin:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                async for data in self._written:
                    await self._process.stdin.send_all(data)
        self._channel.write_eof()

    async def _live(self) -> None:
        """Tell of the output, the exit, and, when all of it has come, the end."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read, None, self._process.stdout)
            nursery.start_soon(self._read, asyncssh.EXTENDED_DATA_STDERR, self._process.stderr)
            nursery.start_soon(self._watch)
        self._channel.connection_lost(None)

    async def _read(self, kind: int | None, stream: trio.abc.ReceiveStream) -> None:
        async with stream:
            async for chunk in stream:
                self._channel.data_received(bytes(chunk), kind)
                if self._resumed is not None:
                    await self._resumed.wait()

    async def _watch(self) -> None:
        code = await self._process.wait()
        if code >= 0:
            self._channel.exit_status_received(code)
        else:
            name = signal.Signals(-code).name.removeprefix("SIG")
            self._channel.exit_signal_received(name, False, "", "")


class PipeChannel(SshChannel):
    """A login's channel, as ShellTransport has it."""

    def __init__(self, process: trio.Process, text: bytes, parser: ScriptOutput) -> None:
        direct = Direct()
        super().__init__(cast(AsyncioThread, direct), "h", text, parser, lambda: None)
        self.pid = process.pid
        self.pipes = Pipes(process, direct, self)
        self.connection_made(cast("asyncssh.SSHClientChannel[bytes]", self.pipes))
        self.session_started()

    async def send(self, data: bytes | bytearray | memoryview) -> bool:
        for at in range(0, max(len(data), 1), 4096):
            while self.pipes.to_write.statistics().current_buffer_used:
                await trio.sleep(0.001)
            if self._stdin_ended:
                return False
            self.write(bytes(data[at : at + 4096]))
        return True

    def abort(self) -> None:
        super().abort()
        self.pipes.close()


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
        self.host = "h"
        self.login_limit = LoginLimit("h")
        self.generation = 1
        self.lends_shells = self.is_relayed = False
        self.env: Mapping[str, str] = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            _MARK: self.name,
            **env,
        }

    @property
    def connections(self) -> ConnectionPool:
        """This host for ShellTransport."""
        return cast(ConnectionPool, self)

    async def open(self, command: str, text: bytes, parser: ScriptOutput) -> PipeChannel:
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
        channel = PipeChannel(process, text, parser)
        self.channels.append(channel)
        return channel

    def take_shell(self) -> None:
        """Have no shell that was kept, so that every question has a login of its own."""

    def keep_shell(self, _: RemoteScript) -> bool:
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
