"""Asks a host's /bin/sh one thing at a time, each on a channel of its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

import trio

from sortie.model import HostError, HostTrouble, TransportError
from sortie.transports.ssh.channel import Channel
from sortie.transports.ssh.connections import Connections
from sortie.transports.ssh.launch import silent_shell
from sortie.transports.ssh.login_limit import Start, starting
from sortie.transports.ssh.scripts import SHELL
from sortie.transports.ssh.words import Words

ANSWER_BOUND = 60.0
"""Seconds in which a question is answered, where the caller gives no other bound."""

ANSWER_LIMIT = 64 * 1024
"""Bytes that follow a yes at most, where the caller gives no other limit."""

_NOISE = 500  # bytes of what a shell said instead of an answer that are shown
_FLOOD = 4 * 1024 * 1024  # bytes of anything but the answer that are listened to
_REASON = 2000  # characters of a reason that are shown
_ABANDON_BOUND = 2.0
_CLOSE_BOUND = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A yes: what stood in its line, and the bytes behind it."""

    said: str
    content: bytes


class Shell:
    """The shell of one host; ``new_nonce`` gives a text that was never used before.

    ``handshake`` is how many seconds it may take to begin.
    """

    def __init__(
        self,
        host: str,
        connections: Connections,
        new_nonce: Callable[[], str],
        handshake: float,
        lingering: Lingering | None = None,
    ) -> None:
        self._host = host
        self._connections = connections
        self._new_nonce = new_nonce
        self._handshake = handshake
        self._lingering = lingering or Lingering(host)

    async def ask(
        self,
        attempt: str,
        write: Callable[[str], bytes],
        bound: float = ANSWER_BOUND,
        limit: int = ANSWER_LIMIT,
        *,
        urgent: bool = False,
    ) -> Answer:
        """Run the question that ``write`` makes from a nonce; return what it says yes to.

        ``bound`` counts from when the session is open; what is ``urgent`` has no others begin
        before it. A question that nobody waits for any more is ended on the host.

        Raises TransportError with the reason where the answer is no, and HostError where there is
        none, or one of more than ``limit`` bytes.
        """
        while True:
            nonce = self._new_nonce()
            reply = _Reply(Words(nonce), limit)
            with trio.CancelScope() as scope:
                async with (
                    starting(self._connections.starts, urgent=urgent) as start,
                    self._connections.channel(SHELL) as channel,
                ):
                    scope.deadline = trio.current_time() + bound
                    start.opened()
                    channel.write(write(nonce))
                    if not await self._listen(channel, reply, start):
                        continue
                    answer = self._answer(channel, reply, attempt)
                    await self._lingering.closed(channel)
                    return answer
            assert scope.cancelled_caught
            raise HostError(
                HostTrouble.UNREACHABLE,
                f"could not {attempt}: host {self._host} did not answer in {bound:g} s;"
                " look at its load and its file systems",
            )

    async def _listen(self, channel: Channel, reply: _Reply, start: Start) -> bool:
        """Hear the shell to the end of its answer, or of what it says instead.

        Return False where it did not begin in time, and is to be asked again. Raises HostError
        where it did not begin in time and was alone.
        """
        heard = False
        with trio.move_on_after(self._handshake) as patience:
            try:
                async with aclosing(channel.output()) as chunks:
                    async for number, chunk in chunks:
                        reply.hear(number, chunk)
                        if reply.begun:
                            patience.deadline = math.inf
                            start.succeeded(self._handshake)
                        if reply.complete:
                            break
                        if reply.excess:
                            await _abandon(channel, kill=True)
                            break
                heard = True
            finally:
                if not heard:
                    await _abandon(channel, kill=not reply.begun)
        if not patience.cancelled_caught:
            return True
        error = silent_shell(self._host, self._handshake)
        if start.was_silent(error):
            return False
        raise error

    def _answer(self, channel: Channel, reply: _Reply, attempt: str) -> Answer:
        verdict, _, rest = (reply.said or "").partition(" ")
        if reply.excess:
            raise HostError(
                HostTrouble.UNREACHABLE,
                f"could not {attempt}: host {self._host} did not stop to talk; look at what its"
                " login files (.bashrc and the like) and its /bin/sh print",
            )
        if verdict == "no":
            raise TransportError(f"could not {attempt} on host {self._host}: {rest[:_REASON]}")
        if verdict == "yes" and reply.complete:
            return Answer(said=rest, content=bytes(reply.content))
        if channel.lost is not None:
            raise channel.lost
        heard = reply.noise.decode("utf-8", "replace").strip() or "nothing"
        message = (
            f"could not {attempt}: the shell of host {self._host} gave no answer"
            f" (exit {channel.exit_status}) and said: {heard}"
        )
        if verdict == "yes":  # it failed in the middle of what follows
            raise TransportError(message)
        raise HostError(HostTrouble.UNREACHABLE, message)


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


class _Reply:
    """What a shell says: that it has begun, its answer, what follows, and what is neither."""

    def __init__(self, words: Words, limit: int) -> None:
        self.begun = False
        self.said: str | None = None
        self.content = bytearray()
        self.complete = False
        self.noise = b""
        self._words = words
        self._limit = limit
        self._heard = 0

    @property
    def excess(self) -> bool:
        """Whether it said more than can be an answer."""
        return len(self.content) > self._limit or self._heard > self._limit + _FLOOD

    def hear(self, number: int, chunk: bytes) -> None:
        """Take a chunk of stdout (1) or stderr (2)."""
        self._heard += len(chunk)
        if number != 1:
            self._murmur(chunk)
            return
        for before, word in self._words.feed(chunk):
            if self.said is None:
                self._murmur(before)
            elif not self.complete:
                self.content += before
            if word is not None:
                self._understand(word)

    def _understand(self, word: str) -> None:
        if word == "end":
            self.complete = self.said is not None
        elif self.said is None:
            self.begun = True
            self.said = None if word == "here" else word

    def _murmur(self, chunk: bytes) -> None:
        self.noise = (self.noise + chunk)[-_NOISE:]


async def _abandon(channel: Channel, *, kill: bool) -> None:
    """Let what was asked see that nobody waits, or kill it, and wait until it is gone."""
    channel.write_eof()
    if kill:
        channel.kill()
    with trio.move_on_after(_ABANDON_BOUND, shield=True):
        async for _ in channel.output():
            pass
