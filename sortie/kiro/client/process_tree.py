"""The processes that descend from a program, and how to end them all.

A tool may leave its group, its session, its parent and its environment. Four signs show that a
process belongs to a tree:

1. Group: the program begins a session and a group of its own.
2. Descent: its parent is of the tree, or was when it was last looked at.
3. Cookie: a variable in its environment, which children inherit.
4. Mark: on Linux, an odd soft limit on the run time of real-time tasks (RLIMIT_RTTIME), too large
   to limit anything, which children inherit whatever becomes of their environment. It is another
   limit than those by which a daemon marks its runs, so that neither mark hides the other.

On macOS there is no mark. Processes that have changed their user, or have handed work to another
service of the machine, are out of reach.
"""

from __future__ import annotations

import os
import resource
import secrets
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress

import psutil

from sortie.kiro.client.waits import Wait, Waits

TURN_COOKIE = "SORTIE_KIRO_TURN"
"""The variable that tells which turns a process is of."""

_SEPARATOR = ":"

# Microseconds: beyond every life. What is started within a turn keeps its upper half.
_FIRST_MARK, _HALF = 1 << 61, 1 << 30
_LAST_LOOKS = 5.0  # seconds after SIGKILL for the processes to be gone
_PAUSE = 0.02
_DEAD = frozenset({psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD})
_GONE = (psutil.Error, OSError)


class TurnProcessTree:
    """A program and the processes that descend from it.

    What ``environment`` returns has to be in the program's environment.
    """

    def __init__(self) -> None:
        self._cookie = secrets.token_hex(16)
        self._mark: int | None = None
        self._mark_unit = 1
        self._root: int | None = None
        self._known: dict[int, psutil.Process] = {}

    def environment(self, around: Mapping[str, str]) -> dict[str, str]:
        """Return an environment with the cookie; those of trees around this one stay in it."""
        cookies = [*filter(None, [around.get(TURN_COOKIE)]), self._cookie]
        return {**around, TURN_COOKIE: _SEPARATOR.join(cookies)}

    def begin(self, root: int) -> None:
        """Take note of the program's pid, and mark it; it must be the leader of a session."""
        self._root = root
        if sys.platform == "linux":
            around, hard = resource.getrlimit(resource.RLIMIT_RTTIME)
            if around >= _FIRST_MARK:  # this program is itself part of a turn
                mark = around // _HALF * _HALF + secrets.randbelow(_HALF)
            else:
                mark, self._mark_unit = _FIRST_MARK + secrets.randbelow(_HALF) * _HALF, _HALF
            self._mark = mark // self._mark_unit
            _mark_all(root, (mark, hard))

    def look(self) -> list[psutil.Process]:
        """Return the living members; reads every process of the machine, some 0.05 ms each.

        Where none is found it looks once more: the first look misses a child that is born while it
        lasts, and whose parent ends before the parent's turn has come.
        """
        return self._look() or self._look()

    def _look(self) -> list[psutil.Process]:
        parents: dict[int, int] = {}
        by_pid: dict[int, psutil.Process] = {}
        for process in psutil.process_iter():
            with suppress(*_GONE):
                parents[process.pid] = process.ppid()
                by_pid[process.pid] = process
        members = {pid for pid, process in by_pid.items() if self._is_member(process)}
        grown = True
        while grown:
            born = {p for p, of in parents.items() if of in members or of == self._root} - members
            grown = bool(born)
            members |= born
        members.discard(os.getpid())
        self._known = {pid: by_pid[pid] for pid in members if _is_alive(by_pid[pid])}
        return list(self._known.values())

    def some_known_alive(self) -> bool:
        """Tell whether a member that was seen last time is still alive."""
        return any(_is_alive(process) for process in self._known.values())

    def kill(self) -> None:
        """Kill all members at once, without waiting for them to be gone."""
        for _ in range(3):
            members = self.look()
            if not members:
                return
            _signal_all(members, signal.SIGKILL)

    def _is_member(self, process: psutil.Process) -> bool:
        pid = process.pid
        if pid in self._known and self._known[pid] == process:
            return True
        with suppress(*_GONE):
            if self._root is not None and self._root in (os.getpgid(pid), os.getsid(pid)):
                return True
        with suppress(*_GONE):
            if self._mark is not None and _limit_of(pid) // self._mark_unit == self._mark:
                return True
        with suppress(*_GONE):
            return self._cookie in process.environ().get(TURN_COOKIE, "").split(_SEPARATOR)
        return False

    def end(self, grace: float) -> Waits[bool]:
        """End all members: SIGTERM, ``grace`` seconds, SIGKILL; return whether all are gone."""
        asked: set[psutil.Process] = set()
        deadline = time.monotonic() + grace
        while members := self.look():
            _signal_all([each for each in members if each not in asked], signal.SIGTERM)
            asked.update(members)
            while self.some_known_alive() and time.monotonic() < deadline:
                yield Wait(_PAUSE)
            if time.monotonic() >= deadline:
                break
        deadline = time.monotonic() + _LAST_LOOKS
        while members := self.look():
            if time.monotonic() >= deadline:
                return False
            _signal_all(members, signal.SIGKILL)
            yield Wait(_PAUSE)
        return True


def _is_alive(process: psutil.Process) -> bool:
    try:
        if not process.is_running():
            return False
        # A zombie with further threads is a program whose main thread has left the others.
        return process.status() not in _DEAD or process.num_threads() > 1
    except _GONE:
        return False


def _signal_all(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with suppress(*_GONE):
            process.send_signal(number)


def _limit_of(pid: int) -> int:
    return resource.prlimit(pid, resource.RLIMIT_RTTIME)[0] if sys.platform == "linux" else 0


def _mark_all(root: int, limits: tuple[int, int]) -> None:
    """Mark a program that has begun, and what it has started by now.

    Each is marked before its children are listed, so that later ones inherit the mark.
    """
    waiting = [root]
    while waiting and sys.platform == "linux":
        pid = waiting.pop()
        with suppress(OSError, ValueError):  # it has ended, or a hard limit forbids the mark
            resource.prlimit(pid, resource.RLIMIT_RTTIME, limits)
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                    waiting += map(int, file.read().split())
