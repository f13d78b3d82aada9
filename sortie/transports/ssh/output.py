"""The output of a remote program between the channel it comes from and the one who reads it.

Rule 1: while the program may live on, one chunk waits here, so that a slow reader slows it down.
Rule 2: once it is being ended, whatever comes is taken, so that the host can say its last word;
a reader that falls more than BACKLOG behind then loses the rest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator

import trio

BACKLOG = 1 << 20

Chunk = tuple[int, bytes]


class Output:
    """Chunks of bytes with the number of the pipe that they came from."""

    def __init__(self) -> None:
        self._chunks: deque[Chunk] = deque()
        self._size = 0
        self._ending = False
        self._over = False
        self._reading = False
        self._changed = trio.Event()

    def read(self) -> AsyncIterator[Chunk]:
        """Begin to read. Raises RuntimeError the second time."""
        if self._reading:
            raise RuntimeError("the output of a process can be iterated once")
        self._reading = True
        return self._read()

    async def put(self, number: int, chunk: bytes) -> None:
        """Add a chunk when there is room for it."""
        while self._chunks and not self._ending:
            await self._changed.wait()
        if self._size < BACKLOG:
            self._chunks.append((number, chunk))
            self._size += len(chunk)
            self._change()

    def drain(self) -> None:
        """Wait for no reader any more."""
        self._ending = True
        self._change()

    def end(self) -> None:
        """Let the reader come to an end when it has read what there is."""
        self._over = True
        self._change()

    async def _read(self) -> AsyncIterator[Chunk]:
        while True:
            if self._chunks:
                number, chunk = self._chunks.popleft()
                self._size -= len(chunk)
                self._change()
                yield number, chunk
                if self._chunks:  # or else there is something to wait for
                    await trio.lowlevel.checkpoint()
            elif self._over:
                return
            else:
                await self._changed.wait()

    def _change(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
