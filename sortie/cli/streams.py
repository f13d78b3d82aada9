"""The standard streams of a command: buffered or not, broken, full, or missing from the start.

Python keeps what it could not write, tries again while it shuts down, complains about that in its
own words and exits with 120. Here a failure is told once, by the writer, and forgotten.

Rule 1: output that fails raises ReaderGone or OutputFailed, also inside a library; what is written
after that is dropped.
Rule 2: stderr that fails drops what it was given, and takes the next text as if nothing had been.
Rule 3: the descriptors 0, 1 and 2 are open, so that no file of ours is taken for one of them.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, BinaryIO, NoReturn, cast

from sortie.cli.output import OutputFailed, ReaderGone

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


@contextlib.contextmanager
def guarded_streams() -> Iterator[None]:
    """Guard the process's streams from here on, and empty them at the end of the block."""
    _open_missing()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout = _over(sys.stdout, _refuse)
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = _over(sys.stderr, None)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                with contextlib.suppress(ReaderGone, OutputFailed):
                    stream.flush()


def _open_missing() -> None:
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free number is the one that is missing.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def _over(stream: io.TextIOWrapper, fail: Callable[[OSError], NoReturn] | None) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        cast(BinaryIO, _Output(stream.fileno(), fail)),
        encoding=stream.encoding,
        errors="backslashreplace",  # no text may fail because the terminal lacks a character
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _refuse(error: OSError) -> NoReturn:
    if isinstance(error, BrokenPipeError):
        raise ReaderGone from error
    raise OutputFailed(f"cannot write to standard output: {error.strerror}") from error


class _Output(io.RawIOBase):
    """A descriptor that takes all it is given.

    It fails at most once, by what ``fail`` raises; without ``fail``, never.
    """

    def __init__(self, descriptor: int, fail: Callable[[OSError], NoReturn] | None) -> None:
        self._descriptor = descriptor
        self._fail = fail
        self._failed = False

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        rest = memoryview(data).cast("B")
        size = len(rest)
        try:
            while rest and not self._failed:
                rest = rest[self._put(rest) :]
        except OSError as error:
            if self._fail is not None:
                self._failed = True
                self._fail(error)
        return size

    def _put(self, data: memoryview) -> int:
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:  # some other process made the terminal or pipe non-blocking
            select.select((), (self._descriptor,), ())
            return 0
