"""Finds the processes of runs on this machine, and leaves out those beyond reach."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet

import psutil

from sortie.model import ProcessIdentity, RunId
from sortie.transports.local.process_table import ProcessTable, Seen
from sortie.transports.local.process_tree import Members
from sortie.transports.ownership import ProcessOwnership

_UNNAMED = RunId("")


class Hunt(ProcessOwnership[Seen]):
    """Finds the processes of these runs, look after look; those given up stay in ``staying``.

    Whoever carries ``mark`` and does not descend from this process was left by an earlier life of
    this daemon, by a run that nobody can name where only the mark is left.
    """

    def __init__(
        self,
        run_ids: Collection[RunId],
        roots: Mapping[RunId, ProcessIdentity],
        mark: int | None = None,
    ) -> None:
        super().__init__(run_ids, roots)
        self._mark = mark
        self._our_own: AbstractSet[int] = frozenset()
        self._given_up: set[psutil.Process] = set()

    @property
    def is_vain(self) -> bool:
        """Tell whether there is nothing to go by."""
        return not self.wanted and self._mark is None

    def runs_of(self, seen: Iterable[Seen]) -> frozenset[RunId]:
        """Return the runs that these processes belong to, as far as they can be named."""
        return super().runs_of(seen) - {_UNNAMED}

    def give_up(self, seen: Seen) -> None:
        """Count a process as out of reach: it may not be signalled, or does not die."""
        self._given_up.add(seen.handle)

    def members(self, census: ProcessTable) -> Members:
        """Return who is alive of these runs, and remember them."""
        self._our_own = census.tree([os.getpid()]).keys()
        self.recognise(census.by_pid, os.getpid(), newcomers=census.everyone)
        reachable = (s for s in self.staying.values() if s.handle not in self._given_up)
        return Members(alive={seen.pid: seen for seen in reachable})

    def _runs_by_evidence(self, seen: Seen) -> AbstractSet[RunId]:
        runs = super()._runs_by_evidence(seen)
        if runs or self._mark is None or seen.mark != self._mark or seen.pid in self._our_own:
            return runs
        return {_UNNAMED}
