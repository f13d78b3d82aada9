"""What tells a process apart from every other that had its pid or will have it.

Rule 1: a process keeps its identity as long as it lives, whatever program it becomes and
wherever the clock is set.
Rule 2: after a restart of the machine no process has an identity of before.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache

import psutil

from sortie.model import ProcessIdentity

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_TICKS = os.sysconf("SC_CLK_TCK")
_START_FIELD = 19  # the start time, among the fields of /proc/<pid>/stat behind the program's name
# Above every time of day that was recorded as a start time, and low enough for a float to tell
# two ticks apart.
_FIRST_EPOCH, _EPOCHS = 1 << 34, 1 << 44


def identity_of(pid: int) -> ProcessIdentity:
    """Return the identity of the process that has this pid now, as a zombie, too.

    Raises OSError if none has. Where the system does not name its boots, the start time is
    psutil's, a time of day.
    """
    epoch = own_epoch()
    if epoch is not None:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            fields = stat_fields(file.read())
        return ProcessIdentity(pid=pid, started_at=started_in(epoch, fields))
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
    return started_in(_epoch_of(boot_id), stat_fields(stat))


def stat_fields(stat: bytes) -> list[bytes]:
    """Return the fields of a /proc/<pid>/stat that follow the program's name, see proc(5)."""
    return stat.rpartition(b")")[2].split()


def started_in(epoch: int, fields: Sequence[bytes]) -> float:
    """Return the seconds from an epoch to the start of the process with these ``stat_fields``."""
    return epoch + int(fields[_START_FIELD]) / _TICKS


@cache
def own_epoch() -> int | None:
    """Return the epoch of this machine's boot, None where the system does not name its boots."""
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            return _epoch_of(file.read().strip())
    except OSError:
        return None


def _epoch_of(boot_id: str) -> int:
    return _FIRST_EPOCH + int(boot_id.replace("-", ""), 16) % _EPOCHS
