"""What a test leaves behind: processes that hold its cookie, and children nobody reaped."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import psutil

_EXITING = 0x4
"""PF_EXITING among the flags of a process in /proc/PID/stat, of the kernel's linux/sched.h."""


def holders(cookie: str) -> list[int]:
    """Return the pids of all processes whose environment holds this run id."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get("SORTIE_RUN_ID") == cookie and process.pid != os.getpid():
                found.append(process.pid)
    return found


def seen_from_here(run_id: str, pid: int) -> int:
    """Return the pid, as this process sees it, of a process of a run that told its own.

    In a PID namespace it has another one there. Raises LookupError where there is none.
    """
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            status = Path(f"/proc/{process.pid}/status").read_text()
            pids = status.partition("NSpid:")[2].partition("\n")[0].split()
            if pids[-1:] == [str(pid)] and process.environ().get("SORTIE_RUN_ID") == run_id:
                return process.pid
    raise LookupError(f"no process of run {run_id} has the pid {pid}")


def bearers(word: str) -> list[int]:
    """Return the pids of all processes with this word among their arguments.

    A pid that a program tells of itself means nothing outside of its PID namespace.
    """
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if word in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


def foreign_children() -> list[tuple[int, str]]:
    """Return this process's children in other sessions, zombies too, with their states."""
    found: list[tuple[int, str]] = []
    for child in psutil.Process().children():
        with suppress(psutil.Error, OSError):
            if os.getsid(child.pid) != os.getsid(0):
                found.append((child.pid, f"{child.status()} {child.cmdline()}"))
    return found


def reap_exiting() -> None:
    """Reap this process's children in other sessions whose exit is under way.

    What they belonged to may be over already: they have neither memory nor files any more, and
    have left their cgroup, a moment before they can be reaped.
    """
    for pid, _ in foreign_children():
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
            if fields[0] != "Z" and int(fields[6]) & _EXITING:
                os.waitpid(pid, 0)


def is_alive(pid: int) -> bool:
    """Tell whether a process is there and no zombie."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
