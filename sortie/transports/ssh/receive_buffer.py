"""What one session of a host has sent, on its way from the asyncio thread to trio.

Rule 1: the asyncio thread adds, trio takes; each writes only the fields said to be its own.
Rule 2: chunks are taken in the order in which they came, and all of them before the end is seen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import trio

from sortie.model import HostError
from sortie.transports.ssh.asyncio_thread import AsyncioThread, Waker
from sortie.transports.ssh.protocol import Dialogue

# What may wait for trio in one channel; as much again may be on its way (asyncssh's window).
HIGH = 256 * 1024
LOW = 64 * 1024

BACKLOG = 1 << 20
"""Bytes that wait at most where the host is not held back; what comes then is dropped."""


class ReceiveBuffer:
    """Chunks of output and how it ended; ``when_closed`` is called in trio, once, at the end."""

    def __init__(
        self,
        thread: AsyncioThread,
        when_closed: Callable[[], object],
        dialogue: Dialogue | None = None,
    ) -> None:
        self.dialogue = dialogue
        self.waker = Waker(thread)
        self.chunks: deque[tuple[int, bytes]] = deque()
        self.words: deque[str] = deque()  # of the dialogue, that trio has to hear
        # The asyncio thread's:
        self.received = 0
        self.stalled = False  # reading is paused until trio has caught up
        self.ended = False
        self.exit_status: int | None = None
        self.exit_signal: str | None = None
        self.lost: HostError | None = None
        self._full = False  # something was dropped, so all that follows is
        # The trio thread's:
        self.taken = 0
        self.drains = False  # the host is not held back any more
        self.exited = trio.Event()
        self.over = trio.Event()  # all is said that we have to wait for
        self.closed = trio.Event()
        self._thread = thread
        self._when_closed = when_closed

    @property
    def waiting(self) -> int:
        """How many bytes have come and were not taken."""
        return self.received - self.taken

    @property
    def has_exit(self) -> bool:
        """Whether it is known how the command ended."""
        return self.exit_status is not None or self.exit_signal is not None

    @property
    def overflows(self) -> bool:
        """Whether the host is to be held back."""
        return self.waiting > HIGH and not self.drains

    @property
    def has_room(self) -> bool:
        """Whether the host is to be held back no longer."""
        return self.waiting <= LOW or self.drains

    def receive(self, number: int, chunk: bytes) -> bool:
        """Take what has come; return whether the dialogue's GO is to be said now.

        Trio is not told of the word that it is the answer to: more will come. Called on the
        asyncio thread.
        """
        if self.dialogue is None:
            self._add(number, chunk)
            self.waker.poke()
            return False
        news = go = False
        for output, word in self.dialogue.hear(number, chunk):
            if output:
                self._add(number, output)
                news = True
            if word is not None:
                self.words.append(word)
                if self.dialogue.consent(word):
                    go = True
                else:
                    news = True
        if news:
            self.waker.poke()
        if self.dialogue.gone:  # who stays may hold the channel open for ever
            self.settle()
        return go

    def exit(self) -> None:
        """Note that the exit is known. Called on the asyncio thread."""
        self._thread.to_trio(self.exited.set)

    def settle(self) -> None:
        """Note that nothing more is to be waited for, though the channel is open. Called on the
        asyncio thread.
        """
        self._thread.to_trio(self._settle)

    def end(self, lost: HostError | None) -> None:
        """Note that nothing more will come. Called on the asyncio thread."""
        if self.dialogue is not None:
            for number, chunk in self.dialogue.close():
                if chunk:
                    self._add(number, chunk)
        self.lost = lost
        self.ended = True
        self._thread.to_trio(self._close)

    def take(self) -> tuple[int, bytes] | None:
        """Return the next chunk, if there is one."""
        if not self.chunks:
            return None
        number, chunk = self.chunks.popleft()
        self.taken += len(chunk)
        return number, chunk

    def _add(self, number: int, chunk: bytes) -> None:
        self._full |= self.drains and self.waiting >= BACKLOG
        if not self._full:
            self.chunks.append((number, chunk))
            self.received += len(chunk)

    def _settle(self) -> None:
        self.over.set()
        self.waker.fire()

    def _close(self) -> None:
        self.exited.set()
        self.over.set()
        self.closed.set()
        self.waker.fire()
        self._when_closed()
