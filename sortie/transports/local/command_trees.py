"""The commands under way, and which processes descend from each, the adopted included.

A process whose parent has died is adopted by this process; to which command it belongs has to be
told by other evidence than its parent.

Rule 1: a root is never signalled, claimed or reaped on behalf of another tree.
Rule 2: an adopted process that may belong to a tree that goes on is left to that tree.
Rule 3: what this process did not adopt, it does not reap.
There is one of these per process, because the adopted are children of the process.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from msgspec import Struct

from sortie.model import ProcessIdentity
from sortie.transports.local.cgroups import RunGroup
from sortie.transports.local.child_process import ChildProcess
from sortie.transports.local.fork_client import ForkServer
from sortie.transports.local.process_table import ProcessInfo, ProcessTable, depth_in
from sortie.transports.ownership import ancestry
from sortie.transports.reaper import ProcessListing


class CommandTree(Struct, kw_only=True, eq=False):
    """A command and all that descends from it. ``root`` is None while it is being started.

    ``group`` is its cgroup, where it has one; ``pid`` is the root's, from the fork on.

    ``known`` holds the members that were seen alive last time. ``ending`` is True from the
    moment when nothing of the tree may live on.
    """

    run_id: str | None
    cwd: str
    group: RunGroup | None = None
    pid: int | None = None
    root: ChildProcess | None = None
    known: frozenset[ProcessIdentity] = frozenset()
    ending: bool = False

    @property
    def number(self) -> int | None:
        """The root's pid, None while it is not known."""
        return self.pid if self.root is None else self.root.pid

    def start(self, pid: int) -> None:
        """Take note of the root's pid, in whatever thread."""
        self.pid = pid


