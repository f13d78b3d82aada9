"""Whose process is whose: every command under way, and who of the adopted belongs to which.

Rule 1: a root is never signalled, claimed or reaped on behalf of another family.
Rule 2: an adopted process that may belong to a family that goes on is left to that family.
Rule 3: what this process did not adopt, it does not reap.
There is one of these per process, because the adopted are children of the process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import psutil

from sortie.transports.local.process_table import ProcessTable, Seen, depth_in
from sortie.transports.local.root import Root


@dataclass(slots=True, kw_only=True, eq=False)
class Family:
    """A command and all that descends from it. ``root`` is None while it is being started.

    ``known`` holds the members that were seen alive last time. ``ending`` is True from the
    moment when nothing of the family may live on.
    """

    run_id: str | None
    cwd: str
    root: Root | None = None
    known: frozenset[psutil.Process] = frozenset()
    ending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """Who of a family is alive. ``undecided``: somebody may still turn out to belong to it."""

    alive: dict[int, Seen] = field(default_factory=dict)
    undecided: bool = False


class Families:
    """The register of commands under way."""

    def __init__(self) -> None:
        self._families: list[Family] = []
        self._given_up: set[psutil.Process] = set()

    @contextmanager
    def registered(self, family: Family) -> Iterator[None]:
        """Hold a family in the register, from before its root starts until it is gone."""
        self._families.append(family)
        try:
            yield
        finally:
            self._families.remove(family)

    def roots(self) -> frozenset[int]:
        """Return the pids of all roots."""
        return frozenset(f.root.pid for f in self._families if f.root is not None)

    def give_up(self, seen: Seen) -> None:
        """Count a process as out of reach: it may not be signalled, or does not die."""
        self._given_up.add(seen.handle)

    def within_reach(self, seen: Seen) -> bool:
        """Tell whether a process is alive and was not given up."""
        return not seen.dead and seen.handle not in self._given_up

    def members(self, family: Family, census: ProcessTable) -> Members:
        """Return who of a family is alive, and remember them."""
        seeds: list[int] = []
        undecided = False
        roots = self.roots()
        for seen in census.by_pid.values():
            astray = seen.adopted and not seen.dead and seen.pid not in roots
            owners = self._owners(seen) if astray else None
            if _is_kin(seen, family) or (owners is not None and _falls_to(owners, family)):
                seeds.append(seen.pid)
            elif owners is not None and any(o.root is None for o in owners):
                undecided = True
        if census.everyone and family.run_id is not None:
            seeds.extend(self._cookie_holders(family, census))
        alive = {p: s for p, s in census.tree(seeds).items() if self.within_reach(s)}
        family.known = frozenset(seen.handle for seen in alive.values())
        return Members(alive=alive, undecided=undecided)

    def nobodys(self, seen: Seen, census: ProcessTable) -> bool:
        """Tell whether a process comes from a command of ours, and from none under way."""
        me = os.getpid()
        while seen.ppid != me:
            parent = census.by_pid.get(seen.ppid)
            if parent is None or parent is seen:
                return False
            seen = parent
        return seen.adopted and seen.pid not in self.roots() and not self._owners(seen)

    def observe(self, census: ProcessTable) -> None:
        """Remember who belongs to whom while the ancestry still shows it; reap the adopted."""
        for family in self._families:
            if family.root is not None:
                self.members(family, census)
        self.reap(census)

    def reap(self, census: ProcessTable) -> None:
        """Reap the adopted that have died."""
        roots = self.roots()
        starting = any(f.root is None for f in self._families)
        for seen in census.by_pid.values():
            maybe_a_root = starting and seen.sid == seen.pid
            if seen.dead and seen.adopted and seen.pid not in roots and not maybe_a_root:
                with suppress(ChildProcessError):
                    os.waitpid(seen.pid, os.WNOHANG)
                self._given_up.discard(seen.handle)

    def _owners(self, seen: Seen) -> list[Family]:
        """Return the families that an adopted process may belong to, by the best evidence."""
        embryo = seen.sid == seen.pid  # what a root that is being started looks like
        families = [f for f in self._families if f.root is not None or embryo]
        depths = {f: max((depth_in(h, f.cwd) for h in seen.homes), default=0) for f in families}
        deepest = max(depths.values(), default=0)
        evidence = (
            [f for f in families if seen.handle in f.known or _is_kin(seen, f)],
            [f for f in families if seen.cookie is not None and f.run_id == seen.cookie],
            [f for f, depth in depths.items() if deepest and depth == deepest],
            [f for f in families if _began_before(f, seen)],
        )
        return next((owners for owners in evidence if owners), [])

    def _cookie_holders(self, family: Family, census: ProcessTable) -> list[int]:
        """Return who holds the family's cookie and stands in no other family's tree."""
        others = [f for f in self._families if f is not family and f.run_id == family.run_id]
        if any(not other.ending for other in others):
            foreign = census.tree(f.root.pid for f in others if f.root is not None)
        else:
            foreign = {}
        spared = census.ancestry(os.getpid()) | foreign.keys() | (self.roots() - _pid_of(family))
        return [
            seen.pid
            for seen in census.by_pid.values()
            if seen.cookie == family.run_id and not seen.adopted and seen.pid not in spared
        ]


def _pid_of(family: Family) -> frozenset[int]:
    return frozenset() if family.root is None else frozenset({family.root.pid})


def _is_kin(seen: Seen, family: Family) -> bool:
    if seen.handle in family.known:
        return True
    root = family.root
    if root is None:
        return False
    if root.pinned:
        return root.pid in (seen.pid, seen.pgid, seen.sid)
    return root.pid in (seen.pgid, seen.sid) and _began_before(family, seen)


def _falls_to(owners: list[Family], family: Family) -> bool:
    if any(owner is not family and not owner.ending for owner in owners):
        return False
    return family in owners or not owners


def _began_before(family: Family, seen: Seen) -> bool:
    if family.root is None or seen.identity is None:
        return family.root is None
    return family.root.identity.started_at <= seen.identity.started_at
