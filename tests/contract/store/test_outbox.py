"""What every database does with notifications until they are sent, refused, or too old."""

from __future__ import annotations

import pytest

from sortie.model.notifications import HELD, RUN_FAILED, Notice, NotifiedIssue
from sortie.scheduler.records import RecordNotification
from sortie.store import Store
from sortie.store.database_store import DatabaseStore
from sortie.store.outbox import OpenNotifications, Outbox, Outgoing, TryResult, read_listed

ISSUE = NotifiedIssue(id="1", identifier="T-1", title="A title with \ud800")


def notice(key: str, event: str = HELD) -> Notice:
    return Notice(key=key, event=event, title=f"about {key}", text="what to do", issue=ISSUE)


@pytest.fixture
def database(store: Store) -> DatabaseStore:
    """The store itself, where it is read beside."""
    found = getattr(store, "_store", store)
    assert isinstance(found, DatabaseStore)
    return found


@pytest.fixture
def outbox(database: DatabaseStore) -> Outbox:
    return Outbox(database)


async def record(store: DatabaseStore, *keys: str, at: float = 10.0, event: str = HELD) -> None:
    for key in keys:
        told = RecordNotification(notification=notice(key, event), targets=("chat", "hook"))
        await store.commit([told], at)


def result(one: Outgoing, state: str, **more: object) -> TryResult:
    known = {"tries": one.tries + 1, "unsure": one.unsure, **more}
    return TryResult(id=one.id, state=state, **known)  # type: ignore[arg-type]


async def test_each_target_gets_all_in_their_order(database: DatabaseStore, outbox: Outbox) -> None:
    """A notification is returned whole, once for each target, and again as perhaps arrived."""
    await record(database, "a", "b")

    first = await outbox.turn("hook", (), 10, None, 11.0)
    again = await outbox.turn("hook", (), 10, None, 12.0)

    assert [one.notification for one in first] == [notice("a"), notice("b")]
    assert [(one.tries, one.unsure, one.created_at) for one in first] == [(0, False, 10.0)] * 2
    assert [(one.tries, one.unsure) for one in again] == [(1, True)] * 2
    assert [one.tries for one in await outbox.turn("chat", (), 10, None, 12.0)] == [0, 0]


async def test_a_key_is_told_once(database: DatabaseStore, outbox: Outbox) -> None:
    """What is recorded again under its key changes nothing, also after it was sent."""
    await record(database, "a", "a")
    (one,) = await outbox.turn("hook", (), 10, None, 11.0)
    await outbox.turn("hook", [result(one, "sent")], 10, None, 12.0)

    await record(database, "a")

    assert await outbox.turn("hook", (), 10, None, 13.0) == ()
    assert await outbox.is_known("a")
    assert not await outbox.is_known("b")


async def test_results_and_what_is_next_are_one_step(
    database: DatabaseStore, outbox: Outbox
) -> None:
    """What was sent or refused does not come again, and the rest does as it was left."""
    await record(database, "a", "b", "c", "d")
    a, b, c = await outbox.turn("hook", (), 3, None, 11.0)

    results = [
        result(a, "sent"),
        result(b, "dead", error="it answered 404"),
        TryResult(id=c.id, state="waiting", tries=c.tries, unsure=c.unsure),
    ]
    following = await outbox.turn("hook", results, 10, None, 12.0)

    assert [(one.notification.key, one.tries, one.unsure) for one in following] == [
        ("c", 0, False),
        ("d", 0, False),
    ]
    counted = {(one.target, one.state): one.count for one in await outbox.open()}
    assert counted == {("chat", "waiting"): 4, ("hook", "waiting"): 2, ("hook", "dead"): 1}
    listed = await database.read(lambda rows: read_listed(rows, "dead", 10))
    assert [(one.key, one.error, one.ended_at) for one in listed] == [
        ("b", "it answered 404", 12.0)
    ]


async def test_one_kind_can_be_asked_for(database: DatabaseStore, outbox: Outbox) -> None:
    """In quiet hours what cannot wait goes before what came earlier."""
    await record(database, "a", at=5.0)
    await record(database, "b", event=RUN_FAILED)

    (urgent,) = await outbox.turn("hook", (), 10, RUN_FAILED, 11.0)

    assert urgent.notification.key == "b"
    assert await outbox.first_waiting("hook", None) == 5.0
    assert await outbox.first_waiting("hook", RUN_FAILED) == 10.0
    assert await outbox.first_waiting("nobody", None) is None


async def test_what_is_dead_can_be_sent_again(database: DatabaseStore, outbox: Outbox) -> None:
    """One by its number, or all; anything else is a sentence."""
    await record(database, "a", "b", "c")
    a, b, c = await outbox.turn("hook", (), 10, None, 11.0)
    results = [result(a, "dead"), result(b, "dead"), result(c, "sent")]
    await outbox.turn("hook", results, 0, None, 12.0)

    assert await outbox.revive(a.id, 20.0) == 1
    assert await outbox.revive(a.id, 20.0) == (
        f"notification {a.id} is not dead: it waits and will be sent"
    )
    assert await outbox.revive(c.id, 20.0) == f"notification {c.id} is not dead: it was sent"
    assert await outbox.revive(999, 20.0) == "there is no notification 999"
    assert await outbox.revive(None, 30.0) == 1
    again = await outbox.turn("hook", (), 10, None, 31.0)
    assert [(one.id, one.created_at) for one in again] == [(a.id, 20.0), (b.id, 30.0)]


async def test_what_waits_too_long_is_given_up(database: DatabaseStore, outbox: Outbox) -> None:
    """For one target, as far back as is said; no other target is touched."""
    await record(database, "a", at=5.0)
    await record(database, "b", at=6.0)

    assert await outbox.give_up("hook", 5.0, "too late", 100.0) == 1

    assert await outbox.open() == (
        OpenNotifications(target="chat", state="waiting", count=2, oldest=5.0),
        OpenNotifications(target="hook", state="dead", count=1, oldest=5.0),
        OpenNotifications(target="hook", state="waiting", count=1, oldest=6.0),
    )


async def test_what_is_old_is_forgotten(database: DatabaseStore, outbox: Outbox) -> None:
    """What was sent and what is dead, each in its time; what waits never is."""
    await record(database, "a", "b", "c")
    a, b, _ = await outbox.turn("hook", (), 10, None, 11.0)
    await outbox.turn("hook", [result(a, "sent"), result(b, "dead")], 0, None, 12.0)

    assert await outbox.forget(12.0, 12.0, 10) == 0
    assert await outbox.forget(13.0, 12.0, 10) == 1
    assert await outbox.forget(13.0, 13.0, 10) == 1
    assert await outbox.forget(1e12, 1e12, 10) == 0
