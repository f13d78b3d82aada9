"""Ends processes for certain: SIGTERM, grace, SIGKILL, then looks until none is left.

How processes are listed and signalled on a host is the part of ``Processes``.

Rule 1: a process gets SIGTERM at most once, and what its handler starts gets none while the
leader lives, so that an orderly shutdown is not disturbed.
Rule 2: every wait has an end; what is alive then is given up, and does not keep others from being
ended.
Rule 3: a process that could not be signalled for a shortage is not given up.
Rule 4: one that got SIGKILL counts as ended, even where the kernel holds it (state D): no program
of its runs again; only a call to the kernel that is under way may be completed.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from signal import Signals
from typing import Generic, Protocol, TypeVar

import trio
from msgspec import Struct, field

from sortie.model import ProcessesLeft
from sortie.transports.ownership import ProcessOwnership, VisibleProcess

KILL_BOUND = 5.0
"""Seconds after SIGKILL in which a process has to be gone."""
HURRIED_KILL_BOUND = 1.0

# A process that hands over to another all the time is caught when a look is quick enough, so it
# is time that counts here and not the number of tries.
_NEWCOMERS_BOUND = 10.0
SWEEP_BOUND = _NEWCOMERS_BOUND + KILL_BOUND + 15.0
"""Seconds beyond the grace time; the last are for the looks at all processes."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.1


T = TypeVar("T", bound=VisibleProcess)


class ProcessListing(Struct, Generic[T], frozen=True, kw_only=True):
    """The processes to be ended, by pid. ``undecided``: there is a process of which it is not known
    yet whether it belongs to them. It is waited for and not signalled."""

    alive: Mapping[int, T] = field(default_factory=dict)
    undecided: bool = False


class Processes(Protocol[T]):
    """The processes of one host that a reaper shall end."""

    @property
    def hindered(self) -> bool:
        """Whether a shortage kept a process from being signalled the last time."""
        ...

    async def list(self, *, newcomers: bool) -> ProcessListing[T]:
        """Return the living that can be signalled, less those that were given up.

        Without ``newcomers``, which may cost less, only those found before and what descends from
        them.
        """
        ...

    async def signal(self, processes: Sequence[T], number: Signals) -> Collection[T]:
        """Signal these very processes, in this order; return those that got it.

        Those that may not be signalled are given up.
        """
        ...

    def give_up(self, processes: Collection[T]) -> None:
        """List these no more."""
        ...


