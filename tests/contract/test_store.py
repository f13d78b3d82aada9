"""What every store does, whatever it is made of."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
import trio

from sortie.model import (
    ErrorKind,
    HoldReason,
    IssueId,
    ProcessIdentity,
    RunId,
    RunStatus,
    Sighting,
    StoreError,
    Streak,
    Trigger,
    WaitKind,
)
from sortie.scheduler.records import (
    ForgetHold,
    ForgetRetry,
    ForgetWorkspace,
    Record,
    RecordHold,
    RecordPause,
    RecordProcess,
    ResetSessions,
)
from sortie.store import (
    HistoryRow,
    Recovered,
    Store,
    StoredHold,
    StoredRetry,
    Totals,
    UnfinishedRun,
    UnknownRun,
)
from sortie.store.memory import MemoryStore
from sortie.store.sqlite import open_store
from tests.store.records import (
    FULL_ISSUE,
    T0,
    A,
    B,
    C,
    an_issue,
    begin,
    end,
    moment,
    retry,
    turn,
    workspace,
)


@asynccontextmanager
async def _sqlite(directory: Path) -> AsyncIterator[Store]:
    async with open_store(str(directory / "sortie.db")) as store:
        yield store


@asynccontextmanager
async def _memory(directory: Path) -> AsyncIterator[Store]:
    yield MemoryStore()


OPENERS: dict[str, Callable[[Path], AbstractAsyncContextManager[Store]]] = {
    "sqlite": _sqlite,
    "memory": _memory,
}


@pytest.fixture(params=OPENERS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """An empty store."""
    async with OPENERS[request.param](tmp_path) as opened:
        yield opened


async def names(store: Store, **page: object) -> list[str]:
    """The ids of the runs on a page of history."""
    return [row.run_id for row in await store.history(**page)]  # type: ignore[arg-type]


async def test_an_empty_store_knows_nothing(store: Store) -> None:
    """A new store recovers nothing, has no history, and unknown totals are None."""
    recovered = await store.recover()
    history = await store.history()
    totals = await store.totals()

    assert recovered == Recovered()
    assert list(history) == []
    assert totals == Totals(runs=0, turns=0, credits=None, tokens=None, seconds_running=0.0)


async def test_a_run_under_way_is_recovered_whole(store: Store) -> None:
    """All that was recorded of an unfinished run comes back, the issue equal in every field."""
    streak = Streak(failures=3, continuations=2, interruptions=1)
    process = ProcessIdentity(pid=4711, started_at=1_699_999_999.123456)

    await store.commit([begin("r1", FULL_ISSUE, streak=streak, host="me@box:22")], T0)
    await store.commit([workspace("r1", FULL_ISSUE), turn("r1", 4, FULL_ISSUE, 7)], T0 + 1)
    await store.commit([RecordProcess(run_id=RunId("r1"), process=process)], T0 + 2)
    recovered = await store.recover()

    assert recovered == Recovered(
        unfinished=(
            UnfinishedRun(
                run_id=RunId("r1"),
                issue=FULL_ISSUE,
                streak=streak,
                host="me@box:22",
                process=process,
                workspace="/w/F-1",
                turns=4,
            ),
        ),
        sessions={FULL_ISSUE.id: 7},
        workspaces=(workspace("r1", FULL_ISSUE).workspace,),
    )


async def test_unfinished_runs_come_in_the_order_they_began(store: Store) -> None:
    """Runs that are over are not recovered, and the others stand in the order of their records."""
    await store.commit([begin("r3", C), begin("r1", A), begin("r2", B)], T0)
    await store.commit([end("r1")], T0 + 1)

    recovered = await store.recover()

    assert [run.run_id for run in recovered.unfinished] == ["r3", "r2"]


async def test_waits_and_holds_are_recovered_with_their_times(store: Store) -> None:
    """A wait is due its delay after the commit; a hold counts from the commit; sorted by time."""
    streak = Streak(failures=2, interruptions=1)
    await store.commit(
        [
            retry(
                FULL_ISSUE,
                kind=WaitKind.HANDOFF,
                trigger=Trigger.HANDOFF,
                streak=streak,
                delay=40.5,
                tries=3,
            ),
            retry(A),
        ],
        T0,
    )
    await store.commit(
        [RecordHold(issue=C, reason=HoldReason.OPERATOR, detail="someone asked")], T0 + 2
    )
    await store.commit(
        [RecordHold(issue=B, reason=HoldReason.AGENT_BLOCKED, detail="\ud800")], T0 + 1
    )

    recovered = await store.recover()

    assert recovered == Recovered(
        retries=(
            StoredRetry(
                issue=A,
                kind=WaitKind.RETRY,
                trigger=Trigger.ERROR,
                streak=Streak(failures=1),
                delay=10.0,
                due_at=T0 + 10.0,
                tries=0,
            ),
            StoredRetry(
                issue=FULL_ISSUE,
                kind=WaitKind.HANDOFF,
                trigger=Trigger.HANDOFF,
                streak=streak,
                delay=40.5,
                due_at=T0 + 40.5,
                tries=3,
            ),
        ),
        holds=(
            StoredHold(issue=B, reason=HoldReason.AGENT_BLOCKED, detail="\ud800", since=T0 + 1),
            StoredHold(issue=C, reason=HoldReason.OPERATOR, detail="someone asked", since=T0 + 2),
        ),
    )


async def test_a_later_wait_or_hold_replaces_the_earlier(store: Store) -> None:
    """An issue has at most one wait and one hold: the last recorded."""
    moved = an_issue("A-1", state="Doing")

    await store.commit([retry(A), retry(moved, delay=5.0, tries=1)], T0)
    await store.commit(
        [
            RecordHold(issue=A, reason=HoldReason.OPERATOR, detail="first"),
            RecordHold(issue=moved, reason=HoldReason.INTERNAL_ERROR, detail="second"),
        ],
        T0 + 1,
    )
    recovered = await store.recover()

    assert [(r.issue, r.due_at, r.tries) for r in recovered.retries] == [(moved, T0 + 5.0, 1)]
    assert [(h.issue, h.reason, h.detail) for h in recovered.holds] == [
        (moved, HoldReason.INTERNAL_ERROR, "second")
    ]


async def test_what_is_forgotten_does_not_come_back(store: Store) -> None:
    """Each forgetting record removes its own, leaves the others, and may find nothing."""
    hold = RecordHold(issue=A, reason=HoldReason.OPERATOR, detail="")
    await store.commit(
        [
            begin("r1", A),
            begin("r2", B),
            workspace("r1", A),
            workspace("r1", A, host="box"),
            workspace("r2", B),
            turn("r1", 1, A, 2),
            turn("r2", 1, B, 1),
            retry(A),
            hold,
            RecordPause(paused=True),
        ],
        T0,
    )

    await store.commit(
        [
            ForgetWorkspace(issue_id=A.id, host="box"),
            ForgetWorkspace(issue_id=C.id, host="local"),
            ResetSessions(issue_id=A.id),
            ResetSessions(issue_id=C.id),
            ForgetRetry(issue_id=A.id),
            ForgetRetry(issue_id=C.id),
            ForgetHold(issue_id=A.id),
            ForgetHold(issue_id=C.id),
            RecordPause(paused=False),
            end("r1"),
            end("r2"),
        ],
        T0 + 1,
    )
    recovered = await store.recover()

    assert recovered == Recovered(
        sessions={B.id: 1},
        workspaces=(workspace("r1", A).workspace, workspace("r2", B).workspace),
    )


async def test_records_take_effect_in_their_order(store: Store) -> None:
    """Within one commit a run may end and the issue's next begin, and the last word on pause
    stands."""
    await store.commit([begin("r1")], T0)

    await store.commit(
        [
            RecordPause(paused=False),
            end("r1"),
            begin("r2"),
            retry(),
            ForgetRetry(issue_id=A.id),
            RecordPause(paused=True),
        ],
        T0 + 1,
    )
    recovered = await store.recover()

    assert [run.run_id for run in recovered.unfinished] == ["r2"]
    assert recovered.retries == ()
    assert recovered.paused


async def test_history_shows_each_run_whole(store: Store) -> None:
    """A row holds what was recorded, unknown is None, and a run under way has no end."""
    await store.commit(
        [begin("r1", A, streak=Streak(failures=2), host="box", agent="other"), workspace("r1")], T0
    )
    await store.commit(
        [
            end(
                "r1",
                RunStatus.TIMED_OUT,
                error_kind=ErrorKind.TURN_TIMEOUT,
                error="too long \ud800",
                turns=2,
                credits=0.75,
                tokens=1234,
            )
        ],
        T0 + 60,
    )
    await store.commit([begin("r2", B), turn("r2", 1, B)], T0 + 61)

    history = await store.history()

    assert list(history) == [
        HistoryRow(
            run_id=RunId("r2"),
            issue="B-2",
            issue_id=B.id,
            attempt=0,
            status=RunStatus.RUNNING,
            error_kind=None,
            error=None,
            turns=1,
            credits=None,
            tokens=None,
            host="local",
            workspace=None,
            agent="kiro",
            started_at=moment(T0 + 61),
            finished_at=None,
        ),
        HistoryRow(
            run_id=RunId("r1"),
            issue="A-1",
            issue_id=A.id,
            attempt=2,
            status=RunStatus.TIMED_OUT,
            error_kind=ErrorKind.TURN_TIMEOUT,
            error="too long \ud800",
            turns=2,
            credits=0.75,
            tokens=1234,
            host="box",
            workspace="/w/A-1",
            agent="other",
            started_at=moment(T0),
            finished_at=moment(T0 + 60),
        ),
    ]


@pytest.mark.parametrize(("told", "kept"), [(None, 3), (0, 0), (5, 5)])
async def test_an_exit_corrects_the_turns_only_if_it_counts_them(
    store: Store, told: int | None, kept: int
) -> None:
    """An exit without a number of turns keeps the recorded one; with one, that stands."""
    await store.commit([begin("r1"), turn("r1", 3)], T0)

    await store.commit([end("r1", turns=told)], T0 + 1)
    history, totals = await store.history(), await store.totals()

    assert [row.turns for row in history] == [kept]
    assert totals.turns == kept


async def test_history_is_newest_first_and_goes_on_without_gap_or_repeat(store: Store) -> None:
    """Pages follow each other by start, runs of one instant by the order of recording, also where
    the clock was set back."""
    for number, at in enumerate([T0, T0 + 5, T0 + 5, T0 + 5, T0 + 1, T0 + 9]):
        issue = A if number % 2 else B
        await store.commit([begin(f"r{number}", issue), end(f"r{number}")], at)

    everything = await names(store)
    first = await names(store, limit=2)
    second = await names(store, limit=2, before=first[-1])
    third = await names(store, limit=2, before=second[-1])
    fourth = await names(store, limit=2, before=third[-1])

    assert everything == ["r5", "r3", "r2", "r1", "r4", "r0"]
    assert first + second + third == everything
    assert fourth == []


async def test_history_of_one_issue_has_only_its_runs(store: Store) -> None:
    """The filter is the identifier, whole and case-sensitive, on every page."""
    for number in range(6):
        issue = A if number % 2 else B
        await store.commit([begin(f"r{number}", issue), end(f"r{number}")], T0 + number)

    of_a = await names(store, issue="A-1")
    next_page = await names(store, issue="A-1", limit=1, before="r5")
    before_anothers = await names(store, issue="A-1", before="r4")
    of_nobody = await names(store, issue="a-1")

    assert of_a == ["r5", "r3", "r1"]
    assert next_page == ["r3"]
    assert before_anothers == ["r3", "r1"]
    assert of_nobody == []


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_page_without_room_is_empty(store: Store, limit: int) -> None:
    """A limit of nothing, or less, gives nothing."""
    await store.commit([begin("r1")], T0)

    page = await names(store, limit=limit)

    assert page == []


async def test_history_before_an_unknown_run_is_an_error(store: Store) -> None:
    """A page cannot follow a run that was never recorded, and the error names that run."""
    await store.commit([begin("r1")], T0)

    with pytest.raises(UnknownRun, match="no run r9 is recorded") as caught:
        await store.history(before=RunId("r9"))

    assert caught.value.run_id == "r9"


async def test_totals_sum_up_all_runs(store: Store) -> None:
    """Runs and turns of runs under way count; credits and tokens where told; time of what ended."""
    await store.commit([begin("r1", A), turn("r1", 1), turn("r1", 2)], T0)
    await store.commit([begin("r2", B), turn("r2", 1, B)], T0 + 1)
    await store.commit([begin("r3", C)], T0 + 2)

    await store.commit([end("r1", turns=2, credits=0.5)], T0 + 10)
    await store.commit([end("r2", turns=1, credits=0.25, tokens=100)], T0 + 21)
    await store.commit([begin("r4", A), begin("r5", B), end("r4")], T0 + 30)
    totals = await store.totals()

    assert totals == Totals(runs=5, turns=3, credits=0.75, tokens=100, seconds_running=30.0)


async def test_a_clock_set_back_keeps_what_is_told_and_counts_no_negative_time(
    store: Store,
) -> None:
    """A run that ends before it began is shown so, and adds no time."""
    await store.commit([begin("r1")], T0)

    await store.commit([end("r1")], T0 - 3600)
    (row,) = await store.history()
    totals = await store.totals()

    assert (row.started_at, row.finished_at) == (moment(T0), moment(T0 - 3600))
    assert totals.seconds_running == 0.0


async def test_a_run_cut_short_counts_until_it_was_last_heard_of(store: Store) -> None:
    """The time between a crash and the next start is nobody's running time."""
    await store.commit([begin("r1"), workspace("r1")], T0)
    await store.commit([turn("r1", 1)], T0 + 30)

    await store.recover()
    await store.commit([end("r1", RunStatus.INTERRUPTED), begin("r2")], T0 + 86_400)
    await store.commit([end("r2")], T0 + 86_405)
    totals = await store.totals()

    assert totals.seconds_running == 35.0


