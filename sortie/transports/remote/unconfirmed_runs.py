"""What runs have on a host, as long as it is not sure that nothing of them is left."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from msgspec import Struct

from sortie.model import RunId
from sortie.transports.remote.namespaces import NamespaceInit


class Remains(Struct, frozen=True, kw_only=True):
    """What of a program with a namespace ends last: ``pid`` and ``ticks`` (its start) are those of
    what waits for the program; ``init`` is None where it is not known. ``wrappers`` is as in the
    program's Command."""

    pid: int
    ticks: int
    init: NamespaceInit | None = None
    wrappers: int = 0


class HasRemains(Protocol):
    """A program; without ``remains`` what it left has to be searched for."""

    @property
    def remains(self) -> Remains | None: ...


class UnconfirmedRuns:
    """The runs of one host: those with programs under way, and those of which something may be left
    after a failure."""

    def __init__(self) -> None:
        self._under_way: dict[str, list[HasRemains]] = {}
        self._left: dict[str, list[Remains | None]] = {}

    def begin(self, run_id: str, program: HasRemains) -> None:
        """Note a program that is about to start."""
        self._under_way.setdefault(run_id, []).append(program)

    def end(self, run_id: str, program: HasRemains, *, gone: bool, failed: bool) -> None:
        """Note that a program is no longer under way.

        Whether it is ``gone`` for certain; of a run that ``failed`` its host will be asked anyhow.
        """
        programs = self._under_way[run_id]
        programs.remove(program)
        if not programs:
            del self._under_way[run_id]
        if failed or not gone:
            left = self._left.setdefault(run_id, [])
            left += [] if gone else [program.remains]

    def remains_of(self, run_id: RunId) -> list[Remains] | None:
        """Return what tells whether anything of a run is left; None where it has to be searched
        for."""
        if run_id not in self._under_way and run_id not in self._left:
            return None
        under_way = [program.remains for program in self._under_way.get(run_id, ())]
        remains = [*self._left.get(run_id, ()), *under_way]
        found = [one for one in remains if one is not None]
        return found if len(found) == len(remains) else None

    def discard(self, run_ids: Collection[RunId]) -> None:
        """Forget that something may be left of runs."""
        for run_id in run_ids:
            self._left.pop(run_id, None)
