"""Games of lost answers: whatever happens to the connection, each record is written once."""

from __future__ import annotations

import random

import pytest
import trio

from sortie.model import RunId, StoreError
from sortie.scheduler.records import ForgetComment, Record, RecordCrash
from sortie.store import RecordRefused
from sortie.store.postgres import PostgresStore, open_postgres_store
from sortie.store.postgres_address import parse_address
from tests.store.postgres_proxy import PostgresProxy
from tests.store.postgres_server import PostgresServer
from tests.store.records import T0, A, an_issue, begin, end

STEPS = 30
SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 11))]


class Game:
    """A writer that does as the journal does: what was not written is tried again, with more."""

    def __init__(self, seed: int, server: PostgresServer, proxy: PostgresProxy) -> None:
        self.draw = random.Random(seed)
        self.server = server
        self.proxy = proxy
        self.waiting: list[Record] = []
        self.crashes = self.runs = self.failures = 0

    async def play(self, store: PostgresStore) -> None:
        """Write and be struck, and in the end have everything written."""
        for _ in range(STEPS):
            self.strike()
            self.report()
            await self.write(store)
            if self.draw.random() < 0.5:
                self.strike()
                await self.look(store)
        self.proxy.heal()
        while self.waiting:
            await self.write(store)

    def report(self) -> None:
        """Have something to write: what counts how often it was written, and runs."""
        self.waiting.append(RecordCrash(issue=A))
        self.crashes += 1
        if self.draw.random() < 0.5:
            name = f"r{self.runs}"
            self.waiting += [begin(name, an_issue(name)), end(name)]
            self.runs += 1

    def strike(self) -> None:
        """Have something happen to the connection, or nothing."""
        match self.draw.randrange(6):
            case 0 | 1:
                self.proxy.lose_commit(
                    passed_on=self.draw.random() < 0.5, then_away=self.draw.random() < 0.5
                )
            case 2:
                for pid in self.server.sessions():
                    self.server.ask("SELECT pg_terminate_backend(%s::int)", pid)
            case 3:
                self.proxy.is_away = True
            case _:
                self.proxy.is_away = False

    async def write(self, store: PostgresStore) -> None:
        """Try to write all that waits."""
        try:
            await store.commit(self.waiting, T0)
            self.waiting.clear()
        except RecordRefused:
            raise  # something was written twice
        except StoreError:
            self.failures += 1

    async def look(self, store: PostgresStore) -> None:
        """Do what a daemon does besides: other transactions, and reading."""
        try:
            match self.draw.randrange(4):
                case 0:
                    await store.check()
                case 1:
                    await store.totals()
                case 2:
                    await store.forget_runs(1.0, 5)
                case _:  # as a comment that was made, which is not repeated where that fails
                    forget = ForgetComment(run_id=RunId(f"r{self.runs}"), lifecycle="end")
                    await store.commit([forget], T0)
        except StoreError:
            self.failures += 1


@pytest.mark.parametrize("seed", SEEDS)
async def test_each_record_is_written_once(postgres_server: PostgresServer, seed: int) -> None:
    """Also those of commits whose answer was lost, before or after the server made them."""
    schema = postgres_server.schema()
    async with trio.open_nursery() as nursery:
        proxy = PostgresProxy(postgres_server.port)
        await nursery.start(proxy.run)
        url = postgres_server.url.replace(str(postgres_server.port), str(proxy.port))
        async with open_postgres_store(parse_address(url, schema)) as store:
            game = Game(seed, postgres_server, proxy)
            await game.play(store)
            (crash,) = (await store.recover()).crashes
            rows = await store.history(limit=1000)
            totals = await store.totals()
        nursery.cancel_scope.cancel()

    assert crash.times == game.crashes
    assert sorted(row.run_id for row in rows) == sorted(f"r{n}" for n in range(game.runs))
    assert totals.runs == game.runs
    assert game.failures > 0
    assert proxy.lost > 0
