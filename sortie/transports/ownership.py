"""Which processes belong to which runs, by their cookie, a recorded root process, or descent.

Rule 1: neither the process that looks nor one that it descends from is ever found.
Rule 2: a recorded root is found while it is the very process that was recorded. So are the
processes of the session or group it led, as long as the root or another known process is in it.
Rule 3: one whose environment names a run that is not wanted is a stranger, whatever its pid,
session and group; unless it descends from one that was found, as only a run can have made it.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Generic, Protocol, TypeVar

from sortie.model import ProcessIdentity, RunId


class VisibleProcess(Protocol):
    """One process as it stood.

    ``handle`` never equals that of a later process with the same pid; ``cookie`` is the run id in
    its environment; it and ``identity`` are None where they were not read or cannot be.
    ``stopped``: by SIGSTOP, for instance.
    """

    @property
    def handle(self) -> Hashable: ...
    @property
    def identity(self) -> ProcessIdentity | None: ...
    @property
    def cookie(self) -> str | None: ...
    @property
    def pid(self) -> int: ...
    @property
    def ppid(self) -> int: ...
    @property
    def pgid(self) -> int: ...
    @property
    def sid(self) -> int: ...
    @property
    def dead(self) -> bool: ...
    @property
    def stopped(self) -> bool: ...


T = TypeVar("T", bound=VisibleProcess)


class ProcessOwnership(Generic[T]):
    """Knows the processes of some runs, look after look.

    ``staying`` holds those that were alive in the last one.
    """

    def __init__(self, run_ids: Collection[RunId], roots: Mapping[RunId, ProcessIdentity]) -> None:
        self.wanted = frozenset(run_ids) | roots.keys()
        self.staying: dict[int, T] = {}
        self._roots = roots
        self._runs: dict[Hashable, set[RunId]] = {}
        self._led: dict[int, set[RunId]] = {}

    def runs_of(self, seen: Iterable[T]) -> frozenset[RunId]:
        """Return the runs that these processes belong to."""
        return frozenset().union(*(self._runs.get(one.handle, ()) for one in seen))

    def recognise(self, table: Mapping[int, T], me: int, *, newcomers: bool = True) -> None:
        """Put the living processes of the runs into ``staying``, and remember them.

        ``me`` is the pid of the process that looks. Without ``newcomers``, only known processes and
        their descendants are found: a table without cookies cannot tell others from strangers.
        """
        spared = ancestry(table, me)
        others = {pid: seen for pid, seen in table.items() if pid not in spared}
        if newcomers:
            self._know_roots(others)
            self._let_go(others)
            for seen in others.values():
                self._claim(seen, self._runs_by_evidence(seen))
        self.staying = self._trees(table, others)

    def _know_roots(self, others: Mapping[int, T]) -> None:
        """Note the recorded roots that are still there; zombies hold their session, too."""
        for run_id, recorded in self._roots.items():
            seen = others.get(recorded.pid)
            if seen is None or seen.identity != recorded:
                continue
            if seen.cookie is None or seen.cookie in self.wanted:
                self._claim(seen, {run_id})
                self._led.setdefault(seen.pid, set()).add(run_id)

    def _let_go(self, others: Mapping[int, T]) -> None:
        """Forget sessions and groups without a known process: their numbers may be reused."""
        known = [seen for seen in others.values() if seen.handle in self._runs]
        held = {number for seen in known for number in (seen.pid, seen.pgid, seen.sid)}
        self._led = {number: runs for number, runs in self._led.items() if number in held}

    def _runs_by_evidence(self, seen: T) -> AbstractSet[RunId]:
        if seen.cookie is not None:
            return {RunId(seen.cookie)} & self.wanted
        return self._led.get(seen.sid, set()) | self._led.get(seen.pgid, set())

    def _claim(self, seen: T, run_ids: AbstractSet[RunId]) -> None:
        if run_ids:
            self._runs.setdefault(seen.handle, set()).update(run_ids)

    def _trees(self, table: Mapping[int, T], others: Mapping[int, T]) -> dict[int, T]:
        """Claim the descendants of known processes; return the living of all these."""
        children: dict[int, list[int]] = {}
        for seen in table.values():
            children.setdefault(seen.ppid, []).append(seen.pid)
        waiting = [
            (seen.pid, run_id)
            for seen in others.values()
            for run_id in self._runs.get(seen.handle, ())
        ]
        done: set[tuple[int, RunId]] = set()
        alive = {}
        while waiting:
            pid, run_id = waiting.pop()
            if (pid, run_id) in done:
                continue
            done.add((pid, run_id))
            self._claim(table[pid], {run_id})
            if not table[pid].dead:
                alive[pid] = table[pid]
            waiting.extend((child, run_id) for child in children.get(pid, ()))
        return alive


def ancestry(table: Mapping[int, VisibleProcess], pid: int) -> frozenset[int]:
    """Return a pid and the pids of its ancestors."""
    chain: set[int] = set()
    while pid not in chain:
        chain.add(pid)
        if pid in table:
            pid = table[pid].ppid
    return frozenset(chain)
