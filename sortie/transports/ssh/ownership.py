"""Finds the processes of runs on a remote host, in what its /proc said; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from sortie.model import ProcessIdentity, RunId
from sortie.transports.identity import started_at
from sortie.transports.ownership import ProcessOwnership
from sortie.transports.ssh.words import numbers_in

_COOKIE = b"SORTIE_RUN_ID="
# Among the fields of /proc/<pid>/stat behind the program's name, see proc(5).
_STATE, _PPID, _PGID, _SID, _THREADS, _STARTED = 0, 1, 2, 3, 17, 19


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """What tells a process apart from every other of this boot."""

    pid: int
    ticks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One process as it stood; ``cookie`` is None where there is none or it is unreadable."""

    handle: Handle
    identity: ProcessIdentity
    ppid: int
    pgid: int
    sid: int
    dead: bool
    stopped: bool
    cookie: str | None = None

    @property
    def pid(self) -> int:
        """Its number."""
        return self.handle.pid


def read_census(boot_id: str, stats: bytes, environs: bytes) -> dict[int, Seen]:
    """Return all processes by pid, from their stat files and their cookies: ``<path>:<content>``,
    each with a NUL behind it.

    What is neither is passed over.
    """
    cookies: dict[int, str] = {}
    for pid, variable in _records(environs):
        if variable.startswith(_COOKIE):
            cookie = variable.removeprefix(_COOKIE).decode("utf-8", "replace")
            cookies.setdefault(pid, cookie)
    census = {}
    for pid, stat in _records(stats):
        with suppress(ValueError, OverflowError):
            seen = _seen(boot_id, pid, stat, cookies.get(pid))
            if seen is not None:
                census[pid] = seen
    return census


def _records(said: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield what was said of files below ``/proc/<pid>``, with the pid."""
    for record in said.split(b"\0"):
        path, _, content = record.partition(b":")
        parts = path.strip().split(b"/")
        if len(parts) > 2:
            for pid in numbers_in(parts[2].decode(errors="replace")):
                yield pid, content


def _seen(boot_id: str, pid: int, stat: bytes, cookie: str | None) -> Seen | None:
    fields = stat.rpartition(b")")[2].split()  # the name may hold brackets and line ends, too
    if len(fields) <= _STARTED:
        return None  # it ended while it was read
    state = fields[_STATE]
    return Seen(
        handle=Handle(pid=pid, ticks=int(fields[_STARTED])),
        identity=ProcessIdentity(pid=pid, started_at=started_at(boot_id, stat)),
        ppid=int(fields[_PPID]),
        pgid=int(fields[_PGID]),
        sid=int(fields[_SID]),
        # A zombie with further threads is a program whose main thread has left the others.
        dead=state in b"ZXx" and int(fields[_THREADS]) <= 1,
        stopped=state in b"Tt",
        cookie=cookie,
    )


class Hunt(ProcessOwnership[Seen]):
    """Finds the processes of these runs, census after census; ``me`` is what we look with."""

    def __init__(
        self, run_ids: Collection[RunId], roots: Mapping[RunId, ProcessIdentity], me: int
    ) -> None:
        super().__init__(run_ids, roots)
        self._me = me

    def find(self, census: Mapping[int, Seen]) -> dict[int, Seen]:
        """Return who is alive of these runs, and remember them."""
        self.recognise(census, self._me)
        return self.staying
