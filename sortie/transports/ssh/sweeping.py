"""Ends what runs of an earlier life left on a host, and says who stays.

Rule 1: SIGTERM once, grace, SIGKILL until none is left; one that got SIGKILL counts as ended, even
where the kernel holds it (state D). Rule 2: one that cannot be ended does not keep the others from
being ended. Rule 3: a sweep takes at most the grace time and SWEEP_BOUND.
"""

from __future__ import annotations

import signal
from collections.abc import Collection, Container, Mapping

import trio

from sortie.model import ProcessesLeft, ProcessIdentity, RunId
from sortie.transports.ssh.ownership import Handle, Hunt, Seen
from sortie.transports.ssh.process_table import Lookout

_NEWCOMERS_BOUND = 10.0
_KILL_BOUND = 5.0
SWEEP_BOUND = _NEWCOMERS_BOUND + _KILL_BOUND + 15.0
"""Seconds beyond the grace time; the last are for reaching the host and for the looks."""

_LOOKS = 3
_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.2


class Sweep:
    """Ends the processes of some runs on one host."""

    def __init__(
        self,
        host: str,
        lookout: Lookout,
        run_ids: Collection[RunId],
        roots: Mapping[RunId, ProcessIdentity],
        hurry: trio.Event,
    ) -> None:
        self._host = host
        self._lookout = lookout
        self._hunt = Hunt(run_ids, roots, lookout.me)
        self._hurry = hurry
        self._ended: set[Handle] = set()
        self._killed: set[Handle] = set()
        self._refused: set[Handle] = set()
        self._chased: set[int] = set()

    async def end(self, grace: float) -> int:
        """End them; return how many. Raises ProcessesLeft for those that can still act."""
        with trio.move_on_after(grace + SWEEP_BOUND) as bound:
            alive = await self._look()
            await self._signal(alive, signal.SIGTERM)
            # A stopped process takes the polite signal only when it is continued.
            await self._signal([seen for seen in alive if seen.stopped], signal.SIGCONT)
            await self._wait(grace, alive)
            missed = await self._kill()
        if bound.cancelled_caught or missed:
            raise self._unknown(grace + SWEEP_BOUND)
        left = {p: s for p, s in self._hunt.staying.items() if s.handle not in self._killed}
        ended = self._count(left)
        if left:
            raise ProcessesLeft(
                f"could not end these processes of earlier runs on host {self._host}:"
                f" {', '.join(str(pid) for pid in sorted(left))}; they run as another user or go"
                " on starting others; look at them with ps there and end them",
                pids=frozenset(left),
                run_ids=self._hunt.runs_of(left.values()),
                ended=ended,
            )
        return ended

    async def _wait(self, grace: float, alive: list[Seen]) -> None:
        """Wait until all are gone, the grace time is over, or there is no time for grace."""
        pause = _FIRST_PAUSE
        until = trio.current_time() + grace
        while alive and not self._hurry.is_set() and trio.current_time() < until:
            # Only the pause is cut short: half an answer would be taken for the next one.
            with trio.move_on_at(min(until, trio.current_time() + pause)):
                await self._hurry.wait()
            pause = min(pause * 2, _LONGEST_PAUSE)
            alive = await self._look()

    async def _kill(self) -> bool:
        """Kill who is there, until nobody new is or there is no more time for newcomers.

        Return whether such went on to come that are in no census.
        """
        began = newest = trio.current_time()
        pause = _FIRST_PAUSE
        while True:
            alive = await self._look()
            chased = await self._lookout.chase(self._hunt.wanted)
            self._chased |= chased
            if not (alive or chased):
                return False
            now = trio.current_time()
            if chased or any(seen.handle not in self._killed for seen in alive):
                newest = now
            if now - newest > _KILL_BOUND or now - began > _NEWCOMERS_BOUND:
                return bool(chased)
            await self._signal(alive, signal.SIGKILL)
            await trio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _look(self) -> list[Seen]:
        """Return who is alive and may be signalled.

        One who starts another and exits while the list is read can be missed together with the
        other, so nobody is gone before nobody was seen several times.
        """
        for _ in range(_LOOKS):
            found = self._hunt.find(await self._lookout.census())
            alive = [seen for seen in found.values() if seen.handle not in self._refused]
            if alive:
                return alive
        return []

    async def _signal(self, alive: list[Seen], number: signal.Signals) -> None:
        refused = await self._lookout.signal(alive, number)
        for seen in alive:
            if seen.pid in refused:
                self._refused.add(seen.handle)
            else:
                self._ended.add(seen.handle)
                if number == signal.SIGKILL:
                    self._killed.add(seen.handle)

    def _count(self, left: Container[int]) -> int:
        """Return how many were ended, but for the pids that are left; each of them once, though it
        got more than one signal."""
        chased = self._chased - {handle.pid for handle in self._ended}
        ended = [handle.pid for handle in self._ended]
        return sum(pid not in left for pid in [*ended, *chased])

    def _unknown(self, seconds: float) -> ProcessesLeft:
        """Blame every run, as nobody knows which of them has processes left."""
        return ProcessesLeft(
            f"could not tell in {seconds:.0f} s whether the processes of earlier runs on host"
            f" {self._host} are gone; look with ps there",
            pids=frozenset(self._hunt.staying),
            run_ids=self._hunt.wanted,
            ended=self._count(()),
        )
