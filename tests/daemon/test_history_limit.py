"""History is kept for as long as the settings say."""

from __future__ import annotations

import structlog.testing
import trio
import trio.testing

from sortie.daemon.history_limit import FORGOTTEN_AT_ONCE, PRUNE_PERIOD, prune_history
from sortie.model import StoreError
from tests.store.inline import MemoryStore
from tests.store.records import A, begin, end

DAY = 86_400.0


async def store_of(count: int) -> MemoryStore:
    store = MemoryStore()
    for number in range(count):
        await store.commit([begin(f"r{number}", A)], number)
        await store.commit([end(f"r{number}")], number + 0.5)
    return store


async def kept(store: MemoryStore) -> int:
    return len(await store.history(limit=10_000))


async def test_nothing_is_forgotten_unless_asked_for(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """By default history is kept for ever; a setting that changes is obeyed within an hour, and
    what is forgotten is told once, in one line.
    """
    store, days = await store_of(2 * FORGOTTEN_AT_ONCE + 3), [0]

    with structlog.testing.capture_logs() as log:
        nursery.start_soon(prune_history, store, lambda: days[0], lambda: 100 * DAY)
        await trio.sleep(3 * PRUNE_PERIOD)
        before = await kept(store)
        days[0] = 99
        await trio.sleep(1.5 * PRUNE_PERIOD)

    assert before == 2 * FORGOTTEN_AT_ONCE + 3
    assert await kept(store) == 1
    assert log == [
        {
            "event": "history.pruned",
            "log_level": "info",
            "runs": 2 * FORGOTTEN_AT_ONCE + 2,
            "keep_days": 99,
        }
    ]


async def test_what_is_young_enough_stays(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A run is old when it ended more than so many days ago."""
    store = await store_of(10)

    nursery.start_soon(prune_history, store, lambda: 1, lambda: DAY + 5)
    await trio.sleep(PRUNE_PERIOD / 2)

    assert await kept(store) == 5


async def test_a_database_that_cannot_be_written_is_tried_again(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A full disk ends neither the daemon nor the pruning."""
    store = await store_of(10)
    store.failing = StoreError("the disk is full")

    with structlog.testing.capture_logs() as log:
        nursery.start_soon(prune_history, store, lambda: 1, lambda: 100 * DAY)
        await trio.sleep(PRUNE_PERIOD / 2)
        store.failing = None
        await trio.sleep(PRUNE_PERIOD)

    assert await kept(store) == 1
    assert [entry["event"] for entry in log] == ["history.not_pruned", "history.pruned"]
