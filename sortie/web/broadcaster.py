"""Tell many listeners what changes, while each change is made and encoded once for all of them.

A feed says what there is and what has changed since it was last asked; the broadcaster asks it,
numbers what it says, and hands the same bytes to every listener. A stream of other things, such as
fragments of a page, is another feed with a broadcaster of its own.

Rule 1: without a listener the feed is not asked.
Rule 2: however much happens, the feed is asked once in ``Pace.shortest`` seconds at most, and takes
no more than a twenty-fifth of the time; every ``Pace.longest`` seconds it is asked anyway.
Rule 3: a listener with ``BUFFER`` unread updates is dropped; the others do not wait for it.
Rule 4: an id belongs to one daemon's life. A listener that comes back with such an id gets what it
missed, if that is still kept; any other listener gets everything first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import trio
from msgspec import Struct

BUFFER = 16
"""Updates that a listener may have unread: at one a second more than a busy browser needs."""

KEPT_UPDATES, KEPT_BYTES = 100, 1024 * 1024
"""Updates, and bytes of them, that are kept for listeners that come back: some minutes."""

_GATHERING = 0.05
"""Seconds from the first sign of a change to the look, so that related changes come together."""

_PAUSE_FACTOR = 25


class Message(Struct, frozen=True, kw_only=True):
    """One event; ``data`` is UTF-8 of any number of lines."""

    event: str
    data: bytes


class Feed(Protocol):
    """What a broadcaster sends; both methods return at once."""

    def changes(self) -> Sequence[Message]:
        """Look again, and return what is different since the last look; nothing on the first."""

    def whole(self) -> Sequence[Message]:
        """Return everything as of the last look, for a new listener."""


class Pace(Struct, frozen=True, kw_only=True):
    """Seconds between two looks at a feed: at least, and at most while there are listeners."""

    shortest: float = 1.0
    longest: float = 5.0


class Subscriber:
    """One client of a broadcaster."""

    def __init__(self, first: Sequence[bytes], on_drop: Callable[[], object]) -> None:
        self._send, self._receive = trio.open_memory_channel[bytes](BUFFER + len(first))
        self._on_drop = on_drop
        for block in first:
            self._send.send_nowait(block)

    @property
    def waiting(self) -> int:
        """How many updates lie unread."""
        return self._receive.statistics().current_buffer_used

    async def next_block(self) -> bytes | None:
        """Wait for bytes to be sent as they are; None once the listener is dropped."""
        try:
            return await self._receive.receive()
        except trio.EndOfChannel:
            return None

    def offer(self, block: bytes) -> bool:
        """Hand over an update; return False where there is no room for it."""
        try:
            self._send.send_nowait(block)
        except trio.WouldBlock:
            return False
        return True

    def drop(self) -> None:
        """Send nothing more. Safe more than once."""
        self._send.close()
        self._on_drop()


class Broadcaster:
    """A feed and its listeners.

    ``epoch`` is unique to this daemon's life; ids begin with it.
    """

    def __init__(self, feed: Feed, epoch: str, pace: Pace | None = None) -> None:
        self._feed = feed
        self._epoch = epoch
        self._pace = Pace() if pace is None else pace
        self._number = 0
        self._kept: deque[tuple[int, bytes]] = deque()
        self._kept_bytes = 0
        self._listeners: set[Subscriber] = set()
        self._listened = trio.Event()
        self._notified = trio.Event()

    @property
    def last_id(self) -> str:
        """The id of the last look; a page made from that look has missed nothing."""
        return f"{self._epoch}-{self._number}"

    @property
    def listeners(self) -> int:
        """How many listen now."""
        return len(self._listeners)

    @property
    def is_notified(self) -> bool:
        """Whether something may have changed since the last look."""
        return self._notified.is_set()

    def notify(self) -> None:
        """Say that something may have changed; costs next to nothing, also without listeners."""
        self._notified.set()

    async def run(self) -> None:
        """Look, and send what changed, until cancelled. Raises what the feed raises."""
        while True:
            await self._listened.wait()
            with trio.move_on_after(self._pace.longest):
                await self._notified.wait()
                await trio.sleep(_GATHERING)
            self._notified = trio.Event()
            began = trio.current_time()
            if self._listeners:
                self._look()
            took = trio.current_time() - began
            await trio.sleep(max(self._pace.shortest, took * _PAUSE_FACTOR))

    def look_now(self) -> str:
        """Look at once, send what has changed, and return the id of this look.

        A page that shows the state in another way listens from this id on.
        """
        self._look()
        return self.last_id

    def drop_all(self) -> None:
        """Drop every listener."""
        for listener in tuple(self._listeners):
            self._drop(listener)

    @contextmanager
    def listening(
        self, last_id: str | None, on_drop: Callable[[], object] = lambda: None
    ) -> Iterator[Subscriber]:
        """Listen for the length of the block, from after ``last_id`` on.

        ``on_drop`` is called when the listener is dropped for being slow.
        """
        if not self._listeners:
            self._look()  # without listeners there were no looks
        missed = self._missed(last_id)
        listener = Subscriber([self._everything()] if missed is None else missed, on_drop)
        self._listeners.add(listener)
        self._listened.set()
        try:
            yield listener
        finally:
            self._listeners.discard(listener)
            if not self._listeners:
                self._listened = trio.Event()

    def _look(self) -> None:
        messages = self._feed.changes()
        if not messages:
            return
        self._number += 1
        block = _block(messages, self.last_id)
        self._keep(block)
        for listener in tuple(self._listeners):
            if not listener.offer(block):
                self._drop(listener)

    def _drop(self, listener: Subscriber) -> None:
        self._listeners.discard(listener)
        listener.drop()

    def _keep(self, block: bytes) -> None:
        self._kept.append((self._number, block))
        self._kept_bytes += len(block)
        while len(self._kept) > KEPT_UPDATES or self._kept_bytes > KEPT_BYTES:
            _, oldest = self._kept.popleft()
            self._kept_bytes -= len(oldest)

    def _missed(self, last_id: str | None) -> list[bytes] | None:
        """Return the updates after an id; None where the id is unknown or they are not kept."""
        epoch, _, written = (last_id or "").rpartition("-")
        if epoch != self._epoch or not (written.isascii() and written.isdigit()):
            return None
        if len(written) > len(str(self._number)) or int(written) > self._number:
            return None
        first = self._number - len(self._kept)  # what is kept follows this number
        if int(written) < first:
            return None
        return [block for number, block in self._kept if number > int(written)]

    def _everything(self) -> bytes:
        return _block(self._feed.whole(), self.last_id)


def _block(messages: Sequence[Message], id_: str) -> bytes:
    """Encode events that belong together.

    Only the last has the id: a listener that is cut off before it has not got them all.
    """
    blocks = [b"event: %b\n%b" % (m.event.encode(), _data(m.data)) for m in messages]
    if blocks:
        blocks[-1] = b"id: %b\n%b" % (id_.encode(), blocks[-1])
    return b"".join(block + b"\n" for block in blocks)


def _data(data: bytes) -> bytes:
    # A carriage return ends a line as well (HTML, 9.2.6).
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return b"".join(b"data: %b\n" % line for line in lines)
