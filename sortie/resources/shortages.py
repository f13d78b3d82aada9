"""What the system raises where it has run out of something, and what that means to an operator.

Rule: a shortage passes. What meets one is tried again, and no run is blamed for it.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from enum import StrEnum

from sortie.model import SortieError


class Resource(StrEnum):
    """What can run out."""

    FILES = "files"
    PROCESSES = "processes"
    MEMORY = "memory"


class Shortage(SortieError):
    """The machine, or a limit of this process, gives no more of a resource now."""

    def __init__(self, resource: Resource, message: str) -> None:
        super().__init__(message)
        self.resource = resource


_FILES_OF_PROCESS = (
    "a shortage of file descriptors: the daemon's limit of open files is reached; raise it"
    " (ulimit -n, LimitNOFILE= of systemd) or have fewer runs at once"
)
_FILES_OF_MACHINE = (
    "a shortage of file descriptors: the machine's limit of open files is reached; look at"
    " fs.file-nr and raise fs.file-max"
)
_PROCESSES = (
    "a shortage of processes and threads: their limit is reached; raise it (ulimit -u, TasksMax="
    " of systemd) or have fewer runs at once"
)
_MEMORY = (
    "a shortage of memory: the system gives no more; give the machine or the daemon's group more"
    " of it, or have fewer runs at once"
)

_BY_NUMBER: Mapping[int, tuple[Resource, str]] = {
    errno.EMFILE: (Resource.FILES, _FILES_OF_PROCESS),
    errno.ENFILE: (Resource.FILES, _FILES_OF_MACHINE),
    errno.ENOMEM: (Resource.MEMORY, _MEMORY),
    errno.ENOBUFS: (Resource.MEMORY, _MEMORY),
}
_NOT_STARTED = frozenset({2, 126, 127, 254})
"""Statuses of the loader, of dash and bash and of ``env`` where a program could not be started;
dash has 2, and bash 254, where it cannot fork."""

_LAST_WORDS: tuple[tuple[re.Pattern[str], Resource, str], ...] = (
    (
        re.compile(
            r"cannot allocate memory|failed to map segment from shared object"
            r"|cannot create (shared object descriptor|cache for search path)",
            re.IGNORECASE,
        ),
        Resource.MEMORY,
        _MEMORY,
    ),
    (
        re.compile(r"resource temporarily unavailable|can(no|')t fork", re.IGNORECASE),
        Resource.PROCESSES,
        _PROCESSES,
    ),
    (re.compile(r"too many open files", re.IGNORECASE), Resource.FILES, _FILES_OF_MACHINE),
)
_NO_THREAD = "can't start new thread"  # CPython's words, from 3.11 to 3.15


def of_fork(exc: OSError) -> Shortage | None:
    """Return the shortage by which a process could not be started, None where it was none.

    EAGAIN means a shortage there; everywhere else it means that there is nothing to read yet.
    """
    if exc.errno == errno.EAGAIN:
        return Shortage(Resource.PROCESSES, _PROCESSES)
    return shortage_behind(exc)


def of_exit(status: int | None, errors: str) -> Shortage | None:
    """Return the shortage by which a program did not start that ended with a status, None where it
    was none.

    ``errors`` is what was written to stderr; its last line counts, where the loader (ld.so) or the
    shell says what it could not have.
    """
    lines = errors.strip().splitlines()
    if status not in _NOT_STARTED or not lines:
        return None
    for words, resource, message in _LAST_WORDS:
        if words.search(lines[-1]):
            return Shortage(resource, message)
    return None


def shortage_behind(error: BaseException) -> Shortage | None:
    """Return the shortage that an error is or was raised from, None where it was none.

    A group of errors, which a nursery raises, is one where all in it are.
    """
    return _behind(error, frozenset())


def _behind(error: BaseException, above: frozenset[int]) -> Shortage | None:
    # What a group was made of may be raised from that very group.
    cause: BaseException | None = error
    while cause is not None and id(cause) not in above:
        above |= {id(cause)}
        shortage = _shortage(cause, above)
        if shortage is not None:
            return shortage
        cause = cause.__cause__
    return None


def _shortage(error: BaseException, above: frozenset[int]) -> Shortage | None:
    match error:
        case Shortage():
            return error
        case OSError(errno=int(number)) if number in _BY_NUMBER:
            return Shortage(*_BY_NUMBER[number])
        case MemoryError():
            return Shortage(Resource.MEMORY, _MEMORY)
        case RuntimeError() if _NO_THREAD in str(error):
            return Shortage(Resource.PROCESSES, _PROCESSES)
        case BaseExceptionGroup(exceptions=errors):
            found = [_behind(each, above) for each in errors]
            return found[0] if all(found) else None
    return None
