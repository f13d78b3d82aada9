"""Runs our scripts in a host's /bin/sh, and hears what they say.

Rule 1: a shell that has answered a question to its end is kept for the next one, where the pool
takes it; in every other case it is ended with whatever it still works on.
Rule 2: a question that may have begun is not put a second time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import trio

from sortie.model import HostError, HostTrouble, TransportError
from sortie.model.texts import start_of
from sortie.transports.ssh.channel import Channel
from sortie.transports.ssh.connection_pool import ConnectionPool
from sortie.transports.ssh.conversation import ANSWER_LIMIT, Conversation
from sortie.transports.ssh.launch import silent_shell
from sortie.transports.ssh.login_limit import LoginSlot, login_slot
from sortie.transports.ssh.scripts import LEAVE, SHELL, shell_script
from sortie.transports.ssh.scripts import question as asking

ANSWER_BOUND = 60.0
"""Seconds in which a question is answered, where the caller gives no other bound."""

_REASON = 2000  # characters of a reason that are shown
_CLOSE_BOUND = 1.0
_FRESH = 5.0  # seconds after an answer in which a kept shell is taken to be there

Write = Callable[[str], bytes]
"""Makes a script from a nonce that was never used before, which its words begin with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a host is asked: the lines ``body``, and what for (``attempt``).

    ``bound`` is in seconds from when it has begun, ``limit`` the bytes that an answer may have.
    One that is ``urgent`` waits for no other login; one ``of_login`` has a login of its own, as its
    answer depends on what the login files say now.
    """

    attempt: str
    body: Sequence[bytes]
    bound: float = ANSWER_BOUND
    limit: int = ANSWER_LIMIT
    urgent: bool = False
    of_login: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A yes: what stood in its line, and the bytes around it."""

    said: str
    content: bytes


