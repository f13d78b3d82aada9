"""Looks at processes of this machine and signals them, for a reaper that ends them.

Rule 1: a signal goes to the process that was seen, never to a later one with its pid.
Rule 2: a signal to a group goes to the group of a root process that was not reaped.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from signal import Signals

from sortie.model import ProcessIdentity, RunId
from sortie.resources import Shortage, note, run_in_thread, shortage_behind
from sortie.resources.descriptors import released_reserve
from sortie.resources.process_identity import identity_of
from sortie.transports.local.cgroup_files import cgroup_of
from sortie.transports.local.cgroups import RunGroup, RunGroups
from sortie.transports.local.child_process import ChildProcess
from sortie.transports.local.observer import Observer
from sortie.transports.local.process_table import ProcessInfo, ProcessTable
from sortie.transports.local.successors import is_gone, kill_successors
from sortie.transports.ownership import ProcessOwnership
from sortie.transports.reaper import ProcessListing

Find = Callable[[ProcessTable], ProcessListing[ProcessInfo]]
"""Points out the processes to be ended."""

_UNNAMED = RunId("")


class LocalProcesses:
    """Those processes of this machine that ``find`` points out; see the port of the reaper.

    ``given_up`` holds those that may not be signalled or do not die; it may be shared. ``root``
    is the root process that all of them descend from, where there is one. ``group_of`` gives the
    cgroup that is to be killed together with a process, if any. Of the runs ``ended`` each process
    is to be ended: those that hand over to others all the time are caught by their cookies, and
    are in ``chased``.
    """

    def __init__(
        self,
        observer: Observer,
        find: Find,
        given_up: set[ProcessIdentity],
        root: ChildProcess | None = None,
        group_of: Callable[[ProcessInfo], RunGroup | None] = lambda _: None,
        ended: Collection[RunId] = (),
    ) -> None:
        self.hindered = False
        self.chased: set[ProcessIdentity] = set()
        self._observer = observer
        self._find = find
        self._given_up = given_up
        self._root = root
        self._group_of = group_of
        self._ended = ended

    async def list(self, *, newcomers: bool) -> ProcessListing[ProcessInfo]:
        """Return the living that were not given up."""
        if (
            not newcomers
            and self._root is not None
            and await self._observer.is_survived_by_none(self._root)
        ):
            return ProcessListing()
        table = await self._observer.look(complete=newcomers)
        found = self._find(table)
        alive = {p: one for p, one in found.alive.items() if one.handle not in self._given_up}
        if newcomers and self._ended and not alive and not table.settled:
            alive = {one.pid: one for one in await self._chase()}
        return ProcessListing(alive=alive, undecided=found.undecided)

    async def signal(
        self, processes: Sequence[ProcessInfo], number: Signals
    ) -> Sequence[ProcessInfo]:
        """Signal processes; return those that got it."""
        self.hindered = False
        group = self._root.pid if self._root is not None and self._root.pinned else None
        match number:
            case Signals.SIGKILL:
                # The group in one stroke, which what forks as fast as it can does not escape.
                _send_to_group(group, number)
                self._kill_groups(processes)
                return await self._kill_each(processes)
            case Signals.SIGTERM if any(one.pid == group for one in processes):
                _send_to_group(group, number)
                others = [one for one in processes if one.pgid != group]
                self._signal_each(others, number)
                return processes
        return self._signal_each(processes, number)

    async def _kill_each(self, processes: Sequence[ProcessInfo]) -> Sequence[ProcessInfo]:
        has_successor = any(one.cookie in self._ended and is_gone(one) for one in processes)
        sent = self._signal_each(processes, Signals.SIGKILL)
        return [*sent, *await self._chase()] if has_successor else sent

    async def _chase(self) -> Sequence[ProcessInfo]:
        try:
            killed = await run_in_thread(kill_successors, self._ended)
        except Shortage as exc:
            self.hindered = True
            note(exc)
            return []
        self.chased.update(one.handle for one in killed)
        return killed

    def _signal_each(
        self, processes: Sequence[ProcessInfo], number: Signals
    ) -> Sequence[ProcessInfo]:
        sent = []
        for one in processes:
            try:
                if send(one, number):
                    sent.append(one)
            except Shortage as exc:
                self.hindered = True
                note(exc)
            except PermissionError:
                # It runs as another user: only its cgroup can end it.
                if self._group_of(one) is None:
                    self.give_up([one])
                elif number == Signals.SIGKILL:
                    sent.append(one)
        return sent

    def _kill_groups(self, processes: Iterable[ProcessInfo]) -> None:
        groups = {g.directory: g for one in processes if (g := self._group_of(one)) is not None}
        for group in groups.values():
            group.kill()

    def give_up(self, processes: Collection[ProcessInfo]) -> None:
        """List these no more."""
        self._given_up.update(one.handle for one in processes)


class LocalNamespaceInit:
    """The one process that a reaper has to end; see the port of the reaper.

    SIGTERM reaches the program alone, as init passes it on. SIGKILL ends init, and with it all
    processes of the namespace: init has exited only when these are gone.
    """

    hindered = False

    def __init__(self, root: ChildProcess) -> None:
        self._root = root
        self._given_up = False

    async def list(self, *, newcomers: bool) -> ProcessListing[ProcessInfo]:  # noqa: ARG002
        """Return init while it lives."""
        if self._given_up or self._root.exit() is not None:
            return ProcessListing()
        pid = self._root.pid
        init = ProcessInfo(
            identity=self._root.identity,
            ppid=os.getpid(),
            pgid=pid,
            sid=pid,
            dead=False,
            stopped=False,
            adopted=False,
        )
        return ProcessListing(alive={pid: init})

    async def signal(
        self, processes: Sequence[ProcessInfo], number: Signals
    ) -> Sequence[ProcessInfo]:
        """Signal init; it is a child that was not reaped, so its pid is still its own."""
        with suppress(ProcessLookupError):
            os.kill(self._root.pid, number)
        return processes

    def give_up(self, processes: Collection[ProcessInfo]) -> None:  # noqa: ARG002
        """List it no more."""
        self._given_up = True


class RunProcesses(ProcessOwnership[ProcessInfo]):
    """Finds the processes of runs, look after look.

    A process that carries ``mark`` and does not descend from this one was left by an earlier life
    of this daemon. Where it has only the mark, it is not known of which run it was.
    """

    def __init__(
        self,
        run_ids: Collection[RunId],
        roots: Mapping[RunId, ProcessIdentity],
        mark: int | None = None,
        groups: RunGroups | None = None,
    ) -> None:
        super().__init__(run_ids, roots)
        self._mark = mark
        self._groups = groups
        self._our_own: AbstractSet[int] = frozenset()

    def runs_of(self, seen: Iterable[ProcessInfo]) -> frozenset[RunId]:
        """Return the runs that these processes belong to, as far as they can be named."""
        return super().runs_of(seen) - {_UNNAMED}

    def find(self, table: ProcessTable) -> ProcessListing[ProcessInfo]:
        """Return the living processes of these runs, and remember them."""
        self._our_own = table.tree([os.getpid()]).keys()
        self.recognise(table.by_pid, os.getpid(), newcomers=table.complete)
        return ProcessListing(alive=self.staying)

    def group_of(self, seen: ProcessInfo) -> RunGroup | None:
        """Return the cgroup of a process that a command which is over left."""
        return (
            None
            if self._groups is None
            else self._groups.former(seen.cgroup or cgroup_of(seen.pid))
        )

    def _runs_by_evidence(self, seen: ProcessInfo) -> AbstractSet[RunId]:
        runs = super()._runs_by_evidence(seen)
        group = None if self._groups is None else self._groups.former(seen.cgroup)
        if group is not None:
            return runs | {group.run_id if group.run_id in self.wanted else _UNNAMED}
        if runs or self._mark is None or seen.mark != self._mark or seen.pid in self._our_own:
            return runs
        return {_UNNAMED}


def send(seen: ProcessInfo, signum: Signals) -> bool:
    """Signal a process, and never a later one with its pid; return whether it was there.

    Raises PermissionError, and Shortage where one kept the process from being signalled.
    """
    try:
        return _send(seen, signum)
    except OSError as exc:
        if shortage_behind(exc) is None:
            raise
    try:
        with released_reserve():
            return _send(seen, signum)
    except OSError as exc:
        shortage = shortage_behind(exc)
        if shortage is None:
            raise
        raise shortage from exc


def _send(seen: ProcessInfo, signum: Signals) -> bool:
    with suppress(ProcessLookupError, FileNotFoundError):
        try:
            pidfd = os.pidfd_open(seen.pid)
        except (AttributeError, OSError) as exc:
            if shortage_behind(exc) is not None:
                raise
            return _send_by_pid(seen, signum)
        try:
            # The descriptor is opened first: after that the pid cannot change hands unnoticed.
            if identity_of(seen.pid) == seen.identity:
                signal.pidfd_send_signal(pidfd, signum)
                return True
        finally:
            os.close(pidfd)
    return False


def _send_to_group(group: int | None, signum: Signals) -> None:
    if group is None or group <= 1:
        return  # killpg(0) is our own group, and killpg(1) means kill(-1): all processes
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signum)


def _send_by_pid(seen: ProcessInfo, signum: Signals) -> bool:
    if identity_of(seen.pid) != seen.identity:
        return False
    os.kill(seen.pid, signum)
    return True