UNFIT: dict[str, Record] = {
    "a second record of a run": begin("r1", C),
    "a record of a run that is over": begin("over", C),
    "a second run of an issue": begin("r2", A),
    "the exit of an unknown run": end("nowhere"),
    "a second exit": end("over"),
    "a turn of an unknown run": turn("nowhere", 1),
    "a turn of a run that is over": turn("over", 2, B),
    "the process of an unknown run": RecordProcess(
        run_id=RunId("nowhere"), process=ProcessIdentity(pid=1, started_at=2.0)
    ),
    "the workspace of an unknown run": workspace("nowhere", C),
}


@pytest.mark.parametrize("unfit", UNFIT.values(), ids=UNFIT.keys())
async def test_a_record_that_contradicts_the_rows_leaves_them_as_they_were(
    store: Store, unfit: Record
) -> None:
    """One unfit record fails its whole commit, and the store goes on."""
    await store.commit([begin("r1", A), begin("over", B), end("over", turns=1), retry(B)], T0)
    rows, totals = await store.history(), await store.totals()
    recovered = await store.recover()

    with pytest.raises(StoreError, match=r"cannot (record|write)"):
        await store.commit(
            [RecordPause(paused=True), turn("r1", 9), ForgetRetry(issue_id=B.id), unfit], T0 + 1
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
            ],
            T0,
        )
    recovered = await store.recover()
    histories = [await names(store, issue=name) for name in odd]
    await store.commit([ForgetRetry(issue_id=issue.id) for issue in issues], T0)

    assert {run.issue.id for run in recovered.unfinished} == set(odd)
    assert set(recovered.sessions) == set(odd)
    assert {known.path for known in recovered.workspaces} == {f"/w/{name}" for name in odd}
    assert {wait.issue.id for wait in recovered.retries} == set(odd)
    assert histories == [[f"run {name}"] for name in odd]
    assert (await store.recover()).retries == ()


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
