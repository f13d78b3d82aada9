"""What tells a process apart from every other that had its pid or will have it.

Rule 1: a process keeps its identity as long as it lives, whatever program it becomes and
wherever the clock is set.
Rule 2: after a restart of the machine no process has an identity of before.
"""

from __future__ import annotations

import os
from functools import cache

import psutil

from sortie.model import ProcessIdentity

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_TICKS = os.sysconf("SC_CLK_TCK")
_STARTED = 19  # the start time, among the fields of /proc/<pid>/stat behind the program's name
# Above every time of day that was recorded as a start time, and low enough for a float to tell
# two ticks apart.
_FIRST_EPOCH, _EPOCHS = 1 << 34, 1 << 44


def identity_of(pid: int) -> ProcessIdentity:
    """Return the identity of the process that has this pid now, as a zombie, too.

    Raises OSError if none has. Where the system does not name its boots, the start time is
    psutil's, a time of day.
    """
    boot_id = _boot_id()
    if boot_id is not None:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return ProcessIdentity(pid=pid, started_at=started_at(boot_id, file.read()))
    try:
        return ProcessIdentity(pid=pid, started_at=psutil.Process(pid).create_time())
    except psutil.Error as exc:
        raise ProcessLookupError(str(exc)) from exc


def started_at(boot_id: str, stat: bytes) -> float:
    """Return the seconds from a boot's epoch to the start of a process.

    ``stat`` is the process's /proc/<pid>/stat, which counts from the boot (proc(5)). The epoch
    is a number made from the boot's id: psutil's create_time, made from the time of day of the
    boot, moves whenever the clock is set.
    """
    epoch = _FIRST_EPOCH + int(boot_id.replace("-", ""), 16) % _EPOCHS
    ticks = int(stat.rpartition(b")")[2].split()[_STARTED])
    return epoch + ticks / _TICKS


@cache
def _boot_id() -> str | None:
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return None
