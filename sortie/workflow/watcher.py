"""Watch a WORKFLOW.md, however it is replaced.

Its directory is watched, because editors replace files instead of writing to them. What the system
reports is a hint to look again; a look every second sees what it does not report, such as a change
behind a link, or a directory that went and came back.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path

import trio
from watchfiles import awatch

from sortie.resources import Shortage, run_in_thread

_LOOK_MS = 1_000
_DEBOUNCE_MS = 100  # an editor's few steps of one save
_Stamp = tuple[int, ...] | None


async def watch(path: Path, notify: Callable[[], None]) -> None:
    """Call ``notify`` after each change of a file, its coming and going included.

    It is called once at first, for a change that came between reading the file and watching it.
    Runs until cancelled; where watching fails it looks again every second instead.
    """
    seen = await _look(path, None)
    notify()
    while True:
        async with aclosing(_hints(path.absolute().parent)) as hints:
            async for names in hints:
                now = await _look(path, seen)
                if path.name in names or now != seen:
                    notify()
                seen = now


async def _hints(directory: Path) -> AsyncGenerator[frozenset[str], None]:
    """Yield at least every second, with the names of files that changed; end after trouble."""
    changes = awatch(
        directory,
        watch_filter=None,
        debounce=_DEBOUNCE_MS,
        rust_timeout=_LOOK_MS,
        yield_on_timeout=True,
        recursive=False,
    )
    try:
        async with aclosing(changes):
            async for changed in changes:
                yield frozenset(os.path.basename(name) for _, name in changed)
    except (OSError, RuntimeError, ExceptionGroup):
        pass  # no watches left, or no such directory: looking must do
    await trio.sleep(_LOOK_MS / 1000)
    yield frozenset()


async def _look(path: Path, seen: _Stamp) -> _Stamp:
    """Return a file's stamp, and ``seen`` where a shortage keeps that from being known."""
    try:
        return await run_in_thread(_look_now, path, abandon_on_cancel=True)
    except Shortage:
        return seen


def _look_now(path: Path) -> _Stamp:
    """Return what tells a file from its earlier versions, None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size)
