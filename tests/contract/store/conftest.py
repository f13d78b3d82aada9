"""An empty store of each kind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr

from sortie.config.store import StoreSettings
from sortie.model import NOTHING, RunId, Sighting, Spending
from sortie.scheduler.records import Record
from sortie.store import DayRow, HistoryRow, Recovered, Store, Totals
from sortie.store.postgres import address_of, open_postgres_store
from sortie.store.readonly import Place, read_daily, read_diff_of, read_history, read_state
from sortie.store.sqlite import open_store
from tests.store.inline import MemoryStore


class ReadBeside:
    """A store that another process reads: history and state come from its rows, beside it."""

    def __init__(self, store: Store, path: Place) -> None:
        self._store = store
        self._path = path

    async def commit(self, records: Sequence[Record], at: float) -> None:
        """See Store."""
        await self._store.commit(records, at)

    async def recover(self) -> Recovered:
        """See Store; what is read beside it must be the same."""
        recovered = await self._store.recover()
        assert read_state(self._path) == recovered
        return recovered

    async def history(
        self,
        *,
        issue: str | None = None,
        limit: int = 100,
        before: RunId | None = None,
        rule: str | None = None,
    ) -> Sequence[HistoryRow]:
        """See Store."""
        return read_history(self._path, issue=issue, limit=limit, before=before, rule=rule)

    async def run(self, run_id: RunId) -> HistoryRow | None:
        """See Store."""
        return await self._store.run(run_id)

    async def diff(self, run_id: RunId) -> str | None:
        """See Store; another process reads the same."""
        told = await self._store.diff(run_id)
        assert told == read_diff_of(self._path, run_id)
        return told

    async def forget_runs(self, before: float, limit: int) -> int:
        """See Store."""
        return await self._store.forget_runs(before, limit)

    async def totals(self) -> Totals:
        """See Store."""
        return await self._store.totals()

    async def spent_on(self, day: str) -> Spending:
        """See Store; what is read beside it by day and agent comes to the same."""
        told = await self._store.spent_on(day)
        rows = [row.spent for row in read_daily(self._path, limit=99) if row.day == day]
        assert sum(rows, NOTHING) == told
        return told

    async def days(self, limit: int) -> Sequence[DayRow]:
        """See Store; another process reads the same."""
        told = await self._store.days(limit)
        assert told == read_daily(self._path, limit=limit)
        return told

    async def sight(self, digests: Mapping[str, str], at: float) -> Mapping[str, Sighting]:
        """See Store."""
        return await self._store.sight(digests, at)

    async def check(self) -> None:
        """See Store."""
        await self._store.check()


@asynccontextmanager
async def _file(directory: Path) -> AsyncIterator[Store]:
    async with open_store(str(directory / "sortie.db")) as store:
        yield store


@asynccontextmanager
async def _beside(directory: Path) -> AsyncIterator[Store]:
    async with _file(directory) as store:
        yield ReadBeside(store, str(directory / "sortie.db"))


@asynccontextmanager
async def _memory(directory: Path) -> AsyncIterator[Store]:
    yield MemoryStore()


OPENERS: dict[str, Callable[[Path], AbstractAsyncContextManager[Store]]] = {
    "file": _file,
    "read beside": _beside,
    "memory": _memory,
}


@asynccontextmanager
async def _server(store: StoreSettings) -> AsyncIterator[Store]:
    async with open_postgres_store(address_of(store)) as opened:
        yield opened


@asynccontextmanager
async def _beside_on_server(store: StoreSettings) -> AsyncIterator[Store]:
    async with _server(store) as opened:
        yield ReadBeside(opened, store)


SERVERS: dict[str, Callable[[StoreSettings], AbstractAsyncContextManager[Store]]] = {
    "postgres": _server,
    "postgres, read beside": _beside_on_server,
}


@pytest.fixture(params=[*OPENERS, *SERVERS])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """An empty store."""
    if request.param in OPENERS:
        opening = OPENERS[request.param](tmp_path)
    else:
        server = request.getfixturevalue("postgres_server")
        named = {"url": SecretStr(server.url), "schema": server.schema()}
        opening = SERVERS[request.param](StoreSettings.model_validate(named))
    async with opening as opened:
        yield opened
