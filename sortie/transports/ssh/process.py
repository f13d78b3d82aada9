"""A program under way on a remote host: how it was started, its output, its exit, its end.

Rule 1: nothing starts on the host unless we are there, and it ends there when we are not: its
watchdog sees our stdin end. Rule 2: it is gone when the watchdog has said so, or when we have
looked ourselves; where the link is lost first, that cannot be known, and is a HostError.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress

import trio

from sortie.model import HostError, HostTrouble, ProcessesLeft, ProcessIdentity, TransportError
from sortie.transports import Exit, Stdin
from sortie.transports.ssh.launch import (
    Bounds,
    LaunchSession,
    RootProcess,
    lapsed,
    no_start,
    nonsense,
    refusal,
    root_process_of,
    silent_shell,
    slow_shell,
    struck,
)
from sortie.transports.ssh.login_limit import LoginSlot
from sortie.transports.ssh.namespaces import NamespaceInit
from sortie.transports.ssh.protocol import GO, HERE, numbers_in
from sortie.transports.ssh.questions import finish_body, namespaces_body
from sortie.transports.ssh.shell import Question, Shell
from sortie.transports.ssh.stdin import RemoteStdin, open_stdin
from sortie.transports.ssh.unconfirmed_runs import Remains

KILL_BOUND = 5.0
"""Seconds after SIGKILL in which a program and its tree have to be gone; as in ``end_tree.sh``."""

FINISH_BOUND = 15.0
"""Seconds for ending a tree over another channel, where its watchdog does not do it."""

_PIECE = 256 * 1024  # bytes of a stdin that have to be taken in the time for one word
_SLACK = 3.0  # for the way to the host and back
_CLOSE_BOUND = 1.0
_SIGNALLED = 128  # an exit status above tells of a signal, where a shell was in between


class SshProcess:
    """A program and its tree on a host; made and left by ``SshTransport.process``."""

    def __init__(
        self, shell: Shell, session: LaunchSession, hurry: trio.Event, stack: AsyncExitStack
    ) -> None:
        self._host = shell.host
        self._shell = shell
        self._launch = session.launch
        self._dialogue = session.dialogue
        self._channel = session.channel
        self._stack = stack  # it is left when the process has been
        self._stdin: RemoteStdin | None = None
        self._hurry = hurry
        self._root: RootProcess | None = None
        self._init: NamespaceInit | None = None
        self._marked = True
        self._refused = False
        self._reading = False
        self._lock = trio.Lock()
        self._by_us = False
        self._ended = False
        self._failure: TransportError | None = None

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
        return Remains(pid=self._root.identity.pid, ticks=self._root.ticks, init=self._init)

    @property
    def stdin(self) -> RemoteStdin | None:
        """The program's stdin, where the command asks for one; see the port."""
        return self._stdin

    def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """Yield chunks of stdout (1) and stderr (2); see the port. RuntimeError the second time."""
        if self._reading:
            raise RuntimeError("the output of a process can be iterated once")
        self._reading = True
        return self._channel.output()

    async def wait(self) -> Exit:
        """Wait until the program has exited. Raises HostError where the link was lost before, or
        before all output had come, and where it was cut for so long that the program was ended."""
        exit_ = await self._known_exit()
        if await self._has_lapsed(exit_):
            raise lapsed(self._host, self._launch.lease)
        return exit_

    async def _known_exit(self) -> Exit:
        await self._channel.exited()
        exit_ = self._exit()
        if exit_ is not None and self._channel.lost is None:
            return exit_
        raise self._channel.lost or HostError(
            HostTrouble.DROPPED, f"host {self._host} did not say how the program ended"
        )

    async def _has_lapsed(self, exit_: Exit) -> bool:
        """Tell whether the watchdog has ended the program because it did not hear from us.

        Its word may come a moment after the exit that it is the reason of.
        """
        was_killed = exit_.signal is not None or (exit_.status or 0) > _SIGNALLED
        if was_killed and not (exit_.by_us or self._dialogue.lapsed):
            with trio.move_on_after(_CLOSE_BOUND):
                await self._channel.over()
        return self._dialogue.lapsed

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

    async def start(self, bounds: Bounds, start: LoginSlot) -> bool:
        """Wait until the host has started the program; False where it is to be tried again.

        Raises ProgramNotFound, TransportError, HostError.
        """
        if not await self._expect_shell(bounds.handshake, start):
            return False
        start.succeeded(bounds.handshake)
        if self._launch.stdin:
            await self._expect("send", bounds.start)
            await self._send(self._launch.stdin, bounds.start)
            await self._expect("stored", bounds.start)
            self._channel.write(GO)
            self._channel.beat(bounds.beat)
        if self._launch.namespaces is not None:
            await self._expect("namespace", bounds.start)
        if self._launch.command.stdin is Stdin.PIPE:
            fifo = await self._expect("pipe", bounds.start)
            init = self._init.pid if self._init is not None else 0
            opening = open_stdin(self._shell, self._launch, fifo, self._channel, init)
            self._stdin = await self._stack.enter_async_context(opening)
        await self._expect("started", bounds.start)
        return True

    async def leave(self) -> None:
        """End what may have been started; takes the grace time and some seconds at most."""
        if self._dialogue.withdraw():
            return
        while (word := self._channel.said()) is not None:
            self._note(word)
        if self._is_gone:
            if not self._channel.ended:
                await self._shell.lingering.closed(self._channel)
        elif not self._refused:
            await self._leave()

    async def _leave(self) -> None:
        bound = self._launch.command.grace + KILL_BOUND + FINISH_BOUND + 2 * _SLACK
        with trio.move_on_after(bound, shield=True) as limit:
            await self._end_for_certain()
            await self._known_exit()
        if limit.cancelled_caught:
            raise self._untold(f"host {self._host} could not be asked in {bound:.0f} s")

    async def _expect_shell(self, bound: float, start: LoginSlot) -> bool:
        """Wait until the host's shell is there, which is told to go on before we hear of it.

        Return False where it is to be tried again.
        """
        with trio.move_on_after(bound):
            await self._hear(HERE)
            return True
        if not self._dialogue.withdraw():
            await self._hear(HERE)
            return True
        self._channel.kill()  # or its login would keep its session for as long as it hangs
        error = silent_shell(self._host, bound)
        if start.was_silent(error):
            return False
        raise error

    async def _expect(self, expected: str, bound: float) -> str:
        """Return what follows a word. Raises HostError where it does not come in time."""
        with trio.move_on_after(bound):
            return await self._hear(expected)
        raise slow_shell(self._host, bound)

    async def _send(self, content: bytes, bound: float) -> None:
        """Write to the host's shell. Raises HostError where it does not take a piece in time."""
        for at in range(0, len(content), _PIECE):
            with trio.move_on_after(bound) as limit:
                await self._channel.send(content[at : at + _PIECE])
            if limit.cancelled_caught:
                raise slow_shell(self._host, bound)

    async def _hear(self, expected: str) -> str:
        """Wait for the host's next word, which has to be this one; return what follows it."""
        word = await self._channel.word()
        if word is None:
            raise self._channel.lost or no_start(
                self._host, self._launch, self._dialogue.noise, self._channel.exit_status
            )
        self._note(word)
        name, _, rest = word.partition(" ")
        if name != expected:
            said = struck(os.fsencode(rest), self._launch.command).decode("utf-8", "replace")
            raise refusal(self._host, self._launch.command, name, said)
        if self._root is None:
            raise nonsense(self._host)
        return rest

    def _note(self, word: str) -> None:
        name, _, rest = word.partition(" ")
        match name:
            case "here":
                with suppress(ValueError, OverflowError):
                    self._root = root_process_of(rest)
            case "started":
                self._marked = bool(rest)
            case "namespace":
                init, _, born = rest.partition(" ")
                with suppress(ValueError, OverflowError):
                    self._init = NamespaceInit(pid=int(init), ticks=int(born))
            case "send" | "stored" | "pipe":
                pass
            case _:
                self._refused = True

    async def _end(self) -> None:
        if self._exit() is None:
            self._by_us = True
        self._channel.finish()
        with trio.move_on_after(self._launch.command.grace + KILL_BOUND + _SLACK):
            await self._over_or_hurry()
        if self._dialogue.gone is None and self._channel.lost is not None:
            self._failure = self._channel.lost
            return
        left = self._dialogue.gone
        if left is None or (self._hurry.is_set() and not self._channel.is_over):
            left = await self._end_from_here()
        if left:
            self._failure = ProcessesLeft(
                f"could not end process {self.identity.pid} on host {self._host} and what it"
                f" started: these are still there after SIGKILL: {', '.join(map(str, left))};"
                " look at them with ps there",
                pids=frozenset(left),
            )
        if not self._channel.is_over:  # somebody out of our reach may hold the channel open
            with trio.move_on_after(_CLOSE_BOUND):
                await self._channel.over()
        self._channel.hush()

    async def _over_or_hurry(self) -> None:
        if self._channel.is_over:
            return
        async with trio.open_nursery() as nursery:

            async def wait_for_hurry() -> None:
                await self._hurry.wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(wait_for_hurry)
            await self._channel.over()
            nursery.cancel_scope.cancel()

    async def _end_from_here(self) -> list[int] | None:
        if self._root is None:
            self._failure = nonsense(self._host)
            return None
        try:
            with trio.fail_after(FINISH_BOUND):
                return await self._finish(self._root)
        except trio.TooSlowError:
            reason = f"host {self._host} could not be asked in {FINISH_BOUND:g} s"
            self._failure = self._untold(reason)
        except TransportError as error:
            self._failure = self._untold(str(error))
        return None

    async def _finish(self, root: RootProcess) -> list[int]:
        """End what is left at once, over another channel; return who stays."""
        if (remains := self.remains) is not None:
            body = namespaces_body([remains], grace=0.0)
        else:
            pid = root.identity.pid
            body = finish_body(self._launch, pid, root.ticks, marked=self._marked)
        answer = await self._shell.ask(
            Question(
                attempt=f"end process {root.identity.pid}",
                body=body,
                bound=FINISH_BOUND,
                urgent=True,
            )
        )
        return numbers_in(answer.said.rpartition("|")[2])

    def _untold(self, reason: str) -> HostError:
        """Return the error for what may live on, for whatever reason: as after a lost link."""
        return HostError(
            HostTrouble.DROPPED,
            f"could not tell whether process {self.identity.pid} on host {self._host} and what it"
            f" started are gone: {reason}",
        )

    @property
    def _is_gone(self) -> bool:
        """Whether the host has said that nothing is left, and all else that it had to say."""
        return self._channel.is_over and self._dialogue.gone == [] and self._exit() is not None

    def _exit(self) -> Exit | None:
        status, name = self._channel.exit_status, self._channel.exit_signal
        if status is not None:
            return Exit(status=status, by_us=self._by_us)
        if name is not None:
            # Where sshd has no name for a signal, nothing but its being one is known.
            number = getattr(signal, f"SIG{name}", None)
            return Exit(signal=number and int(number), by_us=self._by_us)
        return None
