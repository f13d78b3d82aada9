"""Ends on a host what runs that are over have left there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeGuard

import trio

from sortie.model import ProcessesLeft, ProcessIdentity, RunId
from sortie.transports.reaper import KILL_BOUND
from sortie.transports.remote.fence import LeaderFence
from sortie.transports.remote.filesystem import RemoteFiles
from sortie.transports.remote.forced_end import FINISH_BOUND
from sortie.transports.remote.process_table import open_process_table
from sortie.transports.remote.protocol import numbers_in
from sortie.transports.remote.questions import clearing_body, namespaces_body
from sortie.transports.remote.reaper import sweep
from sortie.transports.remote.remote_launch import RemoteLaunch
from sortie.transports.remote.shell import Shell, ShellQuestion
from sortie.transports.remote.unconfirmed_runs import Remains, UnconfirmedRuns

_UNDER_WAY: set[int] = set()
"""The marks of all launches of this daemon, on whatever host; no two are the same."""


@asynccontextmanager
async def under_way(marker: int) -> AsyncIterator[None]:
    """Take the mark of a launch for one that is under way while the block lasts."""
    _UNDER_WAY.add(marker)
    try:
        yield
    finally:
        _UNDER_WAY.discard(marker)


class RunEndings:
    """Finds processes of runs on one host, and ends them; with no grace once ``hurry`` is set."""

    def __init__(
        self, shell: Shell, files: RemoteFiles, unconfirmed: UnconfirmedRuns, hurry: trio.Event
    ) -> None:
        self._shell = shell
        self._files = files
        self._unconfirmed = unconfirmed
        self._hurry = hurry

    async def sweep(
        self, run_ids: Collection[RunId], roots: Mapping[RunId, ProcessIdentity], *, grace: float
    ) -> int:
        """End every process of these runs on the host, whoever started it; see the port.

        Raises HostError where the host cannot be reached, and TransportError where it has no
        /proc to look at.
        """
        known = {run_id: self._unconfirmed.remains_of(run_id) for run_id in run_ids}
        ended = await self._end_namespaces(
            [one for remains in known.values() for one in remains or ()], grace
        )
        searched = [run_id for run_id in run_ids if known[run_id] is None]
        if searched or roots:
            async with open_process_table(self._shell) as table:
                ended += await sweep(
                    self._shell.host, table, searched, roots, grace=grace, hurry=self._hurry
                )
        return ended

    async def _end_namespaces(self, remains: Sequence[Remains], grace: float) -> int:
        """End what is left of programs with namespaces; return how many processes it were, as far
        as they can be told. Raises ProcessesLeft."""
        if not remains:
            return 0
        found, left = await self._end(
            "end what is left in PID namespaces", partial(namespaces_body, remains), grace
        )
        if left:
            raise ProcessesLeft(
                f"could not end the PID namespaces of earlier runs on host {self._shell.host}:"
                f" these are still there after SIGKILL: {', '.join(map(str, left))}; look at them"
                " with ps there",
                pids=frozenset(left),
            )
        return len(found)

    async def clear(self, path: str, *, grace: float, fence: LeaderFence | None = None) -> int:
        """End what runs that are over left living in a directory of the host; see the port.

        Known are they by the mark that each launch hands on, where the host's shell can set it.
        On a host without /proc nobody can be seen, and a run begins all the same.
        """
        ended: set[int] = set()
        pids = await self._files.occupied(path) or {}
        for marker in {mark for mark in pids.values() if self._is_over(mark)}:
            body = partial(clearing_body, marker)
            found, left = await self._end("end what an earlier run left", body, grace, fence)
            ended |= found - left
        if ended:
            pids = await self._files.occupied(path) or {}
        if pids:
            raise ProcessesLeft(
                f"somebody lives in {path} on host {self._shell.host}: processes"
                f" {', '.join(str(pid) for pid in sorted(pids))}; no run begins beside them:"
                " end them, or have them leave that directory",
                pids=frozenset(pids),
                ended=len(ended),
            )
        return len(ended)

    def _is_over(self, mark: int | None) -> TypeGuard[int]:
        """Tell whether a limit is the mark of a launch, and of none that is under way."""
        return RemoteLaunch.is_marker(mark) and mark not in _UNDER_WAY

    async def _end(
        self,
        attempt: str,
        body: Callable[[float], list[bytes]],
        grace: float,
        fence: LeaderFence | None = None,
    ) -> tuple[set[int], set[int]]:
        """Ask a question that ends processes; return the pids that were there, and those that
        stay."""
        grace = 0.0 if self._hurry.is_set() else grace
        bound = grace + KILL_BOUND + FINISH_BOUND
        question = ShellQuestion(attempt=attempt, body=body(grace), bound=bound, fence=fence)
        answer = await self._shell.ask(question)
        before, _, after = answer.said.partition("|")
        return set(numbers_in(before)), set(numbers_in(after))
