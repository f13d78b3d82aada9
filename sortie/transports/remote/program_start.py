"""The start of a program on a remote host: what its script says there, and what is sent to it."""

from __future__ import annotations

import os
from contextlib import suppress

import trio

from sortie.model import HostError, ProcessIdentity
from sortie.transports.remote.fence import require
from sortie.transports.remote.launch import (
    Bounds,
    RootProcess,
    no_start,
    refusal,
    root_process_of,
    slow_shell,
    struck,
)
from sortie.transports.remote.namespaces import NamespaceInit
from sortie.transports.remote.protocol import GO
from sortie.transports.remote.remote_launch import RemoteLaunch
from sortie.transports.remote.remote_script import RemoteScript
from sortie.transports.remote.shell import Shell
from sortie.transports.remote.unconfirmed_runs import Remains

_STDIN_PIECE = 256 * 1024  # bytes that have to be taken in the time for one message


class ProgramStart:
    """A program that is to start on a host."""

    def __init__(self, shell: Shell, launch: RemoteLaunch, script: RemoteScript) -> None:
        self._shell = shell
        self._host = shell.host
        self._launch = launch
        self._script = script
        self._channel = script.channel
        self._root: RootProcess | None = None
        self._init: NamespaceInit | None = None
        self._marked = True
        self._may_have_started = False
        self._refused = False

    @property
    def identity(self) -> ProcessIdentity:
        """The root process."""
        assert self._root is not None
        return self._root.identity

    @property
    def remains(self) -> Remains | None:
        """What tells whether anything of it is left; None where it has no namespace."""
        if self._launch.namespaces is None or self._root is None:
            return None
        return Remains(
            pid=self._root.identity.pid,
            ticks=self._root.ticks,
            init=self._init,
            wrappers=self._launch.command.wrappers,
        )

    async def _send_stdin(self, bounds: Bounds) -> None:
        """Send what the program is to read, if anything, which is stored before it starts."""
        self._use_lease()
        self._may_have_started = True
        if self._launch.stdin:
            self._channel.write(GO)
            await self._expect("send", bounds.start)
            await self._send(self._launch.stdin, bounds.start)
            await self._expect("stored", bounds.start)

    def _use_lease(self) -> None:
        """Have the link carry signs of life only while the lease holds. Raises LeaseLost where it
        is over."""
        require(self._launch.fence)
        if self._launch.fence is not None:
            self._channel.lease = self._launch.fence.lease

    async def _expect(self, expected: str, bound: float) -> str:
        """Return what follows a message. Raises HostError where it does not come in time."""
        with trio.move_on_after(bound):
            return await self._hear(expected)
        raise slow_shell(self._host, bound)

    async def _send(self, content: bytes, bound: float) -> None:
        """Write to the host's shell. Raises HostError where it does not take a piece in time."""
        for at in range(0, len(content), _STDIN_PIECE):
            with trio.move_on_after(bound) as limit:
                await self._channel.send(content[at : at + _STDIN_PIECE])
            if limit.cancelled_caught:
                raise slow_shell(self._host, bound)

    async def _hear(self, expected: str) -> str:
        """Wait for the script's next message, which has to be this one; return what follows it."""
        found = await self._script.next()
        if found is None:
            raise self._no_start()
        return self._heard(expected, found[1])

    def _heard(self, expected: str, message: str) -> str:
        """Note a message, which has to be this one; return what follows it."""
        self._note(message)
        name, _, rest = message.partition(" ")
        if name != expected:
            said = struck(os.fsencode(rest), self._launch.command).decode("utf-8", "replace")
            raise refusal(self._host, self._launch.command, name, said)
        return rest

    def _no_start(self) -> HostError:
        return self._channel.lost or no_start(
            self._host, self._launch, self._script.noise, self._channel.exit_status
        )

    def _note(self, message: str) -> None:
        name, _, rest = message.partition(" ")
        match name:
            case "here" | "root":
                with suppress(ValueError, OverflowError):
                    self._root = root_process_of(rest)
            case "started":
                self._marked = bool(rest)
            case "namespace":
                init, _, born = rest.partition(" ")
                with suppress(ValueError, OverflowError):
                    self._init = NamespaceInit(pid=int(init), ticks=int(born))
            case "send" | "stored" | "pipe" | "attached":
                pass
            case _:
                self._refused = True
