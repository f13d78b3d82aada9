"""What is mounted where, so that a removal stops at a mount.

It is asked by mount and not by device, as a bind mount has the device of what it shows. Elsewhere
than on Linux nothing can be told, and there are no bind mounts.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_TABLE = "/proc/self/mountinfo"
_POINT = 4  # the mount point, among the fields of a line; see proc(5)
_LIMIT = 4096  # bytes; the number stands in the third line
_ESCAPED = re.compile(rb"\\([0-7]{3})")


def mounts_in(path: str) -> list[str]:
    """Return the mount points at a real path and below it, the upper ones first.

    Raises OSError where they cannot be told.
    """
    if sys.platform != "linux":
        return []
    with _known(), open(_TABLE, "rb") as file:
        points = [_unescaped(line.split(b" ")[_POINT]) for line in file]
    below = path.rstrip("/") + "/"
    return sorted({point for point in points if point == path or point.startswith(below)})


def mount_of(fd: int) -> int | None:
    """Return the number of the mount that an open file lies on, None elsewhere than on Linux.

    Unlike the device it tells a bind mount from what is around it. Raises OSError where it cannot
    be told.
    """
    if sys.platform != "linux":
        return None
    with _known():
        info = os.open(f"/proc/self/fdinfo/{fd}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return int(os.read(info, _LIMIT).partition(b"mnt_id:")[2].split(None, 1)[0])
        finally:
            os.close(info)


@contextmanager
def _known() -> Iterator[None]:
    """Let nobody take a missing /proc for a missing directory, or for no mount."""
    try:
        yield
    except (FileNotFoundError, ValueError, IndexError) as exc:
        raise OSError(errno.ENOSYS, "/proc does not tell what is mounted") from exc


def _unescaped(field: bytes) -> str:
    return os.fsdecode(_ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), field))
