"""The checks of what the system lets a daemon have: files, processes and cgroups.

Where a daemon is at work, its own limits are looked at, else those of this process.
"""

from __future__ import annotations

import os
import resource
from contextlib import suppress

import psutil

from sortie.config.settings import Settings
from sortie.daemon.endpoint_file import is_at_work, read_endpoint
from sortie.model import SortieError
from sortie.model.checks import CheckResult, failed, passed, warned
from sortie.resources import run_in_thread
from sortie.transports.local.cgroup_files import Hierarchy

FILES_FOR_A_RUN, FILES_FOR_ALL = 6, 120
"""Descriptors that a run takes on this machine, and that a daemon needs besides."""

TASKS_FOR_A_RUN = 40
"""Processes and threads of an agent at work, with a program that it has started."""

_UNLIMITED = resource.RLIM_INFINITY


class DaemonLimits:
    """The limits under which a daemon runs, or would be started from here."""

    def __init__(self, settings: Settings) -> None:
        self._db_path = settings.db_path
        self._runs = settings.agent.max_concurrent_agents

    async def files(self) -> CheckResult:
        """Tell whether so many runs as the settings allow have descriptors enough."""
        pid, whose = await run_in_thread(self._process)
        try:
            _, most = _limit(pid, resource.RLIMIT_NOFILE)
        except OSError as error:
            return warned(
                f"the limit of open files of {whose} cannot be seen: {error.strerror}", ""
            )
        needed = FILES_FOR_ALL + FILES_FOR_A_RUN * self._runs
        sentence = f"{whose} may have {_number(most)} files open; {self._runs} runs need {needed}"
        remedy = "raise it with LimitNOFILE= in the unit, or 'ulimit -Hn'; or allow fewer runs"
        if most != _UNLIMITED and most < FILES_FOR_ALL:
            return failed(sentence, remedy)
        return (
            passed(sentence) if most == _UNLIMITED or most >= needed else warned(sentence, remedy)
        )

    async def processes(self) -> CheckResult:
        """Tell whether their agents have room for their processes and threads."""
        pid, whose = await run_in_thread(self._process)
        room = await run_in_thread(_room_for_tasks, pid)
        needed = TASKS_FOR_A_RUN * self._runs
        if room is None:
            return passed(f"the processes of {whose} are not limited")
        left, why = room
        sentence = f"{whose} may start {left} more processes and threads ({why})"
        remedy = (
            "raise it with TasksMax= and LimitNPROC= in the unit, or 'ulimit -u'; or allow fewer"
            " runs"
        )
        if left < TASKS_FOR_A_RUN:
            return failed(sentence, remedy)
        if left < needed:
            return warned(f"{sentence}; {self._runs} runs may need {needed}", remedy)
        return passed(sentence)

    async def cgroups(self) -> CheckResult:
        """Tell whether each program that is started can have a cgroup of its own."""
        pid, whose = await run_in_thread(self._process)
        if await run_in_thread(_may_make_cgroups, pid):
            return passed(f"{whose} can give each program a cgroup of its own")
        return warned(
            f"{whose} cannot make cgroups: agents have no limits of their own, and where there are"
            " no PID namespaces, what a killed daemon left running is searched for by other means,"
            " from which a program can hide",
            "run it as a service with Delegate=yes, as 'sortie service install' writes it",
        )

    def _process(self) -> tuple[int, str]:
        """Return the pid of the daemon at work, else our own, and what it is called."""
        with suppress(SortieError):
            endpoint = read_endpoint(self._db_path)
            if is_at_work(self._db_path, endpoint):
                return endpoint.process.pid, "the daemon"
        return os.getpid(), "a daemon started from here"


def _limit(pid: int, kind: int) -> tuple[int, int]:
    """Return the soft and the hard limit of a process."""
    if pid != os.getpid() and hasattr(resource, "prlimit"):
        return resource.prlimit(pid, kind)
    return resource.getrlimit(kind)


def _number(limit: int) -> str:
    return "any number of" if limit == _UNLIMITED else str(limit)


def _room_for_tasks(pid: int) -> tuple[int, str] | None:
    """Return how many tasks more a process may have, and by what; None where nothing limits it."""
    rooms = [room for room in (_room_of_user(pid), _room_of_cgroup(pid)) if room is not None]
    return min(rooms, default=None)


def _room_of_user(pid: int) -> tuple[int, str] | None:
    try:
        soft, _ = _limit(pid, resource.RLIMIT_NPROC)
        user = psutil.Process(pid).uids().real
    except (OSError, psutil.Error):
        return None
    if soft == _UNLIMITED or user == 0:  # the limit does not hold for root
        return None
    used = 0
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.uids().real == user:
                used += process.num_threads()
    return soft - used, f"its user has {used} of {soft}"


def _room_of_cgroup(pid: int) -> tuple[int, str] | None:
    """Return the room of the cgroup of a process, or of the one above it that has the least."""
    found: list[tuple[int, str]] = []
    directory = _cgroup_directory(pid)
    while directory is not None:
        try:
            with open(f"{directory}/pids.max", encoding="ascii") as file:
                most = file.read().strip()
            with open(f"{directory}/pids.current", encoding="ascii") as file:
                used = int(file.read())
        except (OSError, ValueError):
            break  # the root of the hierarchy, or of what is shown of it
        if most.isdecimal():
            found.append((int(most) - used, f"its cgroup has {used} of {most}"))
        directory = os.path.dirname(directory)
    return min(found, default=None)


def _cgroup_directory(pid: int) -> str | None:
    hierarchy = Hierarchy.of(pid)
    return None if hierarchy is None else hierarchy.directory(hierarchy.own)


def _may_make_cgroups(pid: int) -> bool:
    """Tell whether a process of ours could make cgroups below its own; nothing is made."""
    directory = _cgroup_directory(pid)
    if directory is None or not os.path.isfile(f"{directory}/cgroup.procs"):
        return False
    is_v2 = os.path.exists(f"{directory}/cgroup.controllers")
    return is_v2 and all(
        os.access(path, os.W_OK) for path in (directory, f"{directory}/cgroup.procs")
    )
