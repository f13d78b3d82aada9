"""Ends what runs of an earlier life left on a host, and says who stays.

A process that forks and exits every few milliseconds stands in no list of processes. Such are
looked for among those that came since the list was begun, where nobody else is found and after each
SIGKILL, and killed where they are met.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from signal import Signals

import trio

from sortie.model import ProcessIdentity, RunId
from sortie.transports.ownership import ProcessOwnership
from sortie.transports.reaper import ProcessListing, Reaper
from sortie.transports.reaper import sweep as sweep_processes
from sortie.transports.remote.process_table import Handle, RemoteProcess, RemoteProcessTable

# One who starts another and exits while the list is read can be missed together with the other, so
# nobody is gone before nobody was seen several times.
_LOOKS = 3


class RemoteRunProcesses(ProcessOwnership[RemoteProcess]):
    """The processes of some runs on one host, for a reaper.

    ``unlisted`` are the pids of those that were met among the youngest, and killed.
    """

    hindered = False

    def __init__(
        self,
        run_ids: Collection[RunId],
        roots: Mapping[RunId, ProcessIdentity],
        table: RemoteProcessTable,
    ) -> None:
        super().__init__(run_ids, roots)
        self.unlisted: set[int] = set()
        self._table = table
        self._given_up: set[Handle] = set()

    async def list(self, *, newcomers: bool) -> ProcessListing[RemoteProcess]:
        """Return who is alive; undecided where such were met that stand in no list."""
        for _ in range(_LOOKS):
            self.recognise(await self._table.read(), self._table.me)
            alive = {p: one for p, one in self.staying.items() if one.handle not in self._given_up}
            if alive:
                return ProcessListing(alive=alive)
        return ProcessListing(undecided=newcomers and await self._kill_youngest())

    async def signal(
        self, processes: Sequence[RemoteProcess], number: Signals
    ) -> Collection[RemoteProcess]:
        """Signal them; return those that got it."""
        refused = await self._table.signal(processes, number)
        self.give_up([one for one in processes if one.pid in refused])
        if number == Signals.SIGKILL:
            await self._kill_youngest()
        return [one for one in processes if one.pid not in refused]

    def give_up(self, processes: Collection[RemoteProcess]) -> None:
        """List these no more."""
        self._given_up |= {one.handle for one in processes}

    async def _kill_youngest(self) -> bool:
        killed = await self._table.kill_youngest(self.wanted)
        self.unlisted |= killed
        return bool(killed)


async def sweep(
    host: str,
    table: RemoteProcessTable,
    run_ids: Collection[RunId],
    roots: Mapping[RunId, ProcessIdentity],
    *,
    grace: float,
    hurry: trio.Event,
) -> int:
    """End the processes of runs; return how many, each of them once though it got more than one
    signal. Raises ProcessesLeft."""
    runs = RemoteRunProcesses(run_ids, roots, table)
    reaper = Reaper(runs, grace, hurry)
    ended = await sweep_processes(reaper, runs, grace, where=f" on host {host}")
    signalled = {handle.pid for handle in reaper.ended if isinstance(handle, Handle)}
    return ended + len(runs.unlisted - signalled)
