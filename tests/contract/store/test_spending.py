"""What runs have used, by run, issue and day."""

from __future__ import annotations

from sortie.model import RunId, Spending
from sortie.scheduler.records import RecordDay, ResetBudget
from sortie.store import Recovered, Store
from tests.store.records import T0, A, B, begin, end, spending

FIRST = Spending(input_tokens=10, output_tokens=5, credits=0.5)
MORE = Spending(input_tokens=30, output_tokens=5, credits=0.5, cost_usd=2.0, estimated_usd=2.0)


async def test_what_runs_use_adds_up_by_issue_and_day(store: Store) -> None:
    """Each record holds the run's sum so far; unknown stays unknown, and corrections count."""
    await store.commit([RecordDay(day="2026-11-22"), begin("r1", A), begin("r2", B)], T0)
    await store.commit([spending("r1", FIRST), spending("r2", FIRST)], T0 + 1)
    await store.commit([RecordDay(day="2026-11-23"), spending("r1", MORE), end("r1")], T0 + 2)
    told = Spending(input_tokens=1, output_tokens=1, cost_usd=0.5, estimated_usd=0.0)
    estimate = Spending(input_tokens=1, output_tokens=1, cost_usd=0.75, estimated_usd=0.75)
    await store.commit([begin("r3", A), spending("r3", estimate), spending("r3", told)], T0 + 3)

    recovered = await store.recover()
    (row,) = [row for row in await store.history() if row.run_id == RunId("r1")]

    assert recovered.spent == {A.id: MORE + told, B.id: FIRST}
    assert recovered.days == {
        "2026-11-22": FIRST + FIRST,
        "2026-11-23": Spending(
            input_tokens=21, output_tokens=1, credits=0.0, cost_usd=2.5, estimated_usd=2.0
        ),
    }
    assert (row.spent, row.tokens) == (MORE, 35)
    assert await store.spent_on("2026-11-22") == FIRST + FIRST
    assert await store.spent_on("2026-11-01") == Spending()
    assert [row.day for row in await store.days(2)] == ["2026-11-23", "2026-11-22"]
    assert [row.day for row in await store.days(1)] == ["2026-11-23"]


async def test_a_budget_that_begins_anew_is_empty(store: Store) -> None:
    """What was used before counts for the day, and no more for the issue."""
    await store.commit([begin("r1", A), spending("r1", FIRST)], T0)
    await store.commit([ResetBudget(issue_id=A.id), spending("r1", MORE)], T0 + 1)

    recovered = await store.recover()

    assert recovered.spent[A.id] == MORE - FIRST
    assert recovered.days == {"2023-11-14": MORE}


async def test_nothing_told_is_nothing_known(store: Store) -> None:
    """A run whose agent tells nothing leaves no zeros."""
    await store.commit([begin("r1", A), end("r1", turns=1)], T0)

    assert await store.recover() == Recovered()
    (row,) = await store.history()
    assert row.spent == Spending()
