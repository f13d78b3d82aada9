"""Old runs are forgotten, and nothing else."""

from __future__ import annotations

from msgspec.structs import replace

from sortie.model import Issue, IssueId, RunStatus, Spending
from sortie.scheduler.records import ForgetRetry, Record, ResetBudget
from sortie.store import Store
from tests.contract.store.reading import names
from tests.store.records import T0, A, B, C, begin, end, retry, spending, turn, workspace

DAY = 86_400.0


async def run(store: Store, run_id: str, issue: Issue = A, at: float = T0) -> None:
    await store.commit([begin(run_id, issue)], at)
    await store.commit(
        [spending(run_id, Spending(credits=0.5)), end(run_id, RunStatus.SUCCEEDED, turns=2)],
        at + 60,
    )


async def test_what_ended_before_a_time_is_forgotten(store: Store) -> None:
    """Runs that ended later, or have not ended, stay; so do the totals."""
    await run(store, "old", A, T0)
    await store.commit([begin("long", B)], T0 + 1)
    await run(store, "new", C, T0 + DAY)
    await run(store, "newest", C, T0 + 2 * DAY)
    totals = await store.totals()

    forgotten = await store.forget_runs(T0 + DAY, 100)
    again = await store.forget_runs(T0 + DAY, 100)

    assert (forgotten, again) == (1, 0)
    assert await names(store) == ["newest", "new", "long"]
    assert await store.totals() == totals
    assert [unfinished.run_id for unfinished in (await store.recover()).unfinished] == ["long"]


async def test_runs_are_forgotten_oldest_first_and_not_all_at_once(store: Store) -> None:
    """A limit bounds how many rows one call deletes."""
    for number in range(6):
        await run(store, f"r{number}", A, T0 + number * 100)

    forgotten = [await store.forget_runs(T0 + DAY, 2) for _ in range(4)]

    assert forgotten == [2, 2, 1, 0]
    assert await names(store) == ["r5"]


async def test_the_last_run_of_an_issue_in_hand_stays(store: Store) -> None:
    """An issue that waits, is held, has sessions counted or a workspace keeps its newest run."""
    others = [replace(A, id=IssueId(f"i{n}"), identifier=f"I-{n}") for n in range(4)]
    waits, counted, placed, plain = others
    last: dict[IssueId, Record] = {
        waits.id: retry(waits),
        counted.id: turn("second-1", 1, counted),
        placed.id: workspace("second-2", placed),
    }
    for number, issue in enumerate(others):
        await run(store, f"first-{number}", issue, T0 + number)
        await store.commit([begin(f"second-{number}", issue)], T0 + 100 + number)
        records = [last[issue.id]] if issue is not plain else []
        await store.commit(records, T0 + 101 + number)
        await store.commit([end(f"second-{number}")], T0 + 102 + number)
    await run(store, "newest", B, T0 + DAY)

    await store.forget_runs(T0 + 2 * DAY, 100)
    kept = await names(store)
    await store.commit([ForgetRetry(issue_id=waits.id), ResetBudget(issue_id=counted.id)], T0)
    await store.forget_runs(T0 + 2 * DAY, 100)

    assert kept == ["newest", "second-2", "second-1", "second-0"]
    assert await names(store) == ["newest", "second-2"]


async def test_a_run_that_begins_after_all_are_forgotten_is_of_this_life(store: Store) -> None:
    """The newest run stays, however old, so that no number is given to another run again."""
    await run(store, "old", A, T0)
    await run(store, "last", B, T0 + 1)
    await store.recover()

    await store.forget_runs(T0 + 99 * DAY, 100)
    await store.commit([begin("r", C)], T0 + 99 * DAY)
    await store.commit([end("r")], T0 + 99 * DAY + 50)

    assert await names(store) == ["r", "last"]
    assert (await store.totals()).seconds_running == 60 + 60 + 50
