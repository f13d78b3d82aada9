"""A mark that a daemon puts on itself, and that all that descends from it carries.

It is an odd soft limit on resident memory (RLIMIT_RSS), which Linux has not enforced since 2.4.30.
Children inherit it, whatever they do to their environment, session, parent or title. A program
loses it only by setting that limit on purpose. Remote hosts mark with the limit on file locks, so
neither mark hides the other.
"""

from __future__ import annotations

import hashlib
import resource
import sys

from sortie.resources import shortage_behind

_FIRST_MARK, _MARKS = 43 * 10**17, 10**17  # bytes: beyond every memory, below the 2**63 of shells
_LIMIT_LINE = b"Max resident set"

UNMARKED = (
    "the hard limit on resident memory (LimitRSS= of a systemd unit) is too low for the mark that"
    " all programs of runs inherit: what an earlier life of the daemon left is known by its"
    " environment and its recorded root process alone; lift that limit"
)
"""What to tell where the mark that Linux has cannot be carried."""


def mark_of_database(name: str) -> int:
    """Return the mark of every daemon of a database, by its id.

    Earlier versions had its real path for that.
    """
    digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest()
    return _FIRST_MARK + int.from_bytes(digest[:8], "big") % _MARKS


def carry(mark: int) -> bool:
    """Have this process carry a mark, and all that it starts from now on; return whether it does.

    Only Linux has it, and not where a hard limit forbids so large a value.
    """
    if sys.platform != "linux":
        return False
    _, hard = resource.getrlimit(resource.RLIMIT_RSS)
    try:
        resource.setrlimit(resource.RLIMIT_RSS, (mark, hard))
    except (OSError, ValueError):
        return False
    return True


def mark_of(pid: int) -> int | None:
    """Return the mark of a process, None where it has none or cannot be asked.

    Raises OSError where a shortage leaves that unknown.
    """
    if sys.platform != "linux":
        return None
    try:
        soft = resource.prlimit(pid, resource.RLIMIT_RSS)[0]
    except PermissionError:
        soft = _soft_limit_of_another_user(pid)
    except (OSError, OverflowError):
        return None
    return soft if _FIRST_MARK <= soft < _FIRST_MARK + _MARKS else None


def _soft_limit_of_another_user(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/limits", "rb") as file:
            line = next((line for line in file if line.startswith(_LIMIT_LINE)), b"")
        return int(line.removeprefix(_LIMIT_LINE).split()[0])
    except (OSError, ValueError, IndexError) as exc:
        if shortage_behind(exc) is not None:
            raise
        return -1