class Shell:
    """The shell of one host; ``new_nonce`` gives a text that was never used before.

    ``handshake`` is how many seconds it may take to begin.
    """

    def __init__(
        self,
        host: str,
        pool: ConnectionPool,
        new_nonce: Callable[[], str],
        handshake: float,
        lingering: Lingering | None = None,
    ) -> None:
        self.host = host
        self._pool = pool
        self._new_nonce = new_nonce
        self._handshake = handshake
        self.lingering = lingering or Lingering(host)

    @asynccontextmanager
    async def converse(
        self, attempt: str, write: Write, *, urgent: bool = False, at_rank: int | None = None
    ) -> AsyncIterator[Conversation]:
        """Run a script while the block lasts, which is entered when the script has begun, or has
        ended without beginning.

        What is ``urgent`` has no others begin before it. Raises HostError.
        """
        while True:
            async with (
                login_slot(self._pool.login_limit, urgent=urgent, at_rank=at_rank) as start,
                self._pool.channel(SHELL) as channel,
            ):
                conversation = await self.begin(attempt, write, channel, start)
                if conversation is not None:
                    try:
                        yield conversation
                    finally:
                        await self._leave(conversation)
                    return

    async def begin(
        self, attempt: str, write: Write, channel: Channel, start: LoginSlot
    ) -> Conversation | None:
        """Run a script on a channel that was opened; None where it is to be tried again, as others
        were beginning at the same time.

        Raises HostError where it did not begin in time though it was alone.
        """
        start.opened()
        nonce = self._new_nonce()
        conversation = Conversation(self.host, attempt, channel, nonce)
        channel.write(write(nonce))
        begins = False
        try:
            with trio.move_on_after(self._handshake):
                await conversation.begin()
                begins = True
        finally:
            if not begins:
                await conversation.end()
        if begins:
            if conversation.begun:
                start.succeeded(self._handshake)
            return conversation
        error = silent_shell(self.host, self._handshake)
        if start.was_silent(error):
            return None
        raise error

    async def ask(self, question: Question) -> Answer:
        """Have a question answered, and return what it says yes to.

        One that nobody waits for any more is ended on the host. Raises TransportError with the
        reason where the answer is no, and HostError where there is none, or one that is too long.
        """
        script = asking(question.body)
        kept = None if question.of_login else await self._kept()
        if kept is not None:
            async with self._left(kept):
                kept.attempt, kept.rests = question.attempt, False
                kept.channel.write(script)
                return await self._answered(kept, question)
        async with self.converse(
            question.attempt, lambda nonce: shell_script(nonce) + script, urgent=question.urgent
        ) as conversation:
            return await self._answered(conversation, question)

    async def _kept(self) -> Conversation | None:
        """Return a shell that waits for a question, if there is one."""
        while (found := self._pool.take_shell()) is not None:
            kept, since = found
            if trio.current_time() - since < _FRESH or await self._is_there(kept):
                return kept
        return None

    async def _is_there(self, kept: Conversation) -> bool:
        """Tell whether a shell still answers; where not, it is ended."""
        there = False
        try:
            with trio.move_on_after(self._handshake):
                kept.channel.write(asking([b"whole yes"]))
                await self._answer(kept, ANSWER_LIMIT)
                there = True
        except TransportError:
            pass  # a link that was lost while nobody used it is no trouble
        finally:
            if not there:
                kept.rests = False
                await self._leave(kept)
                kept.channel.abort()
        return there

    @asynccontextmanager
    async def _left(self, kept: Conversation) -> AsyncIterator[None]:
        """Leave a kept shell with the block."""
        kept.channel.kept = False
        try:
            yield
        finally:
            try:
                await self._leave(kept)
            finally:
                if not kept.channel.kept:
                    kept.channel.abort()

    async def _leave(self, conversation: Conversation) -> None:
        """Keep a shell that rests for the next question, or have it end."""
        if not conversation.rests:
            await conversation.end()
        elif self._pool.keep_shell(conversation):
            conversation.channel.kept = True
        else:
            conversation.channel.write(LEAVE)
            conversation.channel.write_eof()
            await self.lingering.closed(conversation.channel)

    async def _answered(self, conversation: Conversation, question: Question) -> Answer:
        with trio.move_on_after(question.bound):
            return await self._answer(conversation, question.limit)
        raise HostError(
            HostTrouble.UNREACHABLE,
            f"could not {question.attempt}: host {self.host} did not answer in"
            f" {question.bound:g} s; look at its load and its file systems",
        )

    async def _answer(self, conversation: Conversation, limit: int) -> Answer:
        verdict, rest, before = await conversation.verdict(limit)
        end = await conversation.next(limit)
        how, _, status = end[1].partition(" ") if end is not None else ("", "", "")
        if how == "end":
            conversation.rest()
        if verdict == "no":
            raise TransportError(
                f"could not {conversation.attempt} on host {self.host}: {start_of(rest, _REASON)}"
            )
        if verdict == "yes" and end is not None and end[1] == "end 0":
            return Answer(said=rest, content=before + end[0])
        if verdict == "yes" and conversation.channel.lost is None:  # it failed behind its yes
            raise TransportError(str(conversation.silence(status)))
        raise conversation.silence(status)


class Lingering:
    """Notes where something that a login has started keeps its channel open.

    That is waited for once, to be told; ``tell`` gets the cause.
    """

    def __init__(self, host: str, tell: Callable[[str], object] | None = None) -> None:
        self._host = host
        self._tell = tell
        self._known = False

    async def closed(self, channel: Channel) -> None:
        """Wait a moment for the end of a channel whose command has nothing more to say."""
        if self._known:
            return
        with trio.move_on_after(_CLOSE_BOUND):
            await channel.closed()
        if channel.exit_status is None or channel.ended:
            return
        self._known = True
        if self._tell is not None:
            self._tell(
                f"what a login on host {self._host} starts keeps the session's output open after"
                " its end; have the login files (.bashrc and the like) start nothing in the"
                " background there, or with its output sent to /dev/null"
            )
