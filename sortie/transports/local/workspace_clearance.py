"""Ends what runs that are over left in a directory, and says who else lives there.

Rule 1: ended is what carries our mark and comes from an earlier life of this daemon, or comes from
a command of this life that is over; with all that descends from it, wherever that lives.
Rule 2: everybody else is a stranger, who is named and left alone: a person's shell, a service, a
process of a run that is under way.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress

import psutil
import trio

from sortie.model import ProcessesLeft
from sortie.transports.local.ending import Ending
from sortie.transports.local.observer import Observer
from sortie.transports.local.process_table import ProcessTable, Seen
from sortie.transports.local.process_tree import Families, Members
from sortie.transports.local.sweep import SWEEP_BOUND

PATIENCE = 2.0
"""Seconds in which strangers may leave: what a person's prompt or editor starts is soon over."""

_PAUSE = 0.1
_MOST_NAMED = 5


class Dwellers:
    """Who lives in a directory, given by its real path, look after look.

    ``strangers`` holds those of the last look at everybody who are not to be ended, or cannot be.
    """

    def __init__(self, directory: str, families: Families, mark: int | None) -> None:
        self.directory = directory
        self.strangers: dict[int, Seen] = {}
        self._families = families
        self._mark = mark
        self._known: set[psutil.Process] = set()
        self._given_up: set[psutil.Process] = set()

    def give_up(self, seen: Seen) -> None:
        """Count a process as out of reach: it may not be signalled, or does not die."""
        self._given_up.add(seen.handle)

    def members(self, census: ProcessTable) -> Members:
        """Return who is alive of those to be ended, and remember them."""
        if census.everyone:
            self._tell_apart(census)
        known = [seen.pid for seen in census.by_pid.values() if seen.handle in self._known]
        alive = {p: s for p, s in census.tree(known).items() if not s.dead}
        self._known = {seen.handle for seen in alive.values()}
        reachable = {p: s for p, s in alive.items() if s.handle not in self._given_up}
        return Members(alive=reachable)

    def _tell_apart(self, census: ProcessTable) -> None:
        own, spared = census.tree([os.getpid()]), census.ancestry(os.getpid())
        self.strangers = {}
        for seen in census.by_pid.values():
            if seen.dead or not seen.lives_in(self.directory):
                continue
            if seen.handle in self._given_up or seen.pid in spared:
                self.strangers[seen.pid] = seen
            elif self._families.nobodys(seen, census) if seen.pid in own else self._is_marked(seen):
                self._known.add(seen.handle)
            else:
                self.strangers[seen.pid] = seen

    def _is_marked(self, seen: Seen) -> bool:
        return self._mark is not None and seen.mark == self._mark


class Clearing:
    """Ends those of the dwellers that runs left."""

    def __init__(self, dwellers: Dwellers, observer: Observer, hurry: trio.Event) -> None:
        self._dwellers = dwellers
        self._observer = observer
        self._hurry = hurry
        find, give_up = dwellers.members, dwellers.give_up
        self._ending = Ending(give_up=give_up, hurry=hurry, find=find)

    async def end(self, grace: float) -> int:
        """End them; return how many. Raises ProcessesLeft for those who live on there."""
        with trio.move_on_after(grace + SWEEP_BOUND) as bound:
            await self._rounds(grace)
        directory, strangers = self._dwellers.directory, self._dwellers.strangers
        ended = len(self._ending.ended - {seen.handle for seen in strangers.values()})
        if bound.cancelled_caught:
            raise ProcessesLeft(
                f"could not tell in {grace + SWEEP_BOUND:.0f} s whether somebody lives in"
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

    async def _rounds(self, grace: float) -> None:
        """End who is found, until nobody lives there or strangers had the time to leave."""
        sweep, census = self._observer.sweep, self._observer.census
        until = trio.current_time() + PATIENCE
        while True:
            try:
                if await self._ending.end(grace, sweep, census):
                    continue
            except ProcessesLeft:
                # Killed and still there: given up, so that the next round is for the others.
                continue
            if not self._dwellers.strangers or trio.current_time() >= until:
                return
            with trio.move_on_after(_PAUSE):
                await self._hurry.wait()
                return


def _named(strangers: Mapping[int, Seen]) -> str:
    shown = [_shown(strangers[pid]) for pid in sorted(strangers)[:_MOST_NAMED]]
    more = len(strangers) - len(shown)
    return ", ".join([*shown, f"and {more} more"] if more else shown)


def _shown(seen: Seen) -> str:
    name = user = "?"
    with suppress(psutil.Error, OSError):
        name = seen.handle.name()
        user = seen.handle.username()
    shown = "".join(char if char.isprintable() else "?" for char in name)
    return f"{seen.pid} ({shown}, user {user})"
