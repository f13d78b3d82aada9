"""Asks a host's /bin/sh one thing at a time, each on a channel of its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import trio

from sortie.model import HostError, HostTrouble, TransportError
from sortie.transports.ssh.channel import Channel
from sortie.transports.ssh.connections import Connections
from sortie.transports.ssh.scripts import SHELL
from sortie.transports.ssh.starting import silent_shell
from sortie.transports.ssh.words import Words

ANSWER_BOUND = 60.0
"""Seconds in which a question is answered, where the caller gives no other bound."""

_NOISE = 500  # bytes of what a shell said instead of an answer that are shown
_ABANDON_BOUND = 2.0


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
    ) -> None:
        self._host = host
        self._connections = connections
        self._new_nonce = new_nonce
        self._handshake = handshake

    async def ask(
        self, attempt: str, write: Callable[[str], bytes], bound: float = ANSWER_BOUND
    ) -> Answer:
        """Run the question that ``write`` makes from a nonce; return what it says yes to.

        A question that nobody waits for any more is ended on the host. Raises TransportError
        with the reason where the answer is no, and HostError where there is none.
        """
        nonce = self._new_nonce()
        with trio.move_on_after(bound) as limit:
            async with self._connections.channel(SHELL) as channel:
                channel.write(write(nonce))
                reply = _Reply(Words(nonce))
                await self._listen(channel, reply)
                return self._answer(channel, reply, attempt)
        assert limit.cancelled_caught
        raise HostError(
            HostTrouble.UNREACHABLE,
            f"could not {attempt}: host {self._host} did not answer in {bound:g} s;"
            " look at its load and its file systems",
        )

    async def _listen(self, channel: Channel, reply: _Reply) -> None:
        """Hear all that the shell says. Raises HostError where it does not begin in time."""
        closed = False
        with trio.move_on_after(self._handshake) as patience:
            try:
                async for number, chunk in channel.output():
                    reply.hear(number, chunk)
                    if reply.begun:
                        patience.deadline = math.inf
                closed = True
            finally:
                if not closed:
                    await _abandon(channel, kill=not reply.begun)
        if patience.cancelled_caught:
            raise silent_shell(self._host, self._handshake)

    def _answer(self, channel: Channel, reply: _Reply, attempt: str) -> Answer:
        if channel.lost is not None:
            raise channel.lost
        verdict, _, rest = (reply.said or "").partition(" ")
        if verdict == "no":
            raise TransportError(f"could not {attempt} on host {self._host}: {rest}")
        if verdict == "yes" and channel.exit_status == 0:
            return Answer(said=rest, content=bytes(reply.content))
        heard = reply.noise.decode("utf-8", "replace").strip() or "nothing"
        message = (
            f"could not {attempt}: the shell of host {self._host} gave no answer"
            f" (exit {channel.exit_status}) and said: {heard}"
        )
        if verdict == "yes":  # it failed in the middle of what follows
            raise TransportError(message)
        raise HostError(HostTrouble.UNREACHABLE, message)


class _Reply:
    """What a shell says: that it has begun, its answer, what follows, and what is neither."""

    def __init__(self, words: Words) -> None:
        self.begun = False
        self.said: str | None = None
        self.content = bytearray()
        self.noise = b""
        self._words = words

    def hear(self, number: int, chunk: bytes) -> None:
        """Take a chunk of stdout (1) or stderr (2)."""
        if number != 1:
            self._murmur(chunk)
        elif self.said is not None:
            self.content += chunk
        else:
            self._look_for_words(chunk)

    def _look_for_words(self, chunk: bytes) -> None:
        for before, word in self._words.feed(chunk):
            if self.said is not None:
                self.content += before
            else:
                self._murmur(before)
                self.begun |= word is not None
                self.said = None if word == "here" else word
        if self.said is not None:
            self.content += self._words.close()

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
