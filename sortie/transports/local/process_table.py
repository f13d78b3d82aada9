"""One look at the processes of this machine: their descent, and which of them were adopted.

A child of this process in a session that is not this process's own is either a root that we
started (those are passed in) or was adopted: a run's process whose parent died. Nothing that
descends from a root can be in our session, since each root begins a session of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import psutil
from msgspec import Struct

from sortie.model import ProcessIdentity
from sortie.resources import shortage_behind
from sortie.resources.process_identity import identity_of, own_epoch, started_in, stat_fields
from sortie.transports import COOKIE
from sortie.transports.local.cgroup_files import cgroup_of
from sortie.transports.local.mark import mark_of

_LISTINGS = 10  # enough to catch up with what starts meanwhile, and an end on a busy machine
_DEAD_STATUSES = frozenset({psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD})
_STATE, _PPID, _PGID, _SID, _THREADS = 0, 1, 2, 3, 17  # among the fields behind the name
_COOKIE_ENTRY = f"\0{COOKIE}=".encode()
_CHUNK = 1 << 16  # bytes
_TROUBLE = (psutil.Error, OSError)
_DELETED = " (deleted)"  # what Linux adds to the name of a directory that is no more


class ProcessInfo(Struct, frozen=True, kw_only=True):
    """One process as it stood; its ``identity`` is its handle.

    ``cookie``, ``cgroup``, ``mark`` and ``homes`` are read only where needed, and None or empty
    where unreadable; ``homes`` are the working directory and, where it is another than the
    machine's, the root directory.
    """

    identity: ProcessIdentity
    ppid: int
    pgid: int
    sid: int
    dead: bool
    stopped: bool
    adopted: bool
    cookie: str | None = None
    cgroup: str | None = None
    mark: int | None = None
    homes: tuple[str, ...] = ()

    @property
    def pid(self) -> int:
        """Its number."""
        return self.identity.pid

    @property
    def handle(self) -> ProcessIdentity:
        """What equals no later process with the same pid."""
        return self.identity

    def lives_in(self, directory: str) -> bool:
        """Tell whether it lives in a directory, by its real path, or below it."""
        return any(depth_in(home, directory) for home in self.homes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessTable:
    """All processes by pid. ``complete`` tells whether each of them was looked into, ``settled``
    whether none was new in the last listing: else one may have handed over to others unseen.

    ``numbered`` has the processes that have a number as pid, group or session; ``adopted`` the
    living that were adopted; ``holders`` the pids with each cookie, in a complete table.
    """

    by_pid: Mapping[int, ProcessInfo]
    children: Mapping[int, Sequence[int]]
    complete: bool
    settled: bool = True
    numbered: Mapping[int, Sequence[ProcessInfo]] = field(init=False, repr=False)
    adopted: Sequence[ProcessInfo] = field(init=False, repr=False)
    holders: Mapping[str | None, Sequence[int]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        numbered: dict[int, list[ProcessInfo]] = {}
        holders: dict[str | None, list[int]] = {}
        for seen in self.by_pid.values():
            for number in {seen.pid, seen.pgid, seen.sid}:
                numbered.setdefault(number, []).append(seen)
            if self.complete and seen.cookie is not None:
                holders.setdefault(seen.cookie, []).append(seen.pid)
        adopted = [seen for seen in self.by_pid.values() if seen.adopted and not seen.dead]
        object.__setattr__(self, "numbered", numbered)
        object.__setattr__(self, "adopted", adopted)
        object.__setattr__(self, "holders", holders)

    def tree(self, pids: Iterable[int]) -> dict[int, ProcessInfo]:
        """Return the processes with these pids and all that descend from them."""
        tree: dict[int, ProcessInfo] = {}
        waiting = [pid for pid in pids if pid in self.by_pid]
        while waiting:
            pid = waiting.pop()
            if pid not in tree:
                tree[pid] = self.by_pid[pid]
                waiting.extend(self.children.get(pid, ()))
        return tree


def read_process_table(roots: Collection[int], *, complete: bool) -> ProcessTable:
    """Look at every process; blocks for some 12 microseconds each. ``roots`` are pids of our own.

    Raises what a shortage raises: a process that could not be looked at is not one that is gone.
    What was started meanwhile is looked at too, or a process that replaces itself all the time
    would always be gone when its turn comes.
    """
    by_pid: dict[int, ProcessInfo] = {}
    looked_at: set[int] = set()
    for _ in range(_LISTINGS):
        fresh = set(pids_now()) - looked_at
        if not fresh:
            break
        looked_at |= fresh
        by_pid |= _look_at_all(fresh, roots, complete=complete)
    return _table_of(by_pid, complete=complete, settled=not fresh)


def read_processes(pids: Collection[int], roots: Collection[int]) -> ProcessTable:
    """Look at these processes only; see ``read_process_table``."""
    return _table_of(_look_at_all(pids, roots, complete=False), complete=False)


def pids_now() -> list[int]:
    """Return the pids of all processes."""
    if sys.platform != "linux":
        return psutil.pids()
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _look_at_all(
    pids: Collection[int], roots: Collection[int], *, complete: bool
) -> dict[int, ProcessInfo]:
    me, my_session = os.getpid(), os.getsid(0)
    looks = (_look_at(pid, me, my_session, roots, complete=complete) for pid in pids)
    return {seen.pid: seen for seen in looks if seen is not None}


def read_whole(pid: int) -> ProcessInfo | None:
    """Look into one process as for a complete table; None where it is gone."""
    return _look_at(pid, os.getpid(), os.getsid(0), (), complete=True)


def _table_of(
    by_pid: Mapping[int, ProcessInfo], *, complete: bool, settled: bool = True
) -> ProcessTable:
    children: dict[int, list[int]] = {}
    for seen in by_pid.values():
        children.setdefault(seen.ppid, []).append(seen.pid)
    return ProcessTable(by_pid=by_pid, children=children, complete=complete, settled=settled)


def read_homes() -> dict[int, tuple[str, ...]]:
    """Return where every process lives, see ``ProcessInfo.homes``; quicker than a table."""
    return {pid: homes for pid in pids_now() if (homes := _homes(pid))}


def depth_in(home: str, directory: str) -> int:
    """Return how long a directory's path is where ``home`` is or lies in it, else 0."""
    if home.endswith(_DELETED) and not os.path.lexists(home):
        home = home.removesuffix(_DELETED)
    lies_in = home == directory or home.startswith(directory.rstrip("/") + "/")
    return len(directory) if lies_in else 0


