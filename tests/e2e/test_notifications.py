"""Notifications through outages of their target and kills of the daemon."""

from __future__ import annotations

import os
import random
import time
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import pytest
import trio
from pydantic import SecretStr

from sortie.config.store import StoreSettings
from sortie.model.notifications import HELD, Notice, NotifiedIssue
from sortie.scheduler.records import RecordNotification
from sortie.store.database_store import DatabaseStore
from sortie.store.postgres import address_of, open_postgres_store
from sortie.store.readonly import read_notifications, read_state
from sortie.store.sqlite import open_store
from tests.e2e.conftest import Start
from tests.e2e.place import PATIENCE, Place
from tests.e2e.receiving import SECRET, Mode, Receiver, receiving
from tests.store.postgres_server import PostgresServer

SEED = os.environ.get("SORTIE_TEST_SEED")
BATCH = 10
"""Notifications that a sender has in hand: as many may be repeated after a kill."""

MODES: tuple[Mode, ...] = ("up", "unavailable", "losing answers", "hanging up")
ISSUES = 20


@dataclass
class Rows:
    """Where the rows are: in a file of a place, or on a server."""

    place: Place
    server: StoreSettings | None = None

    @property
    def database(self) -> str | StoreSettings:
        """What commands read."""
        return str(self.place.root / ".sortie.db") if self.server is None else self.server

    @property
    def block(self) -> dict[str, object]:
        """What the workflow file says of them."""
        if self.server is None:
            return {}
        return {"url": "$SORTIE_STORE_URL", "schema": self.server.schema_name}

    @property
    def environ(self) -> dict[str, str]:
        """What a daemon needs to know."""
        if self.server is None or self.server.url is None:
            return {"NOTIFICATIONS_SECRET": SECRET}
        url = self.server.url.get_secret_value()
        return {"NOTIFICATIONS_SECRET": SECRET, "SORTIE_STORE_URL": url}

    @property
    def start_limit(self) -> float:
        """Seconds for which a daemon may wait for the lease of the one before."""
        return 0.0 if self.server is None else 20.0

    def opened(self) -> AbstractAsyncContextManager[DatabaseStore]:
        """Return the store, to be entered."""
        if self.server is None:
            return open_store(str(self.database))
        return open_postgres_store(address_of(self.server))


async def _record(rows: Rows, count: int) -> list[str]:
    """Put notifications into the database of a place before its first daemon; return their keys."""
    keys = [f"{HELD}:{number:06d}" for number in range(count)]
    async with rows.opened() as store:
        for begin in range(0, count, 500):
            records = [
                RecordNotification(notification=_notice(key), targets=("webhook",))
                for key in keys[begin : begin + 500]
            ]
            await store.commit(records, time.time())
    return keys


def _notice(key: str) -> Notice:
    name = f"OLD-{int(key.rpartition(':')[2]) % ISSUES}"
    issue = NotifiedIssue(id=name, identifier=name, title="An issue of before")
    return Notice(key=key, event=HELD, title=f"{name}: held", text="It is held.", issue=issue)


async def _until(receiver: Receiver, count: int, within: float) -> None:
    """Wait until so many have arrived, or for so long."""
    with trio.move_on_after(within):
        while len(receiver.arrivals) < count:
            await trio.sleep(0.005)


async def _play(rows: Rows, start: Start, count: int, kills: int, seed: int) -> Receiver:
    """Kill daemons while they send, their target being up or not; return what has arrived."""
    choose, place = random.Random(seed), rows.place
    with receiving() as receiver:
        place.write_workflow(
            store=rows.block,
            agent={"max_sessions": 1},
            notifications=[
                {"events": "all", "webhook": receiver.url, "secret": "$NOTIFICATIONS_SECRET"}
            ],
        )
        keys = await _record(rows, count)
        for number in range(kills):
            place.add_issue(f"NEW-{number}", "exit=1")
            receiver.mode = choose.choice(MODES) if number else "losing answers"
            async with start(**rows.environ) as daemon:
                more = choose.randrange(1, max(2, count // kills))
                wanted = len(receiver.arrivals) + more
                await _until(receiver, wanted, rows.start_limit + choose.uniform(0.5, 4.0))
                receiver.mode = "up" if number % 2 else choose.choice(MODES)
                await _until(receiver, wanted, PATIENCE if number % 2 else 1.0)  # and at once:
                daemon.process.kill()
                await daemon.process.wait()
            place.kill_processes()
        receiver.mode = "up"
        async with start(**rows.environ) as daemon:
            with trio.fail_after(PATIENCE + rows.start_limit + count / 20):
                while not _is_all_told(rows, kills):
                    await trio.sleep(0.2)
        assert {one.id for one in receiver.arrivals} >= set(keys)
    return receiver


def _is_all_told(rows: Rows, kills: int) -> bool:
    """Tell whether every new issue is held and nothing waits any more."""
    held = {hold.issue.identifier for hold in read_state(rows.database).holds}
    return len(held) == kills and not read_notifications(rows.database, None, 1)


def _judge(receiver: Receiver, rows: Rows, kills: int) -> None:
    """None lost, none forged, repetitions marked, each issue's in order, causes told."""
    assert receiver.forged == []
    assert receiver.unmarked_repetitions() == []
    firsts = receiver.first_arrivals()
    for issue in {one.issue for one in firsts if one.issue and one.issue.startswith("OLD-")}:
        ids = [one.id for one in firsts if one.issue == issue]
        assert ids == sorted(ids)
    holds = read_state(rows.database).holds
    told = {one.issue for one in firsts if one.type == HELD}
    assert {hold.issue.identifier for hold in holds} <= told
    repeated = len(receiver.arrivals) - len(firsts)
    assert 0 < repeated <= receiver.lost_answers + BATCH * kills
    print(  # noqa: T201
        f"{len(firsts)} notifications, {kills} kills, {receiver.lost_answers} lost answers,"
        f" {repeated} repetitions, all marked"
    )


async def test_kills_and_outages_lose_no_notification(place: Place, start: Start) -> None:
    """A few of each."""
    rows = Rows(place)

    receiver = await _play(rows, start, count=120, kills=3, seed=7)

    _judge(receiver, rows, kills=3)


@pytest.mark.full
@pytest.mark.timeout(1800)
async def test_ten_thousand_notifications_outlive_twenty_kills(place: Place, start: Start) -> None:
    """At moments that are new each time."""
    seed = int(SEED or time.time_ns() // 1_000_000 % 1_000_000)
    print(f"SORTIE_TEST_SEED={seed}")  # noqa: T201

    rows = Rows(place)

    receiver = await _play(rows, start, count=10_000, kills=20, seed=seed)

    _judge(receiver, rows, kills=20)


@pytest.mark.full
async def test_the_next_leader_sends_what_the_former_left(
    place: Place, start: Start, postgres_server: PostgresServer
) -> None:
    """With PostgreSQL a daemon that was killed has a lease, after which the next one goes on."""
    named = {"url": SecretStr(postgres_server.url), "schema": postgres_server.schema()}
    rows = Rows(place, StoreSettings.model_validate(named))

    receiver = await _play(rows, start, count=300, kills=2, seed=7)

    _judge(receiver, rows, kills=2)
