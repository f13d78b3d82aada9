"""What one session of a host has sent, on its way from the asyncio thread to trio.

Rule 1: the asyncio thread adds, trio takes; each writes only the fields said to be its own.
Rule 2: chunks are taken in the order in which they came, and all of them before the end is seen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import trio

from sortie.model import HostError
from sortie.transports.ssh.bridge import Bridge, Waker

# What may wait for trio in one channel; as much again may be on its way (asyncssh's window).
HIGH = 256 * 1024
LOW = 64 * 1024


class Inbox:
    """Chunks of output and how it ended; ``when_closed`` is called in trio, once, at the end."""

    def __init__(self, bridge: Bridge, when_closed: Callable[[], object]) -> None:
        self.waker = Waker(bridge)
        self.chunks: deque[tuple[int, bytes]] = deque()
        # The asyncio thread's:
        self.received = 0
        self.stalled = False  # reading is paused until trio has caught up
        self.ended = False
        self.exit_status: int | None = None
        self.exit_signal: str | None = None
        self.lost: HostError | None = None
        # The trio thread's:
        self.taken = 0
        self.exited = trio.Event()
        self.closed = trio.Event()
        self._bridge = bridge
        self._when_closed = when_closed

    @property
    def waiting(self) -> int:
        """How many bytes have come and were not taken."""
        return self.received - self.taken

    def add(self, number: int, chunk: bytes) -> None:
        """Add output. Called on the asyncio thread."""
        self.chunks.append((number, chunk))
        self.received += len(chunk)
        self.waker.poke()

    def exit(self) -> None:
        """Note that the exit is known. Called on the asyncio thread."""
        self._bridge.to_trio(self.exited.set)

    def end(self, lost: HostError | None) -> None:
        """Note that nothing more will come. Called on the asyncio thread."""
        self.lost = lost
        self.ended = True
        self.waker.poke()
        self._bridge.to_trio(self._close)

    def take(self) -> tuple[int, bytes] | None:
        """Return the next chunk, if there is one."""
        if not self.chunks:
            return None
        number, chunk = self.chunks.popleft()
        self.taken += len(chunk)
        return number, chunk

    def put_back(self, number: int, chunk: bytes) -> None:
        """Make a chunk the next one."""
        self.chunks.appendleft((number, chunk))
        self.taken -= len(chunk)

    def _close(self) -> None:
        self.exited.set()
        self.closed.set()
        self._when_closed()
