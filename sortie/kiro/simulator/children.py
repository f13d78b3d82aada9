"""Leave processes behind, as the tools of an agent do."""

from __future__ import annotations

import ctypes
import os
import time

from sortie.kiro.simulator.actions import ActionError, Log

LIFETIME = 600
"""Seconds after which a child ends by itself."""

_ORPHANS = ("double_fork", "cleared", "overwritten")
_ENVIRONMENT = 47  # where it begins and ends in memory, in /proc/self/stat behind the name; proc(5)


def leave_child(kind: str, run_id: str | None, log: Log) -> None:
    """Start a process that outlives this one.

    ``plain`` stays in the group with its output closed, ``hold_stdout`` keeps stdout and stderr
    open, ``setsid`` has a session of its own, ``double_fork`` has one and has lost its parent;
    ``cleared`` is a program with an empty environment besides, and ``overwritten`` has replaced
    its own in place, as servers do that show a title. Raises ActionError without a run id, by which
    a daemon would find and end the child.
    """
    if not run_id:
        raise ActionError(f"child={kind}: SORTIE_RUN_ID is not set, so it would never be ended")
    child = os.fork()
    if child == 0:  # pragma: no cover - a forked process reports no coverage
        _live(kind, log)
    if kind in _ORPHANS:
        os.waitpid(child, 0)


def _live(kind: str, log: Log) -> None:  # pragma: no cover - a forked process
    try:
        if kind == "setsid" or kind in _ORPHANS:
            os.setsid()
        if kind in _ORPHANS and os.fork():
            os._exit(0)
        if kind != "hold_stdout":
            nothing = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(nothing, number)
        if kind == "overwritten":
            _overwrite_environment()
        log.write("child", child_pid=os.getpid(), kind=kind)
        if kind == "cleared":
            os.execve("/bin/sh", ["sh", "-c", f"exec sleep {LIFETIME}"], {})
        time.sleep(LIFETIME)
    finally:
        os._exit(0)


def _overwrite_environment() -> None:  # pragma: no cover - a forked process
    """Write over what others see as the environment; does nothing where there is no /proc."""
    try:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return
    begin, end = int(fields[_ENVIRONMENT]), int(fields[_ENVIRONMENT + 1])
    ctypes.memset(begin, 0, end - begin)
