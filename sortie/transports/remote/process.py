"""A program under way on a remote host: how it was started, its output, its exit, its end.

Rule 1: nothing starts on the host unless the daemon is there, and it ends there when the daemon is
not: its watchdog sees its lease end. Rule 2: it is gone when the watchdog has said so, or when we
have looked ourselves; where the link is lost first, that cannot be known, and is a HostError.
"""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import trio

from sortie.model import HostError, HostTrouble, TransportError
from sortie.transports import Exit, Stdin
from sortie.transports.reaper import KILL_BOUND
from sortie.transports.remote.forced_end import FINISH_BOUND, end_tree, still_there, unsure
from sortie.transports.remote.launch import (
    Bounds,
    lapsed,
    nonsense,
)
from sortie.transports.remote.program_start import ProgramStart
from sortie.transports.remote.protocol import GO, HERE
from sortie.transports.remote.remote_launch import RemoteLaunch
from sortie.transports.remote.remote_script import RemoteScript
from sortie.transports.remote.shell import Shell
from sortie.transports.remote.stdin import RemoteStdin, open_stdin

LAST_MESSAGES = 1.0
"""Seconds for what is said on the host after a program's exit."""

SIGNALLED = 128
"""An exit status above tells of a signal, where a shell was in between."""

_ROUND_TRIP = 3.0  # seconds for the way to the host and back


