"""Leave processes behind, as the tools of an agent do."""

from __future__ import annotations

import os
import time

from sortie.kiro.simulator.actions import ActionError, Log

LIFETIME = 600
"""Seconds after which a child ends even if nobody ends it."""


def leave_child(kind: str, run_id: str | None, log: Log) -> None:
    """Start a process that outlives this one.

    ``plain`` stays in the group with its output closed, ``hold_stdout`` keeps stdout and stderr
    open, ``setsid`` has a session of its own, ``double_fork`` has one and has lost its parent.
    Raises ActionError without a run id, by which alone Sortie could find the child again.
    """
    if not run_id:
        raise ActionError(f"child={kind}: SORTIE_RUN_ID is not set, so nobody would end the child")
    child = os.fork()
    if child == 0:  # pragma: no cover - a forked process reports no coverage
        _live(kind, log)
    if kind == "double_fork":
        os.waitpid(child, 0)


def _live(kind: str, log: Log) -> None:  # pragma: no cover - a forked process
    try:
        if kind in ("setsid", "double_fork"):
            os.setsid()
        if kind == "double_fork" and os.fork():
            os._exit(0)
        if kind != "hold_stdout":
            nothing = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(nothing, number)
        log.write("child", child_pid=os.getpid(), kind=kind)
        time.sleep(LIFETIME)
    finally:
        os._exit(0)
