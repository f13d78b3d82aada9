"""One of our scripts as it runs on a host, and the words that it says."""

from __future__ import annotations

from collections import deque

import trio

from sortie.model import HostError, HostTrouble, TransportError
from sortie.transports.ssh.channel import Channel
from sortie.transports.ssh.protocol import HERE, Words

ANSWER_LIMIT = 64 * 1024
"""Bytes that stand before a word at most, where the caller gives no other limit."""

_NOISE = 500  # bytes of what a shell said instead of an answer that are shown
_FLOOD = 4 * 1024 * 1024  # bytes of anything but an answer that are listened to
_ABANDON_BOUND = 2.0


class Conversation:
    """One of our scripts as it runs on a host; ``attempt`` says what for.

    Who sets ``is_over`` need not have it ended: it has ended, or ends by other means. ``rests``
    says that it is a shell which has answered, and works on nothing.
    """

    def __init__(self, host: str, attempt: str, channel: Channel, nonce: str) -> None:
        self.channel = channel
        self.attempt = attempt
        self.begun = False
        self.is_over = False
        self.rests = False
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

    async def verdict(self, limit: int = ANSWER_LIMIT) -> tuple[str, str, bytes]:
        """Return the first word behind the one that it is here, the rest of its line, and the at
        most ``limit`` bytes before it.

        Raises TransportError where there is none.
        """
        word = await self.next(limit)
        if word is not None and word[1] == HERE:
            word = await self.next(limit)
        if word is None:
            raise self.silence()
        verdict, _, rest = word[1].partition(" ")
        return verdict, rest, word[0]

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

    def rest(self) -> None:
        """Note that it has answered, unless it has said more than that."""
        self.rests = not self._ahead

    def silence(self, status: str = "") -> TransportError:
        """Return the error for an answer that did not come, or ended with that status."""
        if self.channel.lost is not None:
            return self.channel.lost
        heard = self._noise.decode("utf-8", "replace").strip() or "nothing"
        return HostError(
            HostTrouble.UNREACHABLE,
            f"could not {self.attempt}: the shell of host {self._host} gave no answer"
            f" (exit {status or self.channel.exit_status or self.channel.exit_signal})"
            f" and said: {heard}",
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
