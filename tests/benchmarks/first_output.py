"""Count the functions of Sortie between the appearance of an issue and its agent's first output.

python -m tests.benchmarks.first_output [--list]

A daemon runs in this process, with the file tracker and a shell script as agent. Counted are the
distinct functions of ``sortie/`` that any thread calls from the moment an issue's file is written
until the worker has handled the first line that the agent writes, less those that the daemon has
called before: at its start, and while it polled without an issue. Comprehensions count as parts of
their functions.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import sortie
from sortie.daemon.options import RunOptions
from sortie.daemon.process import run_daemon
from sortie.model.turns import AgentEvent, Launched
from sortie.worker.turn_events import TurnEvents
from tests.benchmarks.place import BenchmarkPlace, benchmark_place
from tests.ports import free_port

PACKAGE = str(Path(sortie.__file__).parent) + os.sep
POLL = 0.2
WINDOW = 1.5
"""Seconds in which a daemon polls some times; it idles after two windows with no new function."""

LONGEST = 60.0
_PARTS = frozenset({"<module>", "<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>"})

Function = tuple[str, str]
"""A function's file below ``sortie/`` and its qualified name."""


class CallCounter:
    """Notes which functions are called, in all threads that begin after ``install``."""

    def __init__(self) -> None:
        self._called: set[CodeType] = set()

    def install(self) -> None:
        """Begin to note, in this thread and in those that it and others begin from now on."""
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def take(self) -> set[Function]:
        """Return what was called since the last time."""
        called, self._called = self._called, set()
        return {
            (code.co_filename.removeprefix(PACKAGE), code.co_qualname)
            for code in called
            if code.co_filename.startswith(PACKAGE) and code.co_name not in _PARTS
        }

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            self._called.add(frame.f_code)


class FirstOutput:
    """Knows when a worker has handled the first output of an agent."""

    def __init__(self, counter: CallCounter) -> None:
        self.handled = threading.Event()
        self.called: set[Function] = set()
        self._counter = counter
        self._take = TurnEvents.take

    def watch(self) -> None:
        """Have every worker of this process watched."""
        TurnEvents.take = self._watched(TurnEvents.take)  # type: ignore[method-assign]

    def _watched(self, take: Callable[..., None]) -> Callable[..., None]:
        def taken(events: TurnEvents, batch: list[AgentEvent]) -> None:
            take(events, batch)
            if not self.handled.is_set() and not all(isinstance(e, Launched) for e in batch):
                self.called = self._counter.take()
                self.handled.set()

        return taken


def _measure(place: BenchmarkPlace, counter: CallCounter, first: FirstOutput) -> set[Function]:
    """Return what an idle daemon calls, and have ``first`` find what an issue adds to it."""
    idle: set[Function] = set()
    quiet = 0
    while quiet < 2:
        time.sleep(WINDOW)
        called = counter.take()
        quiet = 0 if called - idle else quiet + 1
        idle |= called
    place.add_issue("ONE")
    first.handled.wait(LONGEST)
    return idle


def count() -> set[Function]:
    """Run a daemon and return the functions that an issue's way to its first output adds."""
    counter = CallCounter()
    first = FirstOutput(counter)
    idle: set[Function] = set()

    def control() -> None:
        idle.update(_measure(place, counter, first))
        os.kill(os.getpid(), signal.SIGTERM)

    with benchmark_place() as place:
        place.write_agent("exec sleep 60")
        place.configure(POLL)
        os.chdir(place.root)
        first.watch()
        controller = threading.Thread(target=control)
        controller.start()
        counter.install()
        run_daemon(
            RunOptions(
                workflow=place.workflow,
                environ=place.environ({}),
                port=free_port(),
                log_format="json",
            )
        )
        sys.setprofile(None)
        controller.join()
        os.chdir("/")
    assert first.handled.is_set(), "the agent's output was not handled"
    return first.called - idle


def main(arguments: list[str]) -> int:
    """Obey a command line and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.first_output",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--list", action="store_true", help="name the functions, file by file")
    given = parser.parse_args(arguments)
    log = os.open(os.devnull, os.O_WRONLY)
    os.dup2(log, 2)
    called = count()
    files = Counter(file for file, _ in called)
    if given.list:
        for file, number in sorted(files.items()):
            names = sorted(name for where, name in called if where == file)
            sys.stdout.write(f"{file} ({number})\n" + "".join(f"    {name}\n" for name in names))
    sys.stdout.write(f"{len(called)} functions in {len(files)} files\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
