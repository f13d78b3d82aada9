"""The pipes of a process: its input is written to it, its output read as fast as it is taken.

Rule 1: nothing is read before it is asked for; a slow reader slows the program down.
Rule 2: what was in a pipe when its writer exited is read to the last byte, though other processes
still hold the pipe.
"""

from __future__ import annotations

import fcntl
import os
import selectors
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager, suppress

import trio
import trio.abc

from sortie.transports import Command

CHUNK = 65536
"""Bytes read at once: what a pipe holds by default."""

Chunk = tuple[int, bytes]


class Output:
    """The output of one process, chunks of bytes with the number of the pipe they came from.

    ``pipes`` are descriptors by their numbers; they belong to the output. One selector waits for
    all of them, and trio waits for its descriptor.
    """

    def __init__(self, pipes: dict[int, int]) -> None:
        self._fds = pipes
        self.selector = selectors.DefaultSelector()
        self._open = list(pipes)
        self._ready: list[int] = []
        self._left: dict[int, int] | None = None  # bytes to read of each pipe, once it ends
        self._is_read = False
        self._closed = False
        for number, fd in pipes.items():
            os.set_blocking(fd, False)
            self.selector.register(fd, selectors.EVENT_READ, number)

    def read(self) -> AsyncIterator[Chunk]:
        """Return the iterator of the chunks. Raises RuntimeError the second time."""
        if self._is_read:
            raise RuntimeError("the output of a process can be iterated once")
        self._is_read = True
        return self

    def __aiter__(self) -> AsyncIterator[Chunk]:
        return self

    async def __anext__(self) -> Chunk:
        while self._open:
            if not self._ready:
                await self._wait()
            if self._closed:
                raise trio.ClosedResourceError
            while self._ready:
                number = self._ready.pop(0)
                if chunk := self._read(number):
                    return number, chunk
        raise StopAsyncIteration

    async def _wait(self) -> None:
        """Wait until there is something to read, or ``end`` or ``close`` is called."""
        if self._left is None and not self._closed:
            with suppress(trio.ClosedResourceError):  # by ``end`` or ``close``
                await trio.lowlevel.wait_readable(self.selector)
        else:
            await trio.lowlevel.checkpoint()
        if self._left is not None or self._closed:
            self._ready = [*self._open]
        else:
            self._ready = [key.data for key, _ in self.selector.select(0)]

    def _read(self, number: int) -> bytes:
        """Read from a pipe; empty where there is nothing now, or nothing will be any more."""
        fd, chunk = self._fds[number], b""
        try:
            chunk = os.read(fd, CHUNK)
        except BlockingIOError:
            if self._left is None:
                return b""
        if self._left is not None:
            self._left[number] -= len(chunk)
        if not chunk or (self._left is not None and self._left[number] <= 0):
            self._open.remove(number)
            self.selector.unregister(fd)
        return chunk

    def end(self) -> None:
        """Let the output end after what the pipes hold now, though another process holds them."""
        if self._left is None and not self._closed:
            self._left = {number: _capacity(self._fds[number]) for number in self._open}
            trio.lowlevel.notify_closing(self.selector)

    def close(self) -> None:
        """Read no more."""
        self._closed = True
        trio.lowlevel.notify_closing(self.selector)
        self.selector.close()
        for fd in self._fds.values():
            os.close(fd)


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
        """Send no more, as the program has exited, whatever process still holds its stdin."""
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
    """This process's ends of the pipes of a program.

    ``stdin`` is None where the command does not ask for one that can be written, and until
    ``feed`` is called.
    """

    def __init__(self, output: Output, stdin: int | None, content: bytes | None) -> None:
        self.output = output
        self.stdin: Input | None = None
        self._fd = stdin
        self._content = content
        self._stream: trio.lowlevel.FdStream | None = None

    @classmethod
    @contextmanager
    def opened(cls, command: Command) -> Iterator[tuple[Pipes, tuple[int, int, int]]]:
        """Have pipes, and the program's ends of them as its stdin, stdout and stderr.

        The program's ends are closed after the block, all of them where it raises.
        """
        with ExitStack() as kept, ExitStack() as given:
            stdin, ours = subprocess.DEVNULL, None
            if command.stdin is not None:
                stdin, ours = _pipe(given, kept)
            stdout, given_stdout = _pipe(kept, given)
            stderr, given_stderr = _pipe(kept, given)
            content = command.stdin if isinstance(command.stdin, bytes) else None
            output = Output({1: stdout, 2: stderr})
            kept.callback(output.selector.close)
            pipes = cls(output, ours, content)
            yield pipes, (stdin, given_stdout, given_stderr)
            kept.pop_all()

    def feed(self, nursery: trio.Nursery) -> None:
        """Have the program's stdin written: in a task where its content is known."""
        if self._fd is None:
            return
        self._stream, self._fd = trio.lowlevel.FdStream(self._fd), None
        if self._content is None:
            self.stdin = Input(self._stream)
        else:
            nursery.start_soon(_feed, self._stream, self._content)

    def end_stdin(self) -> None:
        """Have nothing sent any more."""
        if self.stdin is not None:
            self.stdin.end()

    def close(self) -> None:
        """Read and write no more."""
        self.end_stdin()
        self.output.close()
        if self._stream is not None:
            self._stream.close()
        elif self._fd is not None:
            os.close(self._fd)


async def _feed(stream: trio.abc.SendStream, content: bytes) -> None:
    """Give a process all its input and close it; a process may well read none of it."""
    try:
        async with stream:
            await stream.send_all(content)
    except trio.BrokenResourceError:
        return


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    """Return the ends of a new pipe, each of which its stack closes."""
    read, write = os.pipe()
    reader.callback(os.close, read)
    writer.callback(os.close, write)
    return read, write


def _capacity(fd: int) -> int:
    """Return how many bytes a pipe can hold; that is the most that waits in it."""
    command = getattr(fcntl, "F_GETPIPE_SZ", None)
    return CHUNK if command is None else fcntl.fcntl(fd, command)