class Reaper(Generic[T]):
    """Ends processes, again and again if need be; ``hurry`` ends the grace time.

    ``leader`` is the pid of the process that has started the others, where there is one. ``ended``
    holds the handles of those that were signalled, ``killed`` of those that got SIGKILL, ``left``
    the processes that were given up after it.
    """

    def __init__(
        self,
        processes: Processes[T],
        grace: float,
        hurry: trio.Event,
        *,
        leader: int | None = None,
    ) -> None:
        self.ended: set[Hashable] = set()
        self.killed: set[Hashable] = set()
        self.left: dict[int, T] = {}
        self._processes = processes
        self._grace = grace
        self._hurry = hurry
        self._leader = leader
        self._deadline: float | None = None

    async def end(self, *, newcomers: bool = True) -> bool:
        """End the processes that are found now; return whether there were any.

        The grace time counts from the first call that found any. May be called again after
        it was cancelled.
        """
        found = await self._processes.list(newcomers=newcomers)
        if not found.alive and not found.undecided:
            return False
        if self._deadline is None:
            self._deadline = trio.current_time() + self._grace
        await self._terminate(found)
        await self._kill(await self._wait(found, self._deadline))
        return True

    async def end_all(self) -> bool:
        """End the processes that are found, until none is or the time for newcomers is over.

        Return False where that could not be told in ``SWEEP_BOUND`` beyond the grace time.
        """
        with trio.move_on_after(self._grace + SWEEP_BOUND) as bound:
            until = trio.current_time() + self._grace + _NEWCOMERS_BOUND
            while await self.end():
                if trio.current_time() >= until:
                    return not (await self._processes.list(newcomers=True)).undecided
        return not bound.cancelled_caught

    async def _wait(self, found: ProcessListing[T], deadline: float) -> ProcessListing[T]:
        """Wait until all are gone, the grace time is over, or there is no time for grace."""
        pause = _FIRST_PAUSE
        leader_lives = self._leader in found.alive
        while found.alive or found.undecided:
            left = deadline - trio.current_time()
            if left <= 0 or self._hurry.is_set():
                break
            # Only the pause is cut short: half an answer of a host would be taken for the next.
            with trio.move_on_after(min(pause, left)):
                await self._hurry.wait()
            pause = min(pause * 2, _LONGEST_PAUSE)
            found = await self._processes.list(newcomers=False)
            if leader_lives and self._leader not in found.alive:
                leader_lives = False
                await self._terminate(found)
        return found

    async def _kill(self, found: ProcessListing[T]) -> None:
        bound = HURRIED_KILL_BOUND if self._hurry.is_set() else KILL_BOUND
        deadline = trio.current_time() + bound
        pause = _FIRST_PAUSE
        while found.alive:
            if any(one.handle not in self.killed for one in found.alive.values()):
                pause = _FIRST_PAUSE  # what hands over all the time is caught by looking often
            await self._signal(found.alive.values(), Signals.SIGKILL)
            if self._processes.hindered:
                deadline = trio.current_time() + bound
            elif trio.current_time() >= deadline:
                self.left.update(found.alive)
                self._processes.give_up(found.alive.values())
                return
            await trio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
            found = await self._processes.list(newcomers=False)

    async def _terminate(self, found: ProcessListing[T]) -> None:
        fresh = [one for one in found.alive.values() if one.handle not in self.ended]
        await self._signal(fresh, Signals.SIGTERM)
        # A stopped process takes the polite signal only when it is continued.
        await self._signal((one for one in fresh if one.stopped), Signals.SIGCONT)

    async def _signal(self, processes: Iterable[T], number: Signals) -> None:
        # Elders first: a shell that waits for its child would exit as if all were well.
        elders_first = sorted(processes, key=_age)
        if not elders_first:
            return
        handles = {one.handle for one in await self._processes.signal(elders_first, number)}
        self.ended |= handles
        if number == Signals.SIGKILL:
            self.killed |= handles


def _age(process: VisibleProcess) -> tuple[float, int]:
    began = 0.0 if process.identity is None else process.identity.started_at
    return (began, process.pid)


async def sweep(
    reaper: Reaper[T], runs: ProcessOwnership[T], grace: float, *, where: str = ""
) -> int:
    """End the processes of runs; return how many.

    ``where`` names the host in a message. Raises ProcessesLeft for those that can still act, and
    for all runs where it is not known which of them has processes left.
    """
    if not await reaper.end_all():
        raise ProcessesLeft(
            f"could not tell in {grace + SWEEP_BOUND:.0f} s whether the processes of earlier runs"
            f"{where} are gone; look with ps there for one that hangs in the kernel"
            " (state D) or goes on starting others",
            pids=frozenset(runs.staying),
            run_ids=runs.wanted,
            ended=len(reaper.ended),
        )
    left = {pid: one for pid, one in runs.staying.items() if one.handle not in reaper.killed}
    ended = len(reaper.ended - {one.handle for one in left.values()})
    if left:
        raise ProcessesLeft(
            f"could not end these processes of earlier runs{where}:"
            f" {', '.join(str(pid) for pid in sorted(left))}; they run as another user or go on"
            " starting others; look at them with ps there and end them",
            pids=frozenset(left),
            run_ids=runs.runs_of(left.values()),
            ended=ended,
        )
    return ended
