"""The pipes of a process: its input is written to it, its output read as fast as it is taken.

Rule 1: one chunk a pipe is in memory; a slow reader slows the program down.
Rule 2: what was in a pipe when its writer exited is read to the last byte, whoever else holds it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager

import trio
import trio.abc

from sortie.transports import Command, Stdin
from sortie.transports.local.spawn import ChildProcess

CHUNK = 65536
"""Bytes read at once: what a pipe holds by default."""

Chunk = tuple[int, bytes]


class Output:
    """The output of one process, chunks of bytes with the number of the pipe they came from."""

    def __init__(
        self, streams: Mapping[int, trio.abc.ReceiveStream], nursery: trio.Nursery
    ) -> None:
        self._streams = streams
        self._nursery = nursery
        self._receive: trio.MemoryReceiveChannel[Chunk] | None = None
        self._waiting: set[trio.CancelScope] = set()
        self._ending = False

    def read(self) -> AsyncIterator[Chunk]:
        """Begin to read, in tasks of the nursery. Raises RuntimeError the second time."""
        if self._receive is not None:
            raise RuntimeError("the output of a process can be iterated once")
        # No capacity: the next chunk is read when this one was taken.
        send, self._receive = trio.open_memory_channel[Chunk](0)
        with send:
            for number, stream in self._streams.items():
                self._nursery.start_soon(self._pump, number, _fileno(stream), send.clone())
        return self._receive

    def end(self) -> None:
        """Let the output end after what the pipes hold now, though somebody holds them open."""
        self._ending = True
        for scope in self._waiting:
            scope.cancel()

    def close(self) -> None:
        """Read no more."""
        if self._receive is not None:
            self._receive.close()

    async def _pump(self, number: int, fd: int, send: trio.MemorySendChannel[Chunk]) -> None:
        with send:
            left: int | None = None
            while left is None or left > 0:
                if self._ending and left is None:
                    left = _capacity(fd)
                try:
                    chunk = os.read(fd, CHUNK)
                except BlockingIOError:
                    if self._ending:
                        return
                    await self._readable(fd)
                    continue
                if not chunk:
                    return
                if left is not None:
                    left -= len(chunk)
                try:
                    await send.send((number, chunk))
                except trio.BrokenResourceError:
                    return

    async def _readable(self, fd: int) -> None:
        """Wait until there is something to read, or ``end`` is called."""
        with trio.CancelScope() as scope:
            self._waiting.add(scope)
            try:
                await trio.lowlevel.wait_readable(fd)
            finally:
                self._waiting.discard(scope)


class Input(trio.abc.SendStream):
    """The stdin of a program that is written while it runs; see ``Process.stdin``."""

    def __init__(self, stream: trio.abc.SendStream) -> None:
        self._stream = stream
        self._sending: set[trio.CancelScope] = set()
        self._exited = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes; raises as ``Process.stdin`` says."""
        with self._until_exit():
            await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until the pipe may have room; raises as ``send_all``."""
        with self._until_exit():
            await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        """Let the program read the end of its stdin."""
        await self._stream.aclose()

    def end(self) -> None:
        """Send no more, as the program has exited, whoever else holds its stdin."""
        self._exited = True
        for scope in self._sending:
            scope.cancel()

    @contextmanager
    def _until_exit(self) -> Iterator[None]:
        with trio.CancelScope() as scope:
            if self._exited:
                scope.cancel()
            self._sending.add(scope)
            try:
                yield
            finally:
                self._sending.discard(scope)
        if scope.cancelled_caught:
            raise trio.BrokenResourceError("the program has exited")


class Pipes:
    """What a process is given and what it says; its tasks live in ``nursery``.

    ``stdin`` is None where the command does not ask for one that can be written.
    """

    def __init__(self, root: ChildProcess, command: Command, nursery: trio.Nursery) -> None:
        assert root.stdout is not None
        assert root.stderr is not None
        self.output = Output({1: root.stdout, 2: root.stderr}, nursery)
        self.stdin: Input | None = None
        self._streams = (root.stdin, root.stdout, root.stderr)
        if root.stdin is None:
            return
        if command.stdin is Stdin.PIPE:
            self.stdin = Input(root.stdin)
        else:
            nursery.start_soon(_feed, root.stdin, command.stdin or b"")

    def end_stdin(self) -> None:
        """Have nothing sent any more."""
        if self.stdin is not None:
            self.stdin.end()

    async def close(self) -> None:
        """Read and write no more."""
        self.end_stdin()
        self.output.close()
        for stream in self._streams:
            if stream is not None:
                await stream.aclose()


async def _feed(stream: trio.abc.SendStream, content: bytes) -> None:
    """Give a process all its input and close it; a process may well read none of it."""
    try:
        async with stream:
            await stream.send_all(content)
    except trio.BrokenResourceError:
        return


def _fileno(stream: trio.abc.ReceiveStream) -> int:
    assert isinstance(stream, trio.lowlevel.FdStream)
    return stream.fileno()


def _capacity(fd: int) -> int:
    """Return how many bytes a pipe can hold; that is the most that waits in it."""
    command = getattr(fcntl, "F_GETPIPE_SZ", None)
    return CHUNK if command is None else fcntl.fcntl(fd, command)
