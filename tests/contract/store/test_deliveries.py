"""What every store keeps of work on its way to a pull request."""

from __future__ import annotations

import pytest

from sortie.model import RunId, Stage
from sortie.scheduler.outcome_records import SettleDelivery
from sortie.store import RecordRefused, Store
from tests.store.records import T0, A, B, a_delivery, begin, delivery, end


async def test_a_delivery_is_in_history_with_its_diff(store: Store) -> None:
    """As it was recorded last; and the diff as it was given, whatever is in it."""
    diff = "+ \u00fc \ud800 \x00\n" * 1000
    first = delivery("r-1", A, a_delivery(Stage.FINISHED))
    second = delivery("r-1", A, a_delivery(Stage.DELIVERED), diff)
    await store.commit([begin("r-1", A), first, second, end("r-1")], T0)
    await store.commit([begin("r-2", B), end("r-2")], T0 + 1)

    other, row = await store.history()

    assert row.delivery == a_delivery(Stage.DELIVERED)
    assert other.delivery is None
    assert await store.diff(RunId("r-1")) == diff
    assert await store.diff(RunId("r-2")) is None


async def test_what_was_cut_short_is_recovered(store: Store) -> None:
    """The newest of each issue alone, and none that was dropped or settled."""
    await store.commit([begin("r-1", A), delivery("r-1", A, a_delivery(Stage.PUSHED))], T0)
    assert dict((await store.recover()).deliveries) == {A.id: a_delivery(Stage.PUSHED)}

    await store.commit([end("r-1"), begin("r-2", A)], T0 + 1)
    assert dict((await store.recover()).deliveries) == {A.id: a_delivery(Stage.PUSHED)}

    await store.commit([delivery("r-2", A, a_delivery(Stage.DROPPED))], T0 + 2)
    assert not (await store.recover()).deliveries

    await store.commit([delivery("r-2", A, a_delivery(Stage.DELIVERED)), end("r-2")], T0 + 3)
    assert dict((await store.recover()).deliveries) == {A.id: a_delivery(Stage.DELIVERED)}

    await store.commit([SettleDelivery(issue_id=A.id)], T0 + 4)
    assert not (await store.recover()).deliveries


async def test_a_run_that_is_over_takes_no_step(store: Store) -> None:
    """Its record is refused, with all that comes with it."""
    await store.commit([begin("r-1", A), end("r-1")], T0)

    with pytest.raises(RecordRefused):
        await store.commit([delivery("r-1", A, a_delivery())], T0 + 1)


async def test_a_diff_goes_with_its_run(store: Store) -> None:
    """When history forgets it."""
    step = delivery("r-1", A, a_delivery(), "diff")
    await store.commit([begin("r-1", A), step, end("r-1")], T0)
    await store.commit([begin("r-2", A), end("r-2")], T0 + 10)

    assert await store.forget_runs(T0 + 5, 10) == 1
    assert await store.diff(RunId("r-1")) is None
