"""The journal: what is decided is written first and performed once, in order."""

from __future__ import annotations

import math

import pytest
import trio
from trio.testing import MockClock

from sortie.facts import Fact
from sortie.model import IssueId, RunId, RunStatus, StopReason, StoreError, Streak
from sortie.orchestrator.journal import COMMIT_PAUSE, PATIENCE, Journal
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


class Desk:
    """A journal on a store in memory; ``told`` are the facts."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.told: list[Fact] = []
        self.journal = Journal(self.store, lambda: 1_700_000_000.0, self.told.append)

    async def paused(self) -> bool:
        """Tell what the store says of the pause."""
        failing, self.store.failing = self.store.failing, None
        recovered = await self.store.recover()
        self.store.failing = failing
        return recovered.paused


async def test_everything_comes_out_once_in_order(clock: MockClock) -> None:
    """Records and what depends on them keep their places; a second look finds nothing."""
    desk, told = Desk(), trio.Event()
    items: list[Decision | trio.Event] = [BEGIN, POLL, told, PAUSE, STOP]
    desk.journal.add(items)

    written = await desk.journal.write()
    taken, rest = list(desk.journal.take()), list(desk.journal.take())

    assert written
    assert taken == items
    assert (rest, desk.journal.is_empty) == ([], True)
    assert await desk.paused()
    assert desk.told == []


async def test_what_cannot_be_written_stays_whole(clock: MockClock) -> None:
    """A failed write leaves everything in its place, says why, and is made up for at once when
    the disk works again: no record is written twice or left out."""
    desk = Desk()
    desk.journal.add([BEGIN, POLL])
    desk.store.failing = FULL

    failed = await desk.journal.write()
    error, again_at = desk.journal.error, desk.journal.again_at
    desk.journal.add([PAUSE])
    desk.store.failing = None
    await trio.sleep(COMMIT_PAUSE)
    written = await desk.journal.write()

    assert (failed, written) == (False, True)
    assert (error, again_at) == ("disk full", COMMIT_PAUSE)
    assert (desk.journal.error, desk.journal.again_at) == (None, math.inf)
    assert list(desk.journal.take()) == [BEGIN, POLL, PAUSE]
    assert await desk.paused()
    assert desk.told == [facts.StoreFailed(error="disk full"), facts.StoreRecovered()]


async def test_a_failing_disk_is_tried_once_a_second(clock: MockClock) -> None:
    """However often it is asked to write; and at once where there is no time left."""
    desk = Desk()
    desk.journal.add([PAUSE])
    desk.store.failing = FULL

    for _ in range(100):
        await desk.journal.write()
        await trio.sleep(0.1)
    tries = len(desk.told)
    desk.store.failing = None
    early = await desk.journal.write()
    desk.journal.hurry()
    hurried = await desk.journal.write()

    assert tries == 10
    assert (early, hurried) == (False, True)


async def test_a_disk_that_has_nothing_to_write_is_looked_at(clock: MockClock) -> None:
    """The failure is over when a check says so, though no record waits."""
    desk = Desk()
    desk.store.failing = FULL
    desk.journal.add([PAUSE])
    await desk.journal.write()
    desk.store.failing = None
    await trio.sleep(COMMIT_PAUSE)
    await desk.journal.write()
    list(desk.journal.take())

    desk.store.failing = FULL
    empty = await desk.journal.write()
    desk.journal.add([PAUSE])
    await desk.journal.write()
    list(desk.journal.take_urgent(lambda _decision: True))
    await trio.sleep(COMMIT_PAUSE)
    still = await desk.journal.write()

    assert (empty, still) == (True, False)
    assert desk.journal.error == "disk full"


async def test_what_is_urgent_overtakes_and_the_rest_keeps_its_order(clock: MockClock) -> None:
    """It is taken once; what it overtook is written and performed later."""
    desk, told = Desk(), trio.Event()
    desk.journal.add([BEGIN, POLL, told, PAUSE, STOP])
    desk.store.failing = FULL
    await desk.journal.write()

    urgent = desk.journal.take_urgent(lambda d: isinstance(d, do.Poll | do.StopWorker))
    again = desk.journal.take_urgent(lambda d: isinstance(d, do.Poll | do.StopWorker))
    desk.store.failing = None
    desk.journal.hurry()
    await desk.journal.write()

    assert (urgent, again) == ([POLL, STOP], [])
    assert list(desk.journal.take()) == [BEGIN, told, PAUSE]


async def test_a_record_that_no_try_can_write_is_a_defect(clock: MockClock) -> None:
    """It is raised, naming the record, and is not taken for a failing disk."""
    desk = Desk()
    desk.journal.add([PAUSE, END])

    with pytest.raises(RecordRefused) as caught:
        await desk.journal.write()

    assert caught.value.record == END
    assert desk.journal.error is None
    assert desk.told == []
    assert not await desk.paused()


async def test_news_wait_for_others(clock: MockClock) -> None:
    """What nothing depends on is written PATIENCE later, however much of it comes meanwhile."""
    desk = Desk()
    desk.journal.add([NEWS])
    first, due = await desk.journal.write(), desk.journal.again_at
    await trio.sleep(PATIENCE / 2)
    desk.journal.add([NEWS])
    second, still_due = await desk.journal.write(), desk.journal.again_at
    await trio.sleep(PATIENCE / 2)

    third = await desk.journal.write()

    assert (first, second, third) == (False, False, True)
    assert due == still_due == PATIENCE
    assert list(desk.journal.take()) == [NEWS, NEWS]
    assert desk.journal.again_at == math.inf


@pytest.mark.parametrize("other", [BEGIN, POLL, trio.Event()])
async def test_news_are_written_before_whatever_follows(
    clock: MockClock, other: Decision | trio.Event
) -> None:
    """Nothing that may depend on them waits for them, or is performed before them."""
    desk = Desk()
    desk.journal.add([NEWS])
    early = await desk.journal.write()
    desk.journal.add([other])

    written = await desk.journal.write()

    assert (early, written) == (False, True)
    assert list(desk.journal.take()) == [NEWS, other]


async def test_news_wait_no_longer_where_nothing_else_comes(clock: MockClock) -> None:
    """As at the end of the daemon; what a failing disk refused keeps to its own times."""
    desk = Desk()
    desk.journal.add([NEWS])
    desk.journal.wait_no_longer()
    written = await desk.journal.write()
    list(desk.journal.take())
    desk.store.failing = FULL
    desk.journal.add([PAUSE])
    await desk.journal.write()
    desk.journal.wait_no_longer()

    again_at = desk.journal.again_at

    assert written
    assert again_at == COMMIT_PAUSE