def _look_at(
    pid: int, me: int, my_session: int, roots: Collection[int], *, complete: bool
) -> ProcessInfo | None:
    try:
        status = _status_of(pid)
    except _TROUBLE as exc:
        _raise_shortage(exc)
        return None
    adopted = status.ppid == me and status.sid != my_session and pid not in roots
    looked_into = (adopted or complete) and not status.dead
    return ProcessInfo(
        identity=status.identity,
        ppid=status.ppid,
        pgid=status.pgid,
        sid=status.sid,
        dead=status.dead,
        stopped=status.stopped,
        adopted=adopted,
        cookie=_cookie(pid) if looked_into else None,
        cgroup=cgroup_of(pid) if looked_into else None,
        mark=mark_of(pid) if looked_into else None,
        homes=_homes(pid) if looked_into else (),
    )


class _ProcessStatus(NamedTuple):
    identity: ProcessIdentity
    ppid: int
    pgid: int
    sid: int
    dead: bool
    stopped: bool


def _status_of(pid: int) -> _ProcessStatus:
    epoch = own_epoch() if sys.platform == "linux" else None
    if epoch is None:
        return _psutils_status(pid)
    # One read, where psutil makes several and an object: a tenth of the time.
    fields = stat_fields(read_file(f"/proc/{pid}/stat"))
    state = fields[_STATE]
    return _ProcessStatus(
        identity=ProcessIdentity(pid=pid, started_at=started_in(epoch, fields)),
        ppid=int(fields[_PPID]),
        pgid=int(fields[_PGID]),
        sid=int(fields[_SID]),
        # A zombie with further threads is a program whose main thread has left the others.
        dead=state in b"ZX" and int(fields[_THREADS]) <= 1,
        stopped=state == b"T",
    )


def _psutils_status(pid: int) -> _ProcessStatus:
    handle = psutil.Process(pid)
    with handle.oneshot():
        ppid, status = handle.ppid(), handle.status()
        dead = status in _DEAD_STATUSES and handle.num_threads() <= 1
    return _ProcessStatus(
        identity=identity_of(pid),
        ppid=ppid,
        pgid=os.getpgid(pid),
        sid=os.getsid(pid),
        dead=dead,
        stopped=status == psutil.STATUS_STOPPED,
    )


def read_file(path: str) -> bytes:
    """Return what a file of /proc says now. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        said = b""
        while chunk := os.read(fd, _CHUNK):
            said += chunk
        return said
    finally:
        os.close(fd)


def _cookie(pid: int) -> str | None:
    try:
        if sys.platform != "linux":
            return psutil.Process(pid).environ().get(COOKIE)
        environ = b"\0" + read_file(f"/proc/{pid}/environ")
    except _TROUBLE as exc:
        _raise_shortage(exc)
        return None
    _, found, rest = environ.rpartition(_COOKIE_ENTRY)
    return os.fsdecode(rest.partition(b"\0")[0]) if found else None


def _homes(pid: int) -> tuple[str, ...]:
    try:
        if sys.platform != "linux":
            return (psutil.Process(pid).cwd(),)
        # psutil's own way takes twenty times as long.
        cwd, root = os.readlink(f"/proc/{pid}/cwd"), os.readlink(f"/proc/{pid}/root")
    except _TROUBLE as exc:
        _raise_shortage(exc)
        return ()
    return (cwd,) if root == "/" else (cwd, root)


def _raise_shortage(exc: Exception) -> None:
    if shortage_behind(exc) is not None:
        raise exc
