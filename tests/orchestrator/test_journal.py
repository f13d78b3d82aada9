"""The journal: what is decided is written first and performed once, in order."""

from __future__ import annotations

import math

import outcome
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from sortie.facts import Fact
from sortie.model import IssueId, RunId, RunStatus, StopReason, StoreError, Streak
from sortie.orchestrator.journal import (
    COMMIT_DELAY,
    COMMIT_PATIENCE,
    COMMIT_PAUSE,
    Journal,
)
from sortie.scheduler import Decision
from sortie.scheduler import decisions as do
from sortie.scheduler import records as rec
from sortie.store import RecordRefused
from sortie.telemetry import facts
from tests.store.inline import MemoryStore
from tests.worker.rig import issue

RUN = RunId("run-1")
FULL = StoreError("disk full")
BEGIN = rec.RecordRun(run_id=RUN, issue=issue(), streak=Streak(), host="local", agent="fake")
END = rec.RecordExit(run_id=RUN, status=RunStatus.SUCCEEDED)
PAUSE = rec.RecordPause(paused=True)
NEWS = rec.ForgetRetry(issue_id=IssueId("1"))
POLL = do.Poll()
STOP = do.StopWorker(RUN, issue(), StopReason.OPERATOR)


class JournalUnderTest:
    """A journal on a store in memory; ``told`` are the facts, and ``woken`` counts the commits that
    were not waited for."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.told: list[Fact] = []
        self.woken = 0
        self.journal = Journal(self.store, lambda: 1_700_000_000.0, self.told.append, self._wake)

    def _wake(self) -> None:
        self.woken += 1

    async def write(self) -> bool:
        """Write, and have no commit be under way afterwards."""
        async with trio.open_nursery() as nursery:
            written = await outcome.acapture(self.journal.write, nursery)
        return written.unwrap()

    async def paused(self) -> bool:
        """Tell what the store says of the pause."""
        failing, self.store.failing = self.store.failing, None
        recovered = await self.store.recover()
        self.store.failing = failing
        return recovered.paused


async def test_everything_comes_out_once_in_order(clock: MockClock) -> None:
    """Records and what depends on them keep their places; a second look finds nothing."""
    it, told = JournalUnderTest(), trio.Event()
    items: list[Decision | trio.Event] = [BEGIN, POLL, told, PAUSE, STOP]
    it.journal.add(items)

    written = await it.write()
    taken, rest = list(it.journal.take()), list(it.journal.take())

    assert written
    assert taken == items
    assert (rest, it.journal.is_empty) == ([], True)
    assert await it.paused()
    assert it.told == []


async def test_what_cannot_be_written_stays_whole(clock: MockClock) -> None:
    """A failed write leaves everything in its place, says why, and is made up for at once when
    the disk works again: no record is written twice or left out."""
    it = JournalUnderTest()
    it.journal.add([BEGIN, POLL])
    it.store.failing = FULL

    failed = await it.write()
    error, again_at = it.journal.error, it.journal.again_at
    it.journal.add([PAUSE])
    it.store.failing = None
    await trio.sleep(COMMIT_PAUSE)
    written = await it.write()

    assert (failed, written) == (False, True)
    assert (error, again_at) == ("disk full", COMMIT_PAUSE)
    assert (it.journal.error, it.journal.again_at) == (None, math.inf)
    assert list(it.journal.take()) == [BEGIN, POLL, PAUSE]
    assert await it.paused()
    assert it.told == [facts.StoreFailed(error="disk full"), facts.StoreRecovered()]


async def test_a_failing_disk_is_tried_once_a_second(clock: MockClock) -> None:
    """However often it is asked to write; and at once where there is no time left."""
    it = JournalUnderTest()
    it.journal.add([PAUSE])
    it.store.failing = FULL

    for _ in range(100):
        await it.write()
        await trio.sleep(0.1)
    tries = len(it.told)
    it.store.failing = None
    early = await it.write()
    it.journal.hurry()
    hurried = await it.write()

    assert tries == 10
    assert (early, hurried) == (False, True)


async def test_a_disk_that_has_nothing_to_write_is_looked_at(clock: MockClock) -> None:
    """The failure is over when a check says so, though no record waits."""
    it = JournalUnderTest()
    it.store.failing = FULL
    it.journal.add([PAUSE])
    await it.write()
    it.store.failing = None
    await trio.sleep(COMMIT_PAUSE)
    await it.write()
    list(it.journal.take())

    it.store.failing = FULL
    empty = await it.write()
    it.journal.add([PAUSE])
    await it.write()
    list(it.journal.take_urgent(lambda _decision: True))
    await trio.sleep(COMMIT_PAUSE)
    still = await it.write()

    assert (empty, still) == (True, False)
    assert it.journal.error == "disk full"


async def test_what_is_urgent_overtakes_and_the_rest_keeps_its_order(clock: MockClock) -> None:
    """It is taken once; what it overtook is written and performed later."""
    it, told = JournalUnderTest(), trio.Event()
    it.journal.add([BEGIN, POLL, told, PAUSE, STOP])
    it.store.failing = FULL
    await it.write()

    urgent = it.journal.take_urgent(lambda d: isinstance(d, do.Poll | do.StopWorker))
    again = it.journal.take_urgent(lambda d: isinstance(d, do.Poll | do.StopWorker))
    it.store.failing = None
    it.journal.hurry()
    await it.write()

    assert (urgent, again) == ([POLL, STOP], [])
    assert list(it.journal.take()) == [BEGIN, told, PAUSE]


async def test_a_record_that_no_try_can_write_is_a_defect(clock: MockClock) -> None:
    """It is raised, naming the record, and is not taken for a failing disk."""
    it = JournalUnderTest()
    it.journal.add([PAUSE, END])

    with pytest.raises(RecordRefused) as caught:
        await it.write()

    assert caught.value.record == END
    assert it.journal.error is None
    assert it.told == []
    assert not await it.paused()


async def test_news_wait_for_others(clock: MockClock) -> None:
    """What nothing depends on is written COMMIT_DELAY later, however much of it comes meanwhile."""
    it = JournalUnderTest()
    it.journal.add([NEWS])
    first, due = await it.write(), it.journal.again_at
    await trio.sleep(COMMIT_DELAY / 2)
    it.journal.add([NEWS])
    second, still_due = await it.write(), it.journal.again_at
    await trio.sleep(COMMIT_DELAY / 2)

    third = await it.write()

    assert (first, second, third) == (False, False, True)
    assert due == still_due == COMMIT_DELAY
    assert list(it.journal.take()) == [NEWS, NEWS]
    assert it.journal.again_at == math.inf


@pytest.mark.parametrize("other", [BEGIN, POLL, trio.Event()])
async def test_news_are_written_before_whatever_follows(
    clock: MockClock, other: Decision | trio.Event
) -> None:
    """Nothing that may depend on them waits for them, or is performed before them."""
    it = JournalUnderTest()
    it.journal.add([NEWS])
    early = await it.write()
    it.journal.add([other])

    written = await it.write()

    assert (early, written) == (False, True)
    assert list(it.journal.take()) == [NEWS, other]


async def test_news_wait_no_longer_where_nothing_else_comes(clock: MockClock) -> None:
    """As at the end of the daemon; what a failing disk refused keeps to its own times."""
    it = JournalUnderTest()
    it.journal.add([NEWS])
    it.journal.wait_no_longer()
    written = await it.write()
    list(it.journal.take())
    it.store.failing = FULL
    it.journal.add([PAUSE])
    await it.write()
    it.journal.wait_no_longer()

    again_at = it.journal.again_at

    assert written
    assert again_at == COMMIT_PAUSE


async def test_a_commit_that_takes_long_is_not_waited_for(clock: MockClock) -> None:
    """Meanwhile no other begins, and what is urgent overtakes; at its end it wakes, and what came
    behind it is written before anything is performed."""
    it = JournalUnderTest()
    it.store.silent = trio.Event()
    it.journal.add([PAUSE, BEGIN, STOP])

    async with trio.open_nursery() as nursery:
        late = await it.journal.write(nursery)
        waited, due = trio.current_time(), it.journal.again_at
        urgent = it.journal.take_urgent(lambda d: isinstance(d, do.StopWorker))
        it.journal.add([END, POLL])
        meanwhile = await it.journal.write(nursery)
        it.store.silent.set()
        await trio.testing.wait_all_tasks_blocked()
        woken, now_due = it.woken, it.journal.again_at
        written = await it.journal.write(nursery)
        taken = list(it.journal.take())
        last = await it.journal.write(nursery)

    assert (late, meanwhile, written, last) == (False, False, True, True)
    assert (waited, due, now_due) == (COMMIT_PATIENCE, math.inf, -math.inf)
    assert (urgent, woken, it.woken) == ([STOP], 1, 1)
    assert taken == [PAUSE, BEGIN, END, POLL]
    assert [row.status for row in await it.store.history()] == [RunStatus.SUCCEEDED]
    assert it.told == []


async def test_a_commit_that_fails_late_is_tried_again_whole(clock: MockClock) -> None:
    """Its records and those that came meanwhile are written in their order, once."""
    it = JournalUnderTest()
    it.store.silent, it.store.failing = trio.Event(), FULL
    it.journal.add([BEGIN])

    async with trio.open_nursery() as nursery:
        await it.journal.write(nursery)
        it.journal.add([END])
        it.store.silent.set()
        await trio.testing.wait_all_tasks_blocked()
        failed, error = await it.journal.write(nursery), it.journal.error
        it.store.failing = None
        it.journal.hurry()
        written = await it.journal.write(nursery)

    assert (failed, error, written) == (False, "disk full", True)
    assert list(it.journal.take()) == [BEGIN, END]
    assert [row.status for row in await it.store.history()] == [RunStatus.SUCCEEDED]


async def test_the_last_try_is_waited_for(clock: MockClock) -> None:
    """However long it takes."""
    it = JournalUnderTest()
    it.store.silent = trio.Event()
    it.journal.add([PAUSE])

    async with trio.open_nursery() as nursery:
        await it.journal.write(nursery)
        it.journal.hurry()
        nursery.start_soon(_after, 100, it.store.silent)
        written = await it.journal.write(nursery)

    assert written
    assert trio.current_time() >= 100


async def _after(seconds: float, event: trio.Event) -> None:
    await trio.sleep(seconds)
    event.set()
