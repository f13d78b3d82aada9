"""Ends what runs of an earlier life left, and says who stays.

Rule 1: one that got SIGKILL counts as ended, even where the kernel holds it (state D): no
program of its runs again; only a call to the kernel that is under way may be completed.
Rule 2: one that cannot be ended does not keep the others from being ended.
Rule 3: a sweep takes at most the grace time and ``SWEEP_BOUND``, even where looking hangs.
"""

from __future__ import annotations

import trio

from sortie.model import ProcessesLeft
from sortie.transports.local.ending import KILL_BOUND, Ending
from sortie.transports.local.hunt import Hunt
from sortie.transports.local.observer import Observer

# A process that hands over to another all the time is caught when a look is quick enough, so it
# is time that counts here and not the number of tries.
_NEWCOMERS_BOUND = 10.0
SWEEP_BOUND = _NEWCOMERS_BOUND + KILL_BOUND + 5.0
"""Seconds beyond the grace time; the last five are for the looks at all processes."""


class Sweep:
    """Ends the processes that a hunt finds."""

    def __init__(self, hunt: Hunt, observer: Observer, hurry: trio.Event) -> None:
        self._hunt = hunt
        self._observer = observer
        self._ending = Ending(give_up=hunt.give_up, hurry=hurry, find=hunt.members)

    async def end(self, grace: float) -> int:
        """End them; return how many. Raises ProcessesLeft for those that can still act."""
        with trio.move_on_after(grace + SWEEP_BOUND) as bound:
            await self._rounds(grace)
        if bound.cancelled_caught:
            raise self._unknown(grace + SWEEP_BOUND)
        left = {
            pid: seen
            for pid, seen in self._hunt.staying.items()
            if seen.handle not in self._ending.killed
        }
        if left:
            pids = ", ".join(str(pid) for pid in sorted(left))
            raise ProcessesLeft(
                f"could not end these processes of earlier runs: {pids}; they run as another user"
                " or go on starting others; look at them with ps and end them",
                pids=frozenset(left),
                run_ids=self._hunt.runs_of(left.values()),
                ended=len(self._ending.ended - {seen.handle for seen in left.values()}),
            )
        return len(self._ending.ended)

    async def _rounds(self, grace: float) -> None:
        """End who is found, until nobody new is or there is no more time for newcomers."""
        sweep, census = self._observer.sweep, self._observer.census
        deadline = trio.current_time() + grace + _NEWCOMERS_BOUND
        while trio.current_time() < deadline:
            try:
                if not await self._ending.end(grace, sweep, census):
                    return
            except ProcessesLeft:
                # Killed and still there: given up, so that the next round is for the others.
                continue
        self._hunt.members(await sweep())

    def _unknown(self, seconds: float) -> ProcessesLeft:
        """Blame every run, as nobody knows which of them has processes left."""
        return ProcessesLeft(
            f"could not tell in {seconds:.0f} s whether the processes of earlier runs are gone;"
            " look with ps for one that hangs in the kernel (state D)",
            pids=frozenset(self._hunt.staying),
            run_ids=self._hunt.wanted,
            ended=len(self._ending.ended),
        )
