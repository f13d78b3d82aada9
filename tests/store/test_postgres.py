"""What only a store on a real server can prove: lost connections, lost answers, who may write."""

from __future__ import annotations

import random
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Iterator

import psycopg
import pytest
import trio

from sortie.model import Issue, RunId, StoreError
from sortie.scheduler.records import ForgetComment, RecordPause
from sortie.store.database import Database
from sortie.store.postgres import PostgresStore, open_postgres, open_postgres_store
from sortie.store.postgres_address import PostgresAddress, parse_address
from sortie.store.postgres_connection import PostgresConnection
from sortie.store.postgres_database import PostgresDatabase
from tests.contract.store.reading import names
from tests.store.postgres_proxy import PostgresProxy
from tests.store.postgres_server import PASSWORD, PostgresServer, postgres_running
from tests.store.records import T0, B, an_issue, begin, end, turn


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    """A server that may be ended."""
    with postgres_running(fsync="on") as server:
        yield server


@pytest.fixture
def address(postgres_server: PostgresServer) -> PostgresAddress:
    """A schema that nobody has."""
    return parse_address(postgres_server.url, postgres_server.schema())


@pytest.fixture
async def store(address: PostgresAddress) -> AsyncIterator[PostgresStore]:
    """A store on the common server."""
    async with open_postgres_store(address) as opened:
        yield opened


async def eventually(store: PostgresStore, *records: object) -> None:
    """Commit as the journal does: again while it fails."""
    with trio.fail_after(120):
        while True:
            try:
                await store.commit(records, T0)  # type: ignore[arg-type]
                return
            except StoreError:
                await trio.sleep(0.05)


@pytest.mark.parametrize(
    "strike",
    [
        PostgresServer.kill,
        PostgresServer.stop,
        lambda server: server.stop(signal.SIGQUIT),
    ],
    ids=["killed", "stopped", "at once"],
)
async def test_a_server_that_ends_and_comes_back(
    own_server: PostgresServer, strike: Callable[[PostgresServer], None]
) -> None:
    """While it is away each commit fails and says so; then the same store goes on."""
    address = parse_address(own_server.url, own_server.schema())
    async with open_postgres_store(address) as store:
        await store.commit([begin("r1")], T0)
        strike(own_server)
        try:
            with pytest.raises(StoreError, match="the server cannot be reached") as caught:
                await store.commit([turn("r1", 1)], T0)
            with pytest.raises(StoreError, match="the server cannot be reached"):
                await store.check()
            with pytest.raises(StoreError):
                await store.history()
        finally:
            own_server.start()
        await eventually(store, turn("r1", 1), begin("r2", B))

        assert await names(store) == ["r2", "r1"]
        assert [run.turns for run in (await store.recover()).unfinished] == [1, 0]
    assert PASSWORD not in str(caught.value)


async def test_a_store_is_left_while_the_server_is_away(own_server: PostgresServer) -> None:
    """A daemon that ends then has nothing to ask of it."""
    address = parse_address(own_server.url, own_server.schema())
    try:
        async with open_postgres_store(address) as store:
            own_server.kill()
            with pytest.raises(StoreError, match="cannot write to"):
                await store.check()
    finally:
        own_server.start()

    with pytest.raises(StoreError, match="it is closed"):
        await store.check()


async def test_a_session_that_is_ended_is_made_anew_at_once(
    store: PostgresStore, address: PostgresAddress, postgres_server: PostgresServer
) -> None:
    """Nobody notices that the connection was ended while nothing was under way."""
    await store.commit([begin("r1")], T0)
    _end_sessions(postgres_server, address)

    await store.commit([end("r1")], T0)
    _end_sessions(postgres_server, address)
    rows = await store.history()
    _end_sessions(postgres_server, address)
    await store.check()

    assert [row.run_id for row in rows] == ["r1"]


async def test_an_idle_transaction_that_is_ended_writes_nothing(
    store: PostgresStore, address: PostgresAddress, postgres_server: PostgresServer
) -> None:
    """What stood in it before is not written without the rest."""
    ended: list[int] = []

    def job(database: Database) -> None:
        with database.transaction():
            if not ended:
                database.change("set_paused", paused=1)
                ended.append(_end_sessions(postgres_server, address))
            database.change("upsert_sessions", issue_id="a", sessions=3)

    await store._thread.change(job)
    recovered = await store.recover()

    assert ended == [1]
    assert not recovered.paused
    assert recovered.sessions == {"a": 3}  # the job was done again


