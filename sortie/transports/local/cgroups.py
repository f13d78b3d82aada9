"""A cgroup for each command, where a cgroup v2 hierarchy can be written.

Whatever descends from a process stays in its cgroup, whatever becomes of its session, parents and
environment; the directory outlives a killed daemon and names the run; and ``cgroup.kill`` ends all
in it at once, as whatever user they run. ``<own cgroup>/<daemon>/<run id>.<pid>-<number>`` is the
directory of a command, with the daemon's pid. The daemon's is named after its database, so that its
next life knows it and another daemon's is never touched.

The fork server's middleman enters the cgroup before it starts the program, so that the program is
in it from its first instruction on.

Rule 1: what goes wrong here takes nothing away from the other means; the command has no cgroup.
Rule 2: a cgroup is killed only when all processes in it are to be ended.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from queue import Empty, SimpleQueue

from sortie.model import RunId
from sortie.transports.local.agent_limits import AgentLimits, limit_agents
from sortie.transports.local.cgroup_files import Hierarchy, kill, members, remove

_LABEL = re.compile(r"[A-Za-z0-9_-]{1,100}", re.ASCII)
_NO_RUN = "no-run"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 5.0  # seconds between tries to remove a cgroup
_KILL_PAUSES = tuple(0.002 * 2**n for n in range(11))  # seconds; some 4 in all
_CLOSING = 2.0  # seconds for what is left to do in the end


class RunGroup:
    """The cgroup of one command, by its directory; ``entered`` when the command is in it."""

    def __init__(self, groups: RunGroups, directory: str) -> None:
        self.directory = directory
        self.entered = False
        self._groups = groups
        self._suffix = "/" + "/".join(directory.rsplit("/", 2)[1:]) + "/"

    @property
    def run_id(self) -> RunId:
        """The run that the command is of, as far as it has one."""
        return RunId(os.path.basename(self.directory).rpartition(".")[0])

    def holds(self, cgroup: str | None) -> bool:
        """Tell whether a process is in it, by its cgroup in the hierarchy."""
        return cgroup is not None and self._suffix in f"{cgroup}/"

    def make(self) -> str:
        """Make it; return the file that a process writes 0 to so that it enters, empty where none
        can be made."""
        try:
            with suppress(FileExistsError):
                os.mkdir(os.path.dirname(self.directory))
            os.mkdir(self.directory)
        except OSError:
            return ""
        return f"{self.directory}/cgroup.procs"

    def kill(self) -> None:
        """Have all processes in it killed soon."""
        self._groups.do(lambda: kill(self.directory))

    def leave(self) -> None:
        """Have it removed soon; processes that are still in it are killed."""
        self._groups.remove(self.directory)


class RunGroups:
    """The cgroups of this daemon's commands, below a directory of its own.

    All work is done by one thread, in the order in which any thread has asked for it. ``limits``
    are those of all commands together.
    """

    def __init__(self, hierarchy: Hierarchy, directory: str) -> None:
        self.directory = directory
        self.limits = AgentLimits()
        self._hierarchy = hierarchy
        self._infix = f"/{os.path.basename(directory)}/"
        self._numbers = count(1)
        self._live: set[str] = set()
        self._leaving: list[str] = []
        self._jobs: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @classmethod
    def open(cls, daemon: str) -> RunGroups | None:
        """Return the cgroups of the daemon of this name, None where they cannot be had."""
        hierarchy = Hierarchy.of("self")
        directory = None if hierarchy is None else hierarchy.make(daemon)
        if hierarchy is None or directory is None:
            return None
        groups = cls(hierarchy, directory)
        groups.limits = limit_agents(hierarchy.directory(hierarchy.own), directory)
        return groups

    def new(self, run_id: str | None) -> RunGroup:
        """Return a cgroup for another command of a run; nothing is made yet."""
        label = run_id if run_id is not None and _LABEL.fullmatch(run_id) else _NO_RUN
        directory = f"{self.directory}/{label}.{os.getpid()}-{next(self._numbers)}"
        self._live.add(directory)
        return RunGroup(self, directory)

    def former(self, cgroup: str | None) -> RunGroup | None:
        """Return the group of a process by its cgroup, where no command under way has it: an
        earlier life of this daemon left it."""
        if cgroup is None or self._infix not in cgroup:
            return None
        above, _, below = cgroup.partition(self._infix)
        name = below.partition("/")[0]
        directory = self._hierarchy.directory(f"{above}{self._infix}{name}")
        return None if directory in self._live else RunGroup(self, directory)

    def remove(self, directory: str) -> None:
        """Have a cgroup removed soon; processes that are still in it are killed."""
        self._live.discard(directory)
        self.do(lambda: self._leaving.append(directory))

    def kill_former(self) -> int:
        """Kill all that earlier lives of this daemon left in their cgroups; return how many.

        Blocks until they are gone, for some seconds at most.
        """
        killed: set[int] = set()
        for pause in _KILL_PAUSES:
            left = {directory: members(directory) for directory in self._former()}
            if not any(left.values()):
                break
            killed.update(*left.values())
            for directory in left:
                with suppress(OSError):
                    kill(directory)
            time.sleep(pause)
        return len(killed)

    def _former(self) -> list[str]:
        with suppress(OSError):
            return [
                entry.path
                for entry in os.scandir(self.directory)
                if entry.is_dir() and entry.path not in self._live
            ]
        return []

    def remove_former(self) -> None:
        """Have all cgroups removed soon that no command under way has."""
        for directory in self._former():
            self.remove(directory)

    def do(self, job: Callable[[], object]) -> bool:
        """Have something done soon; return False where there is no thread for it."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                thread = threading.Thread(target=self._work, name="cgroups", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # there is no thread to be had
                    return False
                self._thread = thread
        self._jobs.put(job)
        return True

    def close(self) -> None:
        """Remove the daemon's directory, with the cgroups in which nothing is under way any more,
        such as the fork server's; blocks for up to 2 s."""
        for directory in list(self._live):
            self.remove(directory)
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            thread.join(_CLOSING)
        with suppress(OSError):
            os.rmdir(self.directory)

    def _work(self) -> None:
        pause, closing = _FIRST_PAUSE, False
        while self._leaving or not closing:
            job: Callable[[], object] | None = None
            try:
                job = self._jobs.get(timeout=pause if self._leaving else None)
                closing = closing or job is None
            except Empty:
                pause = min(2 * pause, _LONGEST_PAUSE)
            if job is not None:
                pause = _FIRST_PAUSE
                # A process without a cgroup is found by other means.
                with suppress(OSError, ValueError):
                    job()
            self._leaving = [directory for directory in self._leaving if not remove(directory)]
