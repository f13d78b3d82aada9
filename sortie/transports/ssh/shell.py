"""Runs our scripts in a host's /bin/sh, each on a channel of its own, and hears what they say."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import trio

from sortie.model import HostError, HostTrouble, TransportError
from sortie.transports.ssh.channel import Channel
from sortie.transports.ssh.connection_pool import ConnectionPool
from sortie.transports.ssh.launch import silent_shell
from sortie.transports.ssh.login_limit import LoginSlot, login_slot
from sortie.transports.ssh.protocol import HERE, Words
from sortie.transports.ssh.scripts import SHELL

ANSWER_BOUND = 60.0
"""Seconds in which a question is answered, where the caller gives no other bound."""

ANSWER_LIMIT = 64 * 1024
"""Bytes that stand before a word at most, where the caller gives no other limit."""

_NOISE = 500  # bytes of what a shell said instead of an answer that are shown
_FLOOD = 4 * 1024 * 1024  # bytes of anything but an answer that are listened to
_REASON = 2000  # characters of a reason that are shown
_ABANDON_BOUND = 2.0
_CLOSE_BOUND = 1.0

Write = Callable[[str], bytes]
"""Makes a script from a nonce that was never used before, which its words begin with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A yes: what stood in its line, and the bytes behind it."""

    said: str
    content: bytes


class Conversation:
    """One of our scripts as it runs on a host; ``attempt`` says what for.

    Who sets ``is_over`` need not have it ended: it has ended, or ends by other means.
    """

    def __init__(self, host: str, attempt: str, channel: Channel, nonce: str) -> None:
        self.channel = channel
        self.attempt = attempt
        self.begun = False
        self.is_over = False
        self._host = host
        self._chunks = channel.output()
        self._words = Words(nonce)
        self._ahead: deque[tuple[bytes, str | None]] = deque()
        self._noise = b""
        self._floods = False

    async def begin(self) -> None:
        """Wait for the first word, which ``next`` then returns, or the end."""
        first = await self.next()
        if first is not None:
            self._ahead.appendleft(first)

    async def next(self, limit: int = ANSWER_LIMIT) -> tuple[bytes, str] | None:
        """Return the bytes before the next word and that word, or None where none comes.

        Not to be called again where it was cancelled. Raises HostError where there are more than
        ``limit`` bytes.
        """
        said = bytearray()
        heard = 0
        while True:
            while self._ahead:
                before, word = self._ahead.popleft()
                if self.begun:
                    said += before
                else:
                    self._murmur(before)
                if word is not None:
                    self.begun = True
                    return bytes(said), word
            try:
                number, chunk = await anext(self._chunks)
            except StopAsyncIteration:
                self._murmur(bytes(said))
                return None
            if number == 1:
                self._ahead.extend(self._words.feed(chunk))
            else:
                self._murmur(chunk)
            heard += len(chunk)
            if len(said) > limit or heard > limit + _FLOOD:
                raise self._flood()

    async def verdict(self) -> tuple[str, str]:
        """Return the first word behind the one that it is here, and the rest of its line.

        Raises TransportError where there is none.
        """
        word = await self.next()
        if word is not None and word[1] == HERE:
            word = await self.next()
        if word is None:
            raise self.silence()
        verdict, _, rest = word[1].partition(" ")
        return verdict, rest

    async def end(self) -> None:
        """Let the script see that nobody waits any more, or kill it where it does not look, and
        wait a moment until it is gone."""
        if self.is_over:
            return
        self.channel.write_eof()
        if self._floods or not self.begun:
            self.channel.kill()
        with trio.move_on_after(_ABANDON_BOUND, shield=True):
            async for _ in self.channel.output():
                pass

    def silence(self) -> TransportError:
        """Return the error for an answer that did not come."""
        if self.channel.lost is not None:
            return self.channel.lost
        heard = self._noise.decode("utf-8", "replace").strip() or "nothing"
        return HostError(
            HostTrouble.UNREACHABLE,
            f"could not {self.attempt}: the shell of host {self._host} gave no answer"
            f" (exit {self.channel.exit_status or self.channel.exit_signal}) and said: {heard}",
        )

    def _flood(self) -> HostError:
        self._floods = True
        return HostError(
            HostTrouble.UNREACHABLE,
            f"could not {self.attempt}: host {self._host} did not stop to talk; look at what its"
            " login files (.bashrc and the like) and its /bin/sh print",
        )

    def _murmur(self, chunk: bytes) -> None:
        self._noise = (self._noise + chunk)[-_NOISE:]


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
        self._lingering = lingering or Lingering(host)

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
                        await conversation.end()
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

    async def ask(
        self,
        attempt: str,
        write: Write,
        bound: float = ANSWER_BOUND,
        limit: int = ANSWER_LIMIT,
        *,
        urgent: bool = False,
    ) -> Answer:
        """Run a question and return what it says yes to.

        ``bound`` counts from when it has begun. A question that nobody waits for any more is ended
        on the host. Raises TransportError with the reason where the answer is no, and HostError
        where there is none, or one of more than ``limit`` bytes.
        """
        async with self.converse(attempt, write, urgent=urgent) as conversation:
            with trio.move_on_after(bound):
                answer = await self._answer(conversation, limit)
                await self._lingering.closed(conversation.channel)
                return answer
        raise HostError(
            HostTrouble.UNREACHABLE,
            f"could not {attempt}: host {self.host} did not answer in {bound:g} s;"
            " look at its load and its file systems",
        )

    async def _answer(self, conversation: Conversation, limit: int) -> Answer:
        verdict, rest = await conversation.verdict()
        end = await conversation.next(limit)
        conversation.is_over = True
        if verdict == "no":
            raise TransportError(
                f"could not {conversation.attempt} on host {self.host}: {rest[:_REASON]}"
            )
        if verdict == "yes" and end is not None and end[1] == "end":
            return Answer(said=rest, content=end[0])
        error = conversation.silence()
        if verdict == "yes" and conversation.channel.lost is None:  # it failed behind its yes
            raise TransportError(str(error))
        raise error


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
