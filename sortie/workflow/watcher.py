"""Watch a WORKFLOW.md and the files that it names, however they are replaced.

A thread looks at them once a second: that sees an editor's rename, a change behind a link and a
directory that went and came back alike, and a look costs next to nothing. Watching the directory
would cost more, as the database is written there too.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import trio

from sortie.resources import Shortage, run_in_thread

_LOOK = 1.0  # seconds between two looks
_SETTLING = 0.1  # seconds that the few steps of one save take
_Paths = Callable[[], tuple[Path, ...]]
_Stamp = tuple[tuple[Path, tuple[int, ...] | None], ...]


async def watch(paths: _Paths, notify: Callable[[], None]) -> None:
    """Call ``notify`` after each change of one of the files, its coming and going included.

    It is called once at first, for a change that came between reading the file and watching it.
    Runs until cancelled.
    """
    seen: _Stamp = ()
    wait_for: Callable[[_Paths, _Stamp, threading.Event], _Stamp] = _first_stamp
    while True:
        left = threading.Event()
        try:
            seen = await run_in_thread(wait_for, paths, seen, left, abandon_on_cancel=True)
        except Shortage:
            await trio.sleep(_LOOK)
            continue
        finally:
            left.set()
        notify()
        wait_for = _next_stamp


def _first_stamp(paths: _Paths, _seen: _Stamp, _left: threading.Event) -> _Stamp:
    return _stamps(paths)


def _next_stamp(paths: _Paths, seen: _Stamp, left: threading.Event) -> _Stamp:
    """Return the files' stamps once they differ from ``seen``, or the watch has ended."""
    while not left.wait(_LOOK):
        if _stamps(paths) != seen:
            left.wait(_SETTLING)
            break
    return _stamps(paths)


def _stamps(paths: _Paths) -> _Stamp:
    return tuple((path, _stamp(path)) for path in paths())


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Return what tells a file from its earlier versions, None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size)