@pytest.mark.parametrize("is_made", [True, False])
@pytest.mark.parametrize("stays_away", [True, False])
async def test_a_commit_without_an_answer_is_made_once(
    postgres_server: PostgresServer, is_made: bool, stays_away: bool
) -> None:
    """Whether or not the server has made it, the records are there once, and those behind them."""
    schema = postgres_server.schema()
    async with trio.open_nursery() as nursery:
        proxy = PostgresProxy(postgres_server.port)
        await nursery.start(proxy.run)
        url = postgres_server.url.replace(str(postgres_server.port), str(proxy.port))
        async with open_postgres_store(parse_address(url, schema)) as store:
            await store.commit([RecordPause(paused=True)], T0)
            first = (begin("r1"), turn("r1", 1))
            proxy.lose_commit(passed_on=is_made, then_away=stays_away)
            if stays_away:
                with pytest.raises(StoreError, match="cannot be reached"):
                    await store.commit(first, T0)
                with pytest.raises(StoreError, match="cannot be reached"):
                    await store.check()
                made = postgres_server.ask(f"SELECT count(*) FROM {schema}.runs")
                proxy.is_away = False
                await store.sight({"a": "1"}, T0)  # another transaction comes in between
                await store.forget_runs(T0, 5)
                await store.commit((*first, begin("r2", B)), T0 + 1)
                assert made == [(int(is_made),)]
            else:
                await store.commit(first, T0)
                await store.commit([begin("r2", B)], T0 + 1)
            rows = await store.history()
            totals = await store.totals()
        nursery.cancel_scope.cancel()

    assert proxy.lost == 1
    assert [row.run_id for row in rows] == ["r2", "r1"]
    assert (totals.runs, totals.turns) == (2, 1)


async def test_records_that_were_written_are_left_out_until_the_rest_is(
    postgres_server: PostgresServer,
) -> None:
    """A commit behind a lost answer may fail as often as it likes."""
    schema = postgres_server.schema()
    async with trio.open_nursery() as nursery:
        proxy = PostgresProxy(postgres_server.port)
        await nursery.start(proxy.run)
        url = postgres_server.url.replace(str(postgres_server.port), str(proxy.port))
        async with open_postgres_store(parse_address(url, schema)) as store:
            proxy.lose_commit(passed_on=True, then_away=True)
            with pytest.raises(StoreError):
                await store.commit([begin("r1")], T0)
            proxy.is_away = False
            proxy.lose_commit(passed_on=True, then_away=True)
            with pytest.raises(StoreError):
                await store.commit([begin("r1"), begin("r2", B)], T0)
            proxy.is_away = False
            await store.commit([begin("r1"), begin("r2", B), turn("r2", 1, B)], T0)
            with pytest.raises(StoreError, match="cannot record run r1: it is recorded already"):
                await store.commit([begin("r1")], T0)
            rows = await store.history()
        nursery.cancel_scope.cancel()

    assert [row.run_id for row in rows] == ["r2", "r1"]


async def test_a_commit_that_is_not_repeated_is_in_nobodys_way(
    postgres_server: PostgresServer,
) -> None:
    """As that of a comment, of which the next daemon finds that it was made."""
    schema = postgres_server.schema()
    async with trio.open_nursery() as nursery:
        proxy = PostgresProxy(postgres_server.port)
        await nursery.start(proxy.run)
        url = postgres_server.url.replace(str(postgres_server.port), str(proxy.port))
        async with open_postgres_store(parse_address(url, schema)) as store:
            proxy.lose_commit(passed_on=True, then_away=True)
            with pytest.raises(StoreError):
                await store.commit([ForgetComment(run_id=RunId("r0"), lifecycle="end")], T0)
            proxy.is_away = False
            await store.commit([begin("r1")], T0)
            rows = await store.history()
        nursery.cancel_scope.cancel()

    assert [row.run_id for row in rows] == ["r1"]


