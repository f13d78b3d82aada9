"""Ends what finished runs left in a directory, and names other processes that live there.

Rule 1: ended is what carries our mark and comes from an earlier life of this daemon, or comes from
a command of this life that is over; with all that descends from it, wherever that lives.
Rule 2: all others are strangers, which are named and left alone: a person's shell, a service, a
process of a run that is under way.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress

import psutil
import trio

from sortie.model import ProcessesLeft, ProcessIdentity
from sortie.transports.local.command_trees import CommandTrees
from sortie.transports.local.observer import Observer
from sortie.transports.local.process_table import ProcessInfo, ProcessTable
from sortie.transports.local.reaper import LocalProcesses
from sortie.transports.ownership import ancestry
from sortie.transports.reaper import SWEEP_BOUND, ProcessListing, Reaper

STRANGER_LIMIT = 2.0
"""Seconds in which strangers may leave: what a person's prompt or editor starts is soon over."""

_STRANGER_PAUSE = 0.1
_MOST_NAMED = 5


class Occupants:
    """The processes that live in a directory, given by its real path, look after look.

    ``strangers`` holds those of the last look at all processes that are not to be ended, or cannot.
    """

    def __init__(self, directory: str, trees: CommandTrees, mark: int | None) -> None:
        self.directory = directory
        self.strangers: dict[int, ProcessInfo] = {}
        self._trees = trees
        self._mark = mark
        self._known: set[ProcessIdentity] = set()
        self.given_up: set[ProcessIdentity] = set()

    def find(self, table: ProcessTable) -> ProcessListing[ProcessInfo]:
        """Return the living of those to be ended, and remember them."""
        if table.complete:
            self._tell_apart(table)
        known = [seen.pid for seen in table.by_pid.values() if seen.handle in self._known]
        alive = {p: s for p, s in table.tree(known).items() if not s.dead}
        self._known = {seen.handle for seen in alive.values()}
        return ProcessListing(alive=alive)

    def _tell_apart(self, table: ProcessTable) -> None:
        own, spared = table.tree([os.getpid()]), ancestry(table.by_pid, os.getpid())
        self.strangers = {}
        for seen in table.by_pid.values():
            if seen.dead or not seen.lives_in(self.directory):
                continue
            if seen.handle in self.given_up or seen.pid in spared:
                self.strangers[seen.pid] = seen
            elif self._was_left(seen, table, ours=seen.pid in own):
                self._known.add(seen.handle)
            else:
                self.strangers[seen.pid] = seen

    def _was_left(self, seen: ProcessInfo, table: ProcessTable, *, ours: bool) -> bool:
        """Tell whether a run that is over left a process; ``ours``: it descends from this one."""
        if ours:
            return self._trees.is_of_no_command(seen, table)
        return self._mark is not None and seen.mark == self._mark


class WorkspaceClearance:
    """Ends those of a directory's occupants that runs left."""

    def __init__(
        self, occupants: Occupants, observer: Observer, grace: float, hurry: trio.Event
    ) -> None:
        self._occupants = occupants
        self._grace = grace
        self._hurry = hurry
        processes = LocalProcesses(observer, occupants.find, occupants.given_up)
        self._reaper = Reaper(processes, grace, hurry)

    async def end(self) -> int:
        """End them; return how many. Raises ProcessesLeft for those that live on there."""
        with trio.move_on_after(self._grace + SWEEP_BOUND) as bound:
            await self._rounds()
        directory, strangers = self._occupants.directory, self._occupants.strangers
        ended = len(self._reaper.ended - {seen.handle for seen in strangers.values()})
        if bound.cancelled_caught:
            raise ProcessesLeft(
                f"could not tell in {self._grace + SWEEP_BOUND:.0f} s whether somebody lives in"
                f" {directory}; look with ps for a process that hangs in the kernel (state D)",
                pids=frozenset(strangers),
                ended=ended,
            )
        if strangers:
            raise ProcessesLeft(
                f"somebody lives in {directory}: {_named(strangers)}; no run begins beside them:"
                " end them, or have them leave that directory",
                pids=frozenset(strangers),
                ended=ended,
            )
        return ended

    async def _rounds(self) -> None:
        """End those found, until the directory is empty or strangers had the time to leave."""
        until = trio.current_time() + STRANGER_LIMIT
        while True:
            if await self._reaper.end():
                continue
            if not self._occupants.strangers or trio.current_time() >= until:
                return
            with trio.move_on_after(_STRANGER_PAUSE):
                await self._hurry.wait()
                return


def _named(strangers: Mapping[int, ProcessInfo]) -> str:
    shown = [_shown(strangers[pid]) for pid in sorted(strangers)[:_MOST_NAMED]]
    more = len(strangers) - len(shown)
    return ", ".join([*shown, f"and {more} more"] if more else shown)


def _shown(seen: ProcessInfo) -> str:
    name = user = "?"
    with suppress(psutil.Error, OSError):
        process = psutil.Process(seen.pid)
        name, user = process.name(), process.username()
    shown = "".join(char if char.isprintable() else "?" for char in name)
    return f"{seen.pid} ({shown}, user {user})"
