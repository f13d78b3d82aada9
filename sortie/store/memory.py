"""The store's twin in memory: the same port, held to the same suite, gone with the process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import trio

from sortie.model import RunId, Sighting, StoreError
from sortie.scheduler.records import Record
from sortie.store import HistoryRow, Recovered, Totals, UnfinishedRun, UnknownRun
from sortie.store.rows import moment
from sortie.store.tables import Run, Tables


class MemoryStore:
    """A Store that forgets with the process; while ``failing`` is set, each method raises it.

    What was committed stays over any number of calls of ``recover``, so a scheduler can be dropped
    and built anew on the same store.
    """

    def __init__(self) -> None:
        self.failing: StoreError | None = None
        self._tables = Tables()
        self._sightings: dict[str, tuple[str, Sighting]] = {}

    async def commit(self, records: Sequence[Record], at: float) -> None:
        """Write all records, or none."""
        await self._turn_up()
        tables = self._tables.copy()
        for record in records:
            tables.write(record, at)
        self._tables = tables

    async def recover(self) -> Recovered:
        """Return what was committed; runs under way count as an earlier life's from now on."""
        await self._turn_up()
        tables = self._tables
        tables.inherited = tables.last_seq
        return Recovered(
            unfinished=tuple(
                _unfinished(tables.runs[run_id]) for run_id in tables.under_way.values()
            ),
            retries=tuple(sorted(tables.retries.values(), key=lambda r: (r.due_at, r.issue.id))),
            holds=tuple(sorted(tables.holds.values(), key=lambda h: (h.since, h.issue.id))),
            paused=tables.paused,
            sessions=dict(tables.sessions),
            workspaces=tuple(
                sorted(tables.workspaces.values(), key=lambda w: (w.issue_id, w.host, w.path))
            ),
            crashes=tuple(sorted(tables.crashes.values(), key=lambda c: c.issue.id)),
        )

    async def history(
        self, *, issue: str | None = None, limit: int = 100, before: RunId | None = None
    ) -> Sequence[HistoryRow]:
        """Return runs, newest first. Raises UnknownRun."""
        await self._turn_up()
        runs = sorted(self._tables.runs.values(), key=_position, reverse=True)
        if before is not None:
            if before not in self._tables.runs:
                raise UnknownRun(before)
            end = _position(self._tables.runs[before])
            runs = [run for run in runs if _position(run) < end]
        if issue is not None:
            runs = [run for run in runs if run.begun.issue.identifier == issue]
        return tuple(_history_row(run) for run in runs[: max(0, limit)])

    async def forget_runs(self, before: float, limit: int) -> int:
        """Forget old runs that nothing refers to any more; return how many."""
        await self._turn_up()
        self._tables = self._tables.copy()
        return self._tables.forget_runs(before, limit)

    async def totals(self) -> Totals:
        """Sum up all runs."""
        await self._turn_up()
        runs = (*self._tables.runs.values(), *self._tables.forgotten)
        credits_told = [run.credits for run in runs if run.credits is not None]
        tokens_told = [run.tokens for run in runs if run.tokens is not None]
        return Totals(
            runs=len(runs),
            turns=sum(run.turns for run in runs),
            credits=sum(credits_told) if credits_told else None,
            tokens=sum(tokens_told) if tokens_told else None,
            seconds_running=sum(run.seconds for run in runs),
        )

    async def sight(self, digests: Mapping[str, str], at: float) -> Mapping[str, Sighting]:
        """Note digests, and return what is known of each."""
        await self._turn_up()
        now = moment(at)
        for issue_id, digest in digests.items():
            known, seen = self._sightings.get(
                issue_id, (digest, Sighting(first_seen=now, changed_at=now))
            )
            if known != digest:
                seen = replace(seen, changed_at=now)
            self._sightings[issue_id] = (digest, seen)
        return {issue_id: self._sightings[issue_id][1] for issue_id in digests}

    async def check(self) -> None:
        """Raise ``failing`` where it is set."""
        await self._turn_up()

    async def _turn_up(self) -> None:
        await trio.lowlevel.checkpoint()
        if self.failing is not None:
            raise self.failing


def _position(run: Run) -> tuple[float, int]:
    return run.started_at, run.seq


def _unfinished(run: Run) -> UnfinishedRun:
    return UnfinishedRun(
        run_id=run.begun.run_id,
        issue=run.begun.issue,
        streak=run.begun.streak,
        host=run.begun.host,
        process=run.process,
        workspace=run.workspace,
        turns=run.turns,
    )


def _history_row(run: Run) -> HistoryRow:
    return HistoryRow(
        run_id=run.begun.run_id,
        issue=run.begun.issue.identifier,
        issue_id=run.begun.issue.id,
        attempt=run.begun.streak.failures,
        status=run.status,
        error_kind=run.error_kind,
        error=run.error,
        turns=run.turns,
        credits=run.credits,
        tokens=run.tokens,
        host=run.begun.host,
        workspace=run.workspace,
        agent=run.begun.agent,
        started_at=moment(run.started_at),
        finished_at=None if run.finished_at is None else moment(run.finished_at),
    )
