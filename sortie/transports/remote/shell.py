"""Runs our scripts in a host's /bin/sh, and asks it questions.

Rule 1: a shell that has answered a question to its end is kept for the next one, where the link
takes it; in every other case it is ended with all that it still works on.
Rule 2: a question that may have begun is not put a second time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import trio
from msgspec import Struct

from sortie.model import HostError, HostTrouble, TransportError
from sortie.model.texts import start_of
from sortie.resources.lease import LeaseLost
from sortie.transports.remote.channel import Channel
from sortie.transports.remote.fence import LOST, UNLED, LeaderFence, refused_leader, require
from sortie.transports.remote.launch import HOST_REASON_LIMIT, silent_shell
from sortie.transports.remote.login_limit import CROWDED
from sortie.transports.remote.protocol import ScriptOutput
from sortie.transports.remote.remote_script import REPLY_LIMIT, LentShell, RemoteScript
from sortie.transports.remote.scripts import (
    LEAVE,
    SHELL,
    lent_script,
    question_script,
    shell_script,
)
from sortie.transports.remote.shell_link import ShellLink

ANSWER_BOUND = 60.0
"""Seconds in which a question is answered, where the caller gives no other bound."""

_CHANNEL_BOUND = 1.0  # seconds for a channel to close whose command has said all
_TRUSTED_FOR = 5.0  # seconds after an answer in which an idle shell is taken to be there

Write = Callable[[str], bytes]
"""Makes a script from a nonce that was never used before, which its messages begin with."""


class ShellQuestion(Struct, frozen=True, kw_only=True):
    """What a host is asked: the lines ``body``, and what for (``attempt``).

    ``bound`` is in seconds from when it has begun, ``limit`` the bytes that an answer may have.
    One that is ``urgent`` waits for no other login; one ``of_login`` has a login of its own, as its
    answer depends on what the login files say now. One that changes something has the ``fence`` of
    the workflow's lease, where there is one.
    """

    attempt: str
    body: Sequence[bytes]
    bound: float = ANSWER_BOUND
    limit: int = REPLY_LIMIT
    urgent: bool = False
    of_login: bool = False
    fence: LeaderFence | None = None

    @property
    def text(self) -> bytes:
        """What a shell is told."""
        return question_script(self.body if self.fence is None else self.fence.question(self.body))


class ShellAnswer(Struct, frozen=True, kw_only=True):
    """A yes: what stood in its line, and the bytes around it."""

    said: str
    content: bytes


class Shell:
    """The shell of one host; ``new_nonce`` gives a text that was never used before.

    ``handshake`` is how many seconds a script may take to begin. ``notice`` is called once, where a
    channel stays open because of what a login has started.
    """

    def __init__(
        self,
        link: ShellLink,
        new_nonce: Callable[[], str],
        handshake: float,
        notice: Callable[[str], object] | None = None,
    ) -> None:
        self.host = link.host
        self._link = link
        self._new_nonce = new_nonce
        self._handshake = handshake
        self._notice = notice
        self._noticed = False
        self.lends = link.lends_shells
        self.is_relayed = link.is_relayed

    @asynccontextmanager
    async def running(
        self, attempt: str, write: Write, *, urgent: bool = False, at_rank: int | None = None
    ) -> AsyncIterator[RemoteScript]:
        """Run a script while the block lasts, which is entered when the script has begun, or has
        ended without beginning.

        An ``urgent`` script waits for no other login. Raises HostError.
        """
        nonce = self._new_nonce()
        script = await self.begin(attempt, nonce, write(nonce), urgent=urgent, at_rank=at_rank)
        try:
            yield script
        finally:
            try:
                await script.end()
            finally:
                script.channel.abort()

    async def begin(
        self,
        attempt: str,
        nonce: str,
        text: bytes,
        *,
        command: str = SHELL,
        parser: ScriptOutput | None = None,
        urgent: bool = False,
        at_rank: int | None = None,
        fence: LeaderFence | None = None,
    ) -> RemoteScript:
        """Log in and run a script; return when it has begun, or has ended without beginning.

        A script that changes something at once has the ``fence`` of a question. Its channel has to
        be aborted in the end. Raises HostError where it does not begin in time.
        """
        logins = self._link.login_limit
        async with logins.slot(urgent=urgent, at_rank=at_rank) as slot:
            require(fence)
            channel = await self._link.open(command, text, parser or ScriptOutput(nonce))
            script = RemoteScript(self.host, attempt, channel, nonce)
            waited = False
            try:
                with trio.move_on_after(self._handshake):
                    await script.begin()
                    waited = True
                if not waited and slot.crowded:
                    with trio.move_on_after(self._handshake * (CROWDED - 1)):
                        await script.begin()
                        waited = True
            finally:
                if not waited:
                    await script.end()
                    channel.abort()
            if not waited:
                error = silent_shell(self.host, self._handshake)
                logins.fail(error)
                raise error
            return script

    async def lend(self, attempt: str, nonce: str, text: bytes, parser: ScriptOutput) -> LentShell:
        """Run a script in an idle shell, or in a new one; return when it has begun, or has ended
        without beginning. Raises HostError where it does not begin in time."""
        shell = await self._idle_shell()
        if shell is None:
            own = self._new_nonce()
            shell = await self.begin(attempt, own, shell_script(own))
        lent = LentShell(shell, RemoteScript(self.host, attempt, shell.channel, nonce))
        shell.is_idle = False
        waited = False
        try:
            shell.channel.parser = parser
            shell.channel.write(lent_script(text))
            with trio.move_on_after(self._handshake):
                await lent.script.begin()
                waited = True
        finally:
            if not waited:
                lent.close()
        if not waited:
            raise silent_shell(self.host, self._handshake)
        return lent

    async def take_back(self, lent: LentShell) -> None:
        """Keep a shell that was dismissed for the next question, where it is back soon."""
        try:
            with trio.move_on_after(_CHANNEL_BOUND):
                await lent.await_back()
        finally:
            if lent.shell.is_idle:
                await self._leave(lent.shell)

    async def ask(self, question: ShellQuestion) -> ShellAnswer:
        """Have a question answered, and return what it says yes to.

        Cancelled, the question is ended on the host. Raises TransportError with the reason where
        the answer is no, HostError where there is none, or one that is too long, and LeaseLost
        where the lease is over or a newer leader has taken the host over.
        """
        text, fence = question.text, question.fence
        shell = None if question.of_login else await self._idle_shell()
        if shell is None:
            nonce = self._new_nonce()
            text = shell_script(nonce) + text
            attempt, urgent = question.attempt, question.urgent
            shell = await self.begin(attempt, nonce, text, urgent=urgent, fence=fence)
        else:
            shell.attempt = question.attempt
            try:
                require(fence)
            except LeaseLost:
                await self._leave(shell)
                raise
            shell.is_idle = False
            shell.channel.write(text)
        try:
            return await self._answered(shell, question)
        finally:
            await self._leave(shell)

    async def try_link(self, bound: float, *, anew: bool = False) -> None:
        """Have the host answer, in so many seconds; over a channel of its own where ``anew``.

        Raises HostError where it does not.
        """
        question = ShellQuestion(
            attempt="be answered", body=[b"whole yes"], bound=bound, urgent=True, of_login=anew
        )
        await self.ask(question)

    async def _idle_shell(self) -> RemoteScript | None:
        """Return a shell that waits for a question, if there is one."""
        while (found := self._link.take_shell()) is not None:
            shell, since = found
            if trio.current_time() - since < _TRUSTED_FOR or await self._is_there(shell):
                return shell
        return None

    async def _is_there(self, shell: RemoteScript) -> bool:
        """Tell whether a shell still answers; where not, it is ended."""
        there = False
        shell.is_idle = False
        try:
            with trio.move_on_after(self._handshake):
                shell.channel.write(question_script([b"whole yes"]))
                await self._answer(shell, REPLY_LIMIT)
                there = True
        except TransportError:
            pass  # a link that was lost while nothing used it is no trouble
        finally:
            if not there:
                shell.is_idle = False
                await self._leave(shell)
        return there

    async def _leave(self, shell: RemoteScript) -> None:
        """Keep an idle shell for the next question; have any other end."""
        if shell.is_idle and self._link.keep_shell(shell):
            return
        try:
            if shell.is_idle:
                shell.channel.write(LEAVE)
                shell.channel.write_eof()
                await self.await_close(shell.channel)
            else:
                await shell.end()
        finally:
            shell.channel.abort()

    async def _answered(self, shell: RemoteScript, question: ShellQuestion) -> ShellAnswer:
        with trio.move_on_after(question.bound):
            return await self._answer(shell, question.limit)
        raise HostError(
            HostTrouble.UNREACHABLE,
            f"could not {question.attempt}: host {self.host} did not answer in"
            f" {question.bound:g} s; look at its load and its file systems",
        )

    async def _answer(self, shell: RemoteScript, limit: int) -> ShellAnswer:
        verdict, rest, before = await shell.verdict(limit)
        end = await shell.next(limit)
        how, _, status = end[1].partition(" ") if end is not None else ("", "", "")
        shell.is_idle = how == "end" and shell.channel.is_empty
        if verdict == "no":
            reason = start_of(rest, HOST_REASON_LIMIT)
            raise TransportError(f"could not {shell.attempt} on host {self.host}: {reason}")
        if verdict in (LOST, UNLED):
            raise refused_leader(self.host, verdict)
        if verdict == "yes" and end is not None and end[1] == "end 0":
            return ShellAnswer(said=rest, content=before + end[0])
        if verdict == "yes" and shell.channel.lost is None:  # it failed behind its yes
            raise TransportError(str(shell.silence(status)))
        raise shell.silence(status)

    async def await_close(self, channel: Channel) -> None:
        """Wait a moment for the end of a channel whose command has nothing more to say, unless one
        was waited for in vain before."""
        if self._noticed:
            return
        with trio.move_on_after(_CHANNEL_BOUND):
            await channel.closed.wait()
        if channel.exit_status is None or channel.closed.is_set():
            return
        self._noticed = True
        if self._notice is not None:
            self._notice(
                f"what a login on host {self.host} starts keeps the session's output open after"
                " its end; have the login files (.bashrc and the like) start nothing in the"
                " background there, or with its output sent to /dev/null"
            )
