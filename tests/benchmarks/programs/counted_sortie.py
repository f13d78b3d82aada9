"""``sortie`` with counters: ``counted_sortie.py FILE ARGUMENTS...``, see ``main``."""

from __future__ import annotations

import gc
import mmap
import struct
import subprocess
import sys
import threading
import time
from typing import Any

import trio

CELLS = ("collections", "seconds of collections", "threads", "programs", "threads woken for work")
"""What FILE holds, as numbers of eight bytes, in this order."""


class Counters:
    """The numbers in a file that others can read meanwhile."""

    def __init__(self, path: str) -> None:
        with open(path, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 8 * len(CELLS))
        self._began = 0.0

    def add(self, cell: str, amount: float = 1.0) -> None:
        """Count something."""
        place = 8 * CELLS.index(cell)
        (before,) = struct.unpack_from("d", self._memory, place)
        struct.pack_into("d", self._memory, place, before + amount)

    def count_calls(self, module: object, function: str, cell: str) -> None:
        """Count the calls of a function."""
        called = getattr(module, function)

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.add(cell)
            return called(*args, **kwargs)

        setattr(module, function, counted)

    def collecting(self, phase: str, _info: object) -> None:
        """Count a collection of garbage, and the processor time that it takes."""
        now = time.thread_time()
        if phase == "start":
            self._began = now
        else:
            self.add("collections")
            self.add("seconds of collections", now - self._began)


def main() -> int:
    """Be ``sortie`` with the remaining arguments, and count."""
    counters = Counters(sys.argv.pop(1))
    counters.count_calls(threading, "_start_new_thread", "threads")
    counters.count_calls(subprocess, "_fork_exec", "programs")
    counters.count_calls(trio.lowlevel, "start_thread_soon", "threads woken for work")
    gc.callbacks.append(counters.collecting)
    from sortie.cli import main as sortie  # so that it finds the counters

    return sortie() or 0


if __name__ == "__main__":
    sys.exit(main())
