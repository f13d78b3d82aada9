"""Commits: whole or not at all, whoever calls and whatever the texts."""

from __future__ import annotations

import pytest
import trio

from sortie.model import (
    IssueId,
    ProcessIdentity,
    RunId,
    Sighting,
)
from sortie.scheduler.records import (
    ForgetCrashes,
    ForgetRetry,
    ForgetWorkspace,
    Record,
    RecordCrash,
    RecordPause,
    RecordProcess,
)
from sortie.store import (
    RecordRefused,
    Recovered,
    Store,
)
from tests.contract.store.reading import names
from tests.store.records import (
    T0,
    A,
    B,
    C,
    an_issue,
    begin,
    end,
    moment,
    retry,
    session,
    turn,
    workspace,
)

UNFIT: dict[str, Record] = {
    "a second record of a run": begin("r1", C),
    "a record of a run that is over": begin("over", C),
    "a second run of an issue": begin("r2", A),
    "the exit of an unknown run": end("nowhere"),
    "a second exit": end("over"),
    "a turn of an unknown run": turn("nowhere", 1),
    "a turn of a run that is over": turn("over", 2, B),
    "the session of an unknown run": session("nowhere", "s"),
    "the session of a run that is over": session("over", "s"),
    "the process of an unknown run": RecordProcess(
        run_id=RunId("nowhere"), process=ProcessIdentity(pid=1, started_at=2.0)
    ),
    "the process of a run that is over": RecordProcess(
        run_id=RunId("over"), process=ProcessIdentity(pid=1, started_at=2.0)
    ),
    "the workspace of an unknown run": workspace("nowhere", C),
    "the workspace of a run that is over": workspace("over", B),
}


@pytest.mark.parametrize("unfit", UNFIT.values(), ids=UNFIT.keys())
async def test_a_record_that_contradicts_the_rows_leaves_them_as_they_were(
    store: Store, unfit: Record
) -> None:
    """One unfit record fails its whole commit, and the store goes on."""
    await store.commit([begin("r1", A), begin("over", B), end("over", turns=1), retry(B)], T0)
    rows, totals = await store.history(), await store.totals()
    recovered = await store.recover()

    with pytest.raises(RecordRefused, match=r"cannot (record|write)"):
        await store.commit(
            [
                RecordPause(paused=True),
                turn("r1", 9),
                workspace("r1"),
                RecordCrash(issue=A),
                ForgetRetry(issue_id=B.id),
                unfit,
            ],
            T0 + 1,
        )
    after = (await store.history(), await store.totals(), await store.recover())
    await store.commit([end("r1", turns=4)], T0 + 2)

    assert after == (rows, totals, recovered)
    assert (await store.totals()).turns == 5


async def test_nothing_to_write_is_no_error(store: Store) -> None:
    """A commit without records changes nothing."""
    await store.commit([], T0)

    assert await store.recover() == Recovered()


async def test_texts_and_keys_of_any_characters_stay_distinct(store: Store) -> None:
    """Ids with odd characters, lone surrogates too, are kept apart and come back as they were."""
    odd = [f"x{middle}y" for middle in ("\ud800", "\udcff", "\ufffd", "?", "\x00", "", "'", "é")]
    issues = [an_issue(name, id=IssueId(name)) for name in odd]

    for issue in issues:
        await store.commit(
            [
                begin(f"run {issue.id}", issue),
                workspace(f"run {issue.id}", issue),
                turn(f"run {issue.id}", 1, issue),
                retry(issue),
                RecordCrash(issue=issue),
            ],
            T0,
        )
    recovered = await store.recover()
    histories = [await names(store, issue=name) for name in odd]
    await store.commit([ForgetRetry(issue_id=issue.id) for issue in issues], T0)
    await store.commit([ForgetCrashes(issue_id=issue.id) for issue in issues], T0)
    await store.commit([ForgetWorkspace(host="local", path=f"/w/{name}") for name in odd], T0)
    forgotten = await store.recover()

    assert {run.issue.id for run in recovered.unfinished} == set(odd)
    assert set(recovered.sessions) == set(odd)
    assert {known.path for known in recovered.workspaces} == {f"/w/{name}" for name in odd}
    assert {wait.issue.id for wait in recovered.retries} == set(odd)
    assert {crash.issue.id for crash in recovered.crashes} == set(odd)
    assert histories == [[f"run {name}"] for name in odd]
    assert (forgotten.retries, forgotten.crashes, forgotten.workspaces) == ((), (), ())


async def test_sight_tells_first_seen_and_last_changed(store: Store) -> None:
    """An issue keeps the time it was first seen; a new digest, and only that, moves the other."""
    first = await store.sight({"a": "1", "b": "1"}, T0)
    same = await store.sight({"a": "1"}, T0 + 1)
    changed = await store.sight({"a": "2", "c": "1"}, T0 + 2)
    later = await store.sight({"a": "2", "b": "1", "c": "1"}, T0 + 3)

    t0, t2 = moment(T0), moment(T0 + 2)
    assert first == {
        "a": Sighting(first_seen=t0, changed_at=t0),
        "b": Sighting(first_seen=t0, changed_at=t0),
    }
    assert same == {"a": Sighting(first_seen=t0, changed_at=t0)}
    assert changed == {
        "a": Sighting(first_seen=t0, changed_at=t2),
        "c": Sighting(first_seen=t2, changed_at=t2),
    }
    assert later == {
        "a": Sighting(first_seen=t0, changed_at=t2),
        "b": Sighting(first_seen=t0, changed_at=t0),
        "c": Sighting(first_seen=t2, changed_at=t2),
    }


async def test_sight_of_nothing_is_nothing(store: Store) -> None:
    """A tracker without issues gets an empty answer."""
    assert await store.sight({}, T0) == {}


async def test_a_healthy_store_passes_its_check(store: Store) -> None:
    """A check leaves no trace in what is recovered."""
    await store.check()

    assert await store.recover() == Recovered()


async def test_a_cancelled_caller_hands_nothing_over(store: Store) -> None:
    """A commit asked for after cancellation is not made."""
    with trio.CancelScope() as scope:
        scope.cancel()
        await store.commit([begin("r1")], T0)

    assert scope.cancelled_caught
    assert await names(store) == []


async def test_commits_of_many_tasks_are_all_made(store: Store) -> None:
    """Concurrent callers are served one by one and none is lost."""
    issues = [an_issue(f"N-{number}") for number in range(40)]

    async with trio.open_nursery() as nursery:
        for issue in issues:
            nursery.start_soon(store.commit, [begin(f"run of {issue.id}", issue)], T0)

    assert len(await names(store)) == len(issues)
