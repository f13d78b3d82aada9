"""One program on another machine with its stdin and its output, whatever link carries it.

Rule: items are taken in the order in which they came, and all of them before the end is seen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque

import trio

from sortie.model import HostError
from sortie.resources.lease import Lease
from sortie.transports.remote.protocol import Item, ScriptOutput

PAUSE_ABOVE = 256 * 1024
"""Bytes that may wait to be taken in one channel before no more are read."""

BACKLOG = 1 << 20
"""Bytes that wait at most where the program is not held back; what comes then is dropped."""

_MESSAGE_COST = 256  # bytes


class Channel(ABC):
    """A program whose output is taken in trio; ``parser`` makes items of what it writes.

    Closing the channel does not end the program: it has to watch its stdin, which ends with
    ``write_eof`` or ``abort``, with the link, and with this process.
    ``_append`` may be called in another thread than the methods that take items.
    """

    def __init__(self, parser: ScriptOutput) -> None:
        self.parser = parser
        self.exit_status: int | None = None
        """The program's exit status, 0 to 255; None where there is none (yet)."""
        self.exit_signal: str | None = None
        """The signal that ended the program, without SIG; None where there is none (yet)."""
        self.lost: HostError | None = None
        """Why the link was lost (DROPPED) before the exit, or before all output had come.

        Without it, a closed channel has a status or a signal, unless it was aborted.
        """
        self.carrier: object = None
        """The connection that carries it, where several may."""
        self.lease: Lease | None = None
        """The lease of the workflow that it works for: signs of life are sent while that holds."""
        self.exited = trio.Event()
        """The program has exited, or nothing more will be heard of it; output may still come."""
        self.closed = trio.Event()
        """Both sides have closed the channel; what came before may still wait to be read."""
        self.over = trio.Event()
        """It is closed, or the watchdog has said its last message: what holds the channel open may
        do so for ever. It does not close while output waits to be read, unless ``finish`` was
        called."""
        self._items: deque[Item] = deque()
        self._received = 0  # bytes, counted where items are appended
        self._taken = 0  # bytes, counted where they are taken
        self._drains = False
        self._dropped = False  # so all that follows is dropped, too
        self._aborted = False
        self._news = trio.Event()

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Write to the program's stdin, in order, without waiting.

        What is written after the end of the program or of its stdin is dropped.
        """

    @abstractmethod
    async def send(self, data: bytes | bytearray | memoryview) -> bool:
        """Write as fast as the other side takes it; return whether it has taken all.

        It has not where the program or its stdin has ended before. Cancelled, part of it may have
        been written.
        """

    @abstractmethod
    def write_eof(self) -> None:
        """End the program's stdin after what was written."""

    @abstractmethod
    def finish(self) -> None:
        """End the program's stdin, and take all that it still says, whether that is read or not.

        A reader that falls more than BACKLOG behind then loses the rest.
        """

    @abstractmethod
    def beat(self, seconds: float, first: bytes = b"") -> None:
        """Write ``first``, and then a line every so many seconds."""

    @abstractmethod
    def stop_beating(self) -> None:
        """Write no more lines by itself."""

    @abstractmethod
    def kill(self) -> None:
        """Ask for the death of a program that does not watch its stdin, where the link can."""

    @abstractmethod
    def abort(self) -> None:
        """Close the channel at once and drop what is still to come."""

    @abstractmethod
    def _resume_reading(self) -> None:
        """Note that an item was taken, so that there may be room for more."""

    def conclude(self) -> None:
        """Have ``receive`` return None behind what has come."""
        self.over.set()
        self._wake()

    async def receive(self) -> Item | None:
        """Return the next item that has come; None where the channel is over.

        For one task at a time. While nobody receives, at most 512 KiB wait here, and the program
        waits to write.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        while True:
            # Before the look at what is there, or the last item could be missed.
            over, news = self.over.is_set(), self._news
            item = self.take()
            if item is not None:
                await trio.lowlevel.cancel_shielded_checkpoint()
                return item
            if over:
                return None
            await news.wait()

    def take(self) -> Item | None:
        """Return the next item without waiting, if there is one."""
        if self._aborted or not self._items:
            return None
        item = self._items.popleft()
        self._taken += _size(item)
        self._resume_reading()
        return item

    @property
    def is_empty(self) -> bool:
        """Whether all that has come was taken."""
        return not self._items

    def _append(self, item: Item) -> bool:
        """Keep an item until it is taken; return whether it is kept."""
        self._dropped |= self._drains and self._received - self._taken >= BACKLOG
        if not _size(item) or self._dropped:
            return False
        self._items.append(item)
        self._received += _size(item)
        return True

    def _has_room(self, limit: int = PAUSE_ABOVE) -> bool:
        return self._drains or self._received - self._taken <= limit

    def _end(self) -> None:
        """Note that nothing more comes."""
        for event in (self.exited, self.over, self.closed):
            event.set()
        self._wake()

    def _wake(self) -> None:
        """Have a reader look again."""
        self._news.set()
        self._news = trio.Event()


def _size(item: Item) -> int:
    """Return how much memory an item takes, about."""
    return len(item[1]) + (0 if item[2] is None else _MESSAGE_COST + len(item[2]))
