"""How many files this process may have open, and a few that it keeps back for bad times.

Rule: programs that are started get the soft limit that this process was started with, because
many (select(2), or a loop that closes every possible descriptor) do not cope with a large one.
"""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, cast

RESERVED_DESCRIPTORS = 8
"""Descriptors kept back for looks at processes: a run is over only when they can be looked at."""

_OPEN_FILES = "/proc/self/fd"
_MARGIN = 64  # descriptors that others may open while a program is started


class _Limits:
    """The limit that this process was started with, None while it is still in force."""

    def __init__(self) -> None:
        self.inherited: int | None = None
        self.starting = 0
        self.lock = threading.Lock()


class _Reserve:
    """The descriptors kept back now; ``wanted`` is how many that should be."""

    def __init__(self) -> None:
        self.wanted = 0
        self.kept: list[int] = []


_limits = _Limits()
_reserve = _Reserve()


def own(fd: int, mode: str) -> BinaryIO:
    """Return a file that closes a descriptor; closes it at once where no file can be made of it.

    ``open`` leaves it open then, for one of a directory for instance.
    """
    file: BinaryIO | None = None
    try:
        file = cast(BinaryIO, os.fdopen(fd, mode))
    finally:
        if file is None:
            os.close(fd)
    return file


def raise_limit() -> int:
    """Allow this process as many open files as it may have; return how many that are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            return soft
        _limits.inherited = _limits.inherited or soft
    return hard


def limit_of_programs() -> int:
    """Return the soft limit of open files that programs begin with."""
    return _limits.inherited or open_files_limit()


def open_files_limit() -> int:
    """Return how many files this process may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def keep_reserve() -> None:
    """Hold ``RESERVED_DESCRIPTORS`` back, or as many of them as can be had; also again after a
    shortage, in which other tasks may have taken what was released."""
    _reserve.wanted = RESERVED_DESCRIPTORS
    _fill_reserve()


@contextmanager
def released_reserve() -> Iterator[None]:
    """Let the block use what is kept back."""
    _empty_reserve()
    try:
        yield
    finally:
        _fill_reserve()


def give_up_reserve() -> None:
    """Hold nothing back any more."""
    _reserve.wanted = 0
    _empty_reserve()


def _fill_reserve() -> None:
    with suppress(OSError):
        while len(_reserve.kept) < _reserve.wanted:
            _reserve.kept.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))


def _empty_reserve() -> None:
    while _reserve.kept:
        os.close(_reserve.kept.pop())


@contextmanager
def inherited_limit() -> Iterator[None]:
    """Have programs that the block starts begin with the limit that this process began with.

    The limit is the process's, so it is lowered only where others have room below it meanwhile.
    Several threads may be in such a block at once.
    """
    if _limits.inherited is None or not _has_room_below(_limits.inherited):
        yield
        return
    with _limits.lock:
        _limits.starting += 1
        _set_soft(_limits.inherited)
    try:
        yield
    finally:
        with _limits.lock:
            _limits.starting -= 1
            if not _limits.starting:
                _set_soft(resource.getrlimit(resource.RLIMIT_NOFILE)[1])


def _set_soft(soft: int) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, hard), hard))


def _has_room_below(limit: int) -> bool:
    try:
        # Linux tells their number as the size since 6.2: to list thousands takes a millisecond.
        taken = os.stat(_OPEN_FILES).st_size or sum(
            int(name) < limit for name in os.listdir(_OPEN_FILES)
        )
    except OSError:
        return False
    return taken + _MARGIN <= limit