class RemoteProgram(ProgramStart):
    """A program and its tree on a host; made and left by ``ShellTransport.process``."""

    def __init__(
        self,
        shell: Shell,
        launch: RemoteLaunch,
        script: RemoteScript,
        hurry: trio.Event,
        stack: AsyncExitStack,
    ) -> None:
        super().__init__(shell, launch, script)
        self._messages = script.channel.parser
        self._stack = stack  # it is left when the process has been
        self._stdin: RemoteStdin | None = None
        self._hurry = hurry
        self._has_started = False
        self._reading = False
        self._lock = trio.Lock()
        self._by_us = False
        self._ended = False
        self._failure: TransportError | None = None

    @property
    def stdin(self) -> RemoteStdin | None:
        """The program's stdin, where the command asks for one; see the port."""
        return self._stdin

    def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """Yield chunks of stdout (1) and stderr (2); see the port. RuntimeError the second time."""
        if self._reading:
            raise RuntimeError("the output of a process can be iterated once")
        self._reading = True
        return self._chunks()

    async def _chunks(self) -> AsyncIterator[tuple[int, bytes]]:
        while (item := await self._channel.receive()) is not None:
            stream, chunk, _ = item
            if stream and chunk:
                yield stream, chunk

    async def wait(self) -> Exit:
        """Wait until the program has exited. Raises HostError where the link was lost before, or
        before all output had come, and where it was cut for so long that the program was ended."""
        exit_ = await self._known_exit()
        if await self._has_lapsed(exit_):
            raise lapsed(self._host, self._launch.lease)
        return exit_

    async def _known_exit(self) -> Exit:
        await self._channel.exited.wait()
        exit_ = self._exit()
        if exit_ is not None and self._channel.lost is None:
            return exit_
        raise self._channel.lost or HostError(
            HostTrouble.DROPPED, f"host {self._host} did not say how the program ended"
        )

    async def _has_lapsed(self, exit_: Exit) -> bool:
        """Tell whether the watchdog has ended the program because it did not hear from us.

        Its message may come a moment after the exit that it is the reason of.
        """
        was_killed = exit_.signal is not None or (exit_.status or 0) > SIGNALLED
        if was_killed and not (exit_.by_us or self._messages.lapsed):
            with trio.move_on_after(LAST_MESSAGES):
                await self._channel.over.wait()
        return self._messages.lapsed

    async def end(self) -> Exit:
        """End the whole tree for certain; raise TransportError naming the pids that stay."""
        await self._end_for_certain()
        return await self.wait()

    async def _end_for_certain(self) -> None:
        async with self._lock:
            if not self._ended:
                await self._end()
                self._ended = True
        if self._failure is not None:
            raise self._failure

    async def start(self, bounds: Bounds) -> None:
        """Have the script start the program, and wait until it has.

        Raises ProgramNotFound, TransportError, HostError.
        """
        if not self._script.begun:
            raise self._no_start()
        self._note(f"{HERE} {self._script.here}")
        if self._root is None:
            raise nonsense(self._host)
        await self._send_stdin(bounds)
        self._use_lease()
        # What comes after the last GO is the watchdog's.
        self._channel.beat(bounds.beat, GO)
        if self._launch.namespaces is not None:
            await self._expect("namespace", bounds.start)
        if self._launch.command.stdin is Stdin.PIPE:
            fifo = await self._expect("pipe", bounds.start)
            init = self._init.pid if self._init is not None else 0
            opening = open_stdin(self._shell, self._launch, fifo, self._channel, init)
            self._stdin = await self._stack.enter_async_context(opening)
        await self._expect("started", bounds.start)
        self._has_started = True

    async def leave(self) -> None:
        """End what may have been started; takes the grace time and some seconds at most."""
        if not self._may_have_started:
            return
        while not self._has_started and (item := self._channel.take()) is not None:
            if item[2] is not None:
                self._note(item[2])
        if self._is_gone:
            await self._shell.await_close(self._channel)
        elif not self._refused:
            await self._leave()

    async def _leave(self) -> None:
        bound = self._launch.command.grace + KILL_BOUND + FINISH_BOUND + 2 * _ROUND_TRIP
        with trio.move_on_after(bound, shield=True) as limit:
            await self._end_for_certain()
            await self._known_exit()
        if limit.cancelled_caught:
            raise self._unsure(f"host {self._host} could not be asked in {bound:.0f} s")

    async def _end(self) -> None:
        if self._exit() is None:
            self._by_us = True
        self._channel.finish()
        with trio.move_on_after(self._launch.command.grace + KILL_BOUND + _ROUND_TRIP):
            await self._wait_or_hurry(self._channel.over)
        if self._messages.gone is None and self._channel.lost is not None:
            self._failure = self._channel.lost
            return
        left = self._messages.gone
        if left is None or (self._hurry.is_set() and not self._channel.over.is_set()):
            left = await self._end_from_here()
        if left:
            self._failure = still_there(self._host, self.identity.pid, left)
        if not self._channel.over.is_set():  # a process out of reach may hold the channel open
            with trio.move_on_after(LAST_MESSAGES):
                await self._channel.over.wait()
        self._channel.conclude()

    async def _wait_or_hurry(self, event: trio.Event) -> None:
        """Wait for an event, or until no process is given any more grace."""
        async with trio.open_nursery() as nursery:

            async def wait_for(one: trio.Event) -> None:
                await one.wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(wait_for, self._hurry)
            nursery.start_soon(wait_for, event)

    async def _end_from_here(self) -> list[int] | None:
        """End what is left over another channel; return who stays, None where that is unknown."""
        if self._root is None:
            self._failure = nonsense(self._host)
            return None
        try:
            return await end_tree(
                self._shell, self._launch, self._root, self.remains, marked=self._marked
            )
        except HostError as error:
            self._failure = error
        return None

    def _unsure(self, reason: str) -> HostError:
        return unsure(self._host, self.identity.pid, reason)

    @property
    def _is_gone(self) -> bool:
        """Whether the host has said that nothing is left, and all else that it had to say."""
        return (
            self._channel.over.is_set() and self._messages.gone == [] and self._exit() is not None
        )

    def _exit(self) -> Exit | None:
        status, name = self._channel.exit_status, self._channel.exit_signal
        if status is not None:
            return Exit(status=status, by_us=self._by_us)
        if name is not None:
            # Where sshd has no name for a signal, nothing but its being one is known.
            number = getattr(signal, f"SIG{name}", None)
            return Exit(signal=number and int(number), by_us=self._by_us)
        return None