class CommandTrees:
    """The register of commands under way.

    ``given_up`` holds what may not be signalled or does not die, until it is reaped. ``server`` is
    the fork server, where there is one.
    """

    def __init__(self, server: ForkServer | None = None) -> None:
        self.given_up: set[ProcessIdentity] = set()
        self._server = server
        self._trees: list[CommandTree] = []

    @contextmanager
    def registered(self, tree: CommandTree) -> Iterator[None]:
        """Hold a tree in the register, from before its root starts until it is gone."""
        self._trees.append(tree)
        try:
            yield
        finally:
            self._trees.remove(tree)

    @property
    def grouped(self) -> bool:
        """Whether all that the commands start can be told by its cgroup."""
        return all(tree.group is not None and tree.group.entered for tree in self._trees)

    def is_of_another(self, seen: ProcessInfo, root: ChildProcess | None) -> bool:
        """Tell whether a process is for certain of a command under way, and not of this root's."""
        return any(tree.root is not root and _is_in_group(seen, tree) for tree in self._trees)

    @property
    def starting(self) -> bool:
        """Whether the pid of some command's root is not known yet."""
        return any(tree.number is None for tree in self._trees)

    def roots(self) -> frozenset[int]:
        """Return the pids of all roots, and of the fork server, which belongs to no tree."""
        server = None if self._server is None else self._server.pid
        numbers = (*(tree.number for tree in self._trees), server)
        return frozenset(number for number in numbers if number is not None)

    def members(self, tree: CommandTree, table: ProcessTable) -> ProcessListing[ProcessInfo]:
        """Return the living of a tree, and remember them.

        Undecided: an adopted process may be the root of a command whose pid is not known yet.
        """
        undecided = False
        roots = self.roots()
        for seen in table.adopted:
            if seen.pid in roots or _is_member(seen, tree):
                continue
            owners = self._owners(seen)
            if not _may_claim(owners, tree) and any(o.root is None for o in owners):
                undecided = True
        return ProcessListing(alive=self._remember(table, (tree,))[tree], undecided=undecided)

    def observe(self, table: ProcessTable) -> None:
        """Remember which process is of which tree while the descent shows it; reap the adopted."""
        self._remember(table, [tree for tree in self._trees if tree.root is not None])
        self.reap(table)

    def _remember(
        self, table: ProcessTable, trees: Sequence[CommandTree]
    ) -> dict[CommandTree, dict[int, ProcessInfo]]:
        """Note the living of each of these trees."""
        seeds = {tree: _evident_members(tree, table) for tree in trees}
        roots = self.roots()
        for seen in table.adopted:
            if seen.pid not in roots:
                owners = self._owners(seen)
                for tree in trees:
                    if _may_claim(owners, tree):
                        seeds[tree].append(seen.pid)
        found = {}
        for tree in trees:
            members_of_tree = table.tree(seeds[tree])
            if tree.run_id in table.holders:
                others = [p for p in table.holders[tree.run_id] if p not in members_of_tree]
                members_of_tree |= table.tree(self._unrelated(tree, table, others))
            alive = {p: s for p, s in members_of_tree.items() if self._within_reach(s)}
            tree.known = frozenset(seen.handle for seen in alive.values())
            found[tree] = alive
        return found

    def _within_reach(self, seen: ProcessInfo) -> bool:
        return not seen.dead and seen.handle not in self.given_up

    def is_of_no_command(self, seen: ProcessInfo, table: ProcessTable) -> bool:
        """Tell whether a process comes from a command that was ours, and from none under way."""
        me = os.getpid()
        while seen.ppid != me:
            parent = table.by_pid.get(seen.ppid)
            if parent is None or parent is seen:
                return False
            seen = parent
        return seen.adopted and seen.pid not in self.roots() and not self._owners(seen)

    def reap(self, table: ProcessTable) -> None:
        """Reap the adopted that have died."""
        if not table.by_pid:
            return
        roots = self.roots()
        starting = self.starting
        for seen in table.by_pid.values():
            maybe_a_root = starting and seen.sid == seen.pid
            if seen.dead and seen.adopted and seen.pid not in roots and not maybe_a_root:
                with suppress(ChildProcessError):
                    os.waitpid(seen.pid, os.WNOHANG)
                self.given_up.discard(seen.handle)

    def _owners(self, seen: ProcessInfo) -> list[CommandTree]:
        """Return the trees that an adopted process may belong to, by the best evidence."""
        may_be_a_root = seen.sid == seen.pid  # what a root that is being started looks like
        trees = [t for t in self._trees if t.root is not None or may_be_a_root]
        depths = {t: max((depth_in(h, t.cwd) for h in seen.homes), default=0) for t in trees}
        deepest = max(depths.values(), default=0)
        evidence = (
            [t for t in trees if _is_in_group(seen, t)],
            [t for t in trees if seen.handle in t.known or _is_member(seen, t)],
            [t for t in trees if seen.cookie is not None and t.run_id == seen.cookie],
            [t for t, depth in depths.items() if deepest and depth == deepest],
            [t for t in trees if _began_before(t, seen)],
        )
        return next((owners for owners in evidence if owners), [])

    def _unrelated(
        self, tree: CommandTree, table: ProcessTable, holders: Iterable[int]
    ) -> list[int]:
        """Return which holders of the tree's cookie descend from no other root, and not we from
        them."""
        holders = list(holders)
        if not holders:
            return []
        others = [t for t in self._trees if t is not tree and t.run_id == tree.run_id]
        if any(not other.ending for other in others):
            foreign = table.tree(t.root.pid for t in others if t.root is not None)
        else:
            foreign = {}
        spared = (
            ancestry(table.by_pid, os.getpid()) | foreign.keys() | (self.roots() - _pid_of(tree))
        )
        return [pid for pid in holders if not table.by_pid[pid].adopted and pid not in spared]


def _evident_members(tree: CommandTree, table: ProcessTable) -> list[int]:
    """Return the members that need no other evidence than their own numbers."""
    candidates = [table.by_pid[h.pid] for h in tree.known if h.pid in table.by_pid]
    if tree.root is not None:
        candidates += table.numbered.get(tree.root.pid, ())
    return [seen.pid for seen in candidates if _is_member(seen, tree)]


def _pid_of(tree: CommandTree) -> frozenset[int]:
    return frozenset() if tree.root is None else frozenset({tree.root.pid})


def _is_member(seen: ProcessInfo, tree: CommandTree) -> bool:
    if seen.handle in tree.known:
        return True
    root = tree.root
    if root is None:
        return False
    if root.pinned:
        return root.pid in (seen.pid, seen.pgid, seen.sid)
    return root.pid in (seen.pgid, seen.sid) and _began_before(tree, seen)


def _is_in_group(seen: ProcessInfo, tree: CommandTree) -> bool:
    return tree.group is not None and tree.group.holds(seen.cgroup)


def _may_claim(owners: list[CommandTree], tree: CommandTree) -> bool:
    if any(owner is not tree and not owner.ending for owner in owners):
        return False
    return tree in owners or not owners


def _began_before(tree: CommandTree, seen: ProcessInfo) -> bool:
    if tree.root is None or seen.identity is None:
        return tree.root is None
    return tree.root.identity.started_at <= seen.identity.started_at