async def test_a_server_that_does_not_answer_is_given_up(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit fails when its time is over; what it had begun is not made."""
    schema = postgres_server.schema()
    async with trio.open_nursery() as nursery:
        proxy = PostgresProxy(postgres_server.port)
        await nursery.start(proxy.run)
        url = postgres_server.url.replace(str(postgres_server.port), str(proxy.port))
        async with open_postgres_store(parse_address(url, schema)) as store:
            await store.commit([begin("r1")], T0)
            monkeypatch.setattr(PostgresDatabase, "ANSWER_LIMIT", 0.2)
            proxy.is_silent = True
            with trio.fail_after(60), pytest.raises(StoreError, match="no answer within"):
                await store.commit([end("r1")], T0)
            proxy.is_silent = False
            monkeypatch.setattr(PostgresDatabase, "ANSWER_LIMIT", 60.0)
            await eventually(store, end("r1"))
            rows = await store.history()
        nursery.cancel_scope.cancel()

    assert [row.status.value for row in rows] == ["succeeded"]


async def test_only_the_first_of_those_in_line_waits_for_a_silent_server(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked for before it was given up fails with it, also where nobody asks any more
    for what it was given up over."""
    schema, told = postgres_server.schema(), list[str]()

    async def look(store: PostgresStore) -> None:
        with pytest.raises(StoreError) as caught:
            await store.history()
        told.append(str(caught.value))

    async with trio.open_nursery() as nursery:
        proxy = PostgresProxy(postgres_server.port)
        await nursery.start(proxy.run)
        url = postgres_server.url.replace(str(postgres_server.port), str(proxy.port))
        async with open_postgres_store(parse_address(url, schema)) as store:
            await store.commit([begin("r1")], T0)
            monkeypatch.setattr(PostgresDatabase, "ANSWER_LIMIT", 2.0)
            proxy.is_silent = True
            with trio.move_on_after(0.05) as cancelled:
                await store.totals()
            with trio.fail_after(120):
                async with trio.open_nursery() as readers:
                    for _ in range(5):
                        readers.start_soon(look, store)
            monkeypatch.setattr(PostgresDatabase, "ANSWER_LIMIT", 60.0)
            connections, proxy.is_silent = proxy.connections, False
            await eventually(store, end("r1"))
        nursery.cancel_scope.cancel()

    assert cancelled.cancelled_caught
    assert len(told) == 5
    assert len(set(told)) == 1
    assert connections <= 1


async def test_what_a_standby_has_not_got_is_not_written(
    own_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the synchronous standby is away no commit succeeds, however often it is tried, and no
    store opens, though the primary has the rows; with the standby each is there once."""
    address = parse_address(own_server.url, own_server.schema())
    other = parse_address(own_server.url, own_server.schema())
    open_postgres(other).close()
    async with open_postgres_store(address) as store:
        await store.commit([begin("r1")], T0)
        _set_standbys(own_server, "absent")
        monkeypatch.setattr(PostgresDatabase, "ANSWER_LIMIT", 1.0)
        try:
            for _ in range(3):
                with pytest.raises(StoreError, match="gave no answer within"):
                    await store.commit([end("r1")], T0)
            with pytest.raises(StoreError, match="gave no answer within"):
                await trio.to_thread.run_sync(open_postgres, other)
        finally:
            _set_standbys(own_server, "")
        monkeypatch.setattr(PostgresDatabase, "ANSWER_LIMIT", 60.0)
        await eventually(store, end("r1"))
        rows = await store.history()

    assert [row.status.value for row in rows] == ["succeeded"]


def _set_standbys(server: PostgresServer, names: str) -> None:
    server.ask(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
    server.ask("SELECT pg_reload_conf()")


async def test_a_full_disk_of_the_server_fails_the_commit_and_nothing_else() -> None:
    """A commit says so, and leaves no trace; with room again the same store goes on."""
    large = [begin(f"r{number}", _large(number)) for number in range(30)]
    with postgres_running(120, fsync="on", max_wal_size="32MB") as server:
        async with open_postgres_store(parse_address(server.url, "sortie")) as store:
            await store.commit([begin("first", B)], T0)
            ballast = server.directory / "ballast"
            left = shutil.disk_usage(server.directory).free
            ballast.write_bytes(bytes(left - (4 << 20)))
            with pytest.raises(StoreError, match="the server's disk is full; free some space"):
                await store.commit(large, T0)
            ballast.unlink()  # a server whose disk is full may fail to read as well
            rows = await store.history()
            await eventually(store, *large)
            again = await store.history()

    assert [row.run_id for row in rows] == ["first"]
    assert len(again) == 31


def _large(number: int) -> Issue:
    """An issue that fills a disk, as it cannot be compressed."""
    return an_issue(f"L-{number}", description=random.Random(number).randbytes(300_000).hex())


async def test_two_stores_of_one_schema_are_refused(
    store: PostgresStore, address: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second is told who has it, and writes nothing."""
    monkeypatch.setattr("sortie.store.postgres_lock.PATIENCE", 0.2)

    with pytest.raises(StoreError, match=r"is in use by another daemon.*process \d+ of the server"):
        open_postgres(address)

    await store.commit([begin("r1")], T0)


async def test_a_store_whose_lock_another_one_had_writes_nothing_more(
    store: PostgresStore, address: PostgresAddress, postgres_server: PostgresServer
) -> None:
    """Its picture of the rows is not what they are; only a restart reads them anew."""
    await store.commit([begin("r1")], T0)
    other = await _taken_over(postgres_server, address)
    with pytest.raises(StoreError, match="in use by another daemon"):
        await store.commit([end("r1")], T0)
    other.drop()

    for _ in range(2):
        with pytest.raises(StoreError, match=r"another one has worked.*restart this daemon"):
            await store.commit([end("r1")], T0)
        with pytest.raises(StoreError, match="restart this daemon"):
            await store.check()
    rows = await store.history()

    assert [row.status.value for row in rows] == ["running"]


async def test_rows_that_the_server_lost_are_noticed(
    store: PostgresStore, address: PostgresAddress, postgres_server: PostgresServer
) -> None:
    """After a failover to a standby that was behind, nothing is added to a past that is gone."""
    await store.commit([begin("r1")], T0)
    (before,) = postgres_server.ask(f"SELECT mark FROM {address.schema}.store_state")
    await store.commit([turn("r1", 1)], T0)
    postgres_server.ask(f"UPDATE {address.schema}.store_state SET mark = %s", before[0])
    _end_sessions(postgres_server, address)

    with pytest.raises(StoreError, match="the server lost what was recorded last"):
        await store.commit([turn("r1", 2)], T0)


@pytest.mark.parametrize("state", ["40001", "40P01"])
async def test_a_transaction_that_was_in_the_way_is_waited_out(
    store: PostgresStore, address: PostgresAddress, postgres_server: PostgresServer, state: str
) -> None:
    """Serialization failures and deadlocks: the commit is tried again, and made once."""
    postgres_server.ask(_FAILING.format(schema=address.schema, state=state))

    await store.commit([begin("r1")], T0)

    assert postgres_server.ask(f"SELECT last_value FROM {address.schema}.tries") == [(2,)]
    assert await names(store) == ["r1"]
    assert (await store.totals()).runs == 1


_FAILING = """
CREATE SEQUENCE {schema}.tries;
CREATE FUNCTION {schema}.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF nextval('{schema}.tries') < 2 THEN RAISE EXCEPTION 'in the way' USING ERRCODE = '{state}';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER failing AFTER INSERT ON {schema}.runs DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION {schema}.fail();
"""


async def test_a_locked_table_fails_the_commit_in_time(
    store: PostgresStore, address: PostgresAddress, postgres_server: PostgresServer
) -> None:
    """Who works on the tables by hand holds up the daemon for seconds only."""
    with psycopg.connect(postgres_server.url) as other:
        other.execute(f"LOCK TABLE {address.schema}.runs".encode())
        with pytest.raises(StoreError, match="another session keeps a table locked"):
            await store.commit([begin("r1")], T0)
    await store.commit([begin("r1")], T0)

    assert await names(store) == ["r1"]


async def test_a_standby_is_not_written_to(
    store: PostgresStore, address: PostgresAddress, postgres_server: PostgresServer
) -> None:
    """A server that has become read-only is told, by a check as well."""
    user = "ALTER ROLE sortie {}"
    postgres_server.ask(user.format("SET default_transaction_read_only = on"))
    try:
        _end_sessions(postgres_server, address)
        with pytest.raises(StoreError, match="the server is read-only, as a standby is"):
            await store.check()
        with pytest.raises(StoreError, match="the server is read-only, as a standby is"):
            await store.commit([begin("r1")], T0)
    finally:
        postgres_server.ask(
            "BEGIN READ WRITE; " + user.format("RESET default_transaction_read_only") + "; COMMIT"
        )
    await store.commit([begin("r1")], T0)

    assert await names(store) == ["r1"]


async def _taken_over(server: PostgresServer, address: PostgresAddress) -> PostgresConnection:
    """Have another daemon begin in the moment in which the first one is not connected."""
    other = PostgresDatabase(address)
    other.connection.live()
    _end_sessions(server, address, besides=other.connection.pids)
    other.take_lock()
    other.begin()
    with other.transaction():
        other.change("prove_writable")
    return other.connection


def _end_sessions(
    server: PostgresServer, address: PostgresAddress, besides: set[int] | None = None
) -> int:
    """End all sessions that use the schema, as an administrator does; return how many."""
    found = server.ask(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
        " WHERE application_name = 'sortie' AND pid <> ALL(%s)",
        list(besides or {0}),
    )
    return len(found)
