"""Reading the issue again after a turn."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from sortie.model import Finish, Finished, RunReport, TrackerErrorKind
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from tests.agents.fake import Completes
from tests.worker.rig import RUN, Rig, issue


async def test_an_issue_that_left_its_active_states_ends_the_run(clock: MockClock) -> None:
    """After the turn in which that happened there is no other, and the new state is told."""
    rig = Rig(agent={"max_turns": 9})
    rig.agent.scripts["A"] = [
        Completes(),
        Completes(does=lambda: rig.tracker.edit("a", state="Done")),
    ]

    report = await rig.work()

    assert report == RunReport(end=Finished(finish=Finish.LEFT_ACTIVE), turns=2, seconds=2.0)
    assert rig.told[-1] == ev.IssueMoved(RUN, issue(state="Done"))


async def test_a_tracker_that_fails_for_a_while_is_asked_again(clock: MockClock) -> None:
    """A re-read that succeeds within a minute lets the run go on."""
    rig = Rig(agent={"max_turns": 2})

    async def outage() -> None:
        await trio.sleep(0.5)
        rig.tracker.down = TrackerErrorKind.UNAVAILABLE
        await trio.sleep(55)
        rig.tracker.down = None

    async with trio.open_nursery() as nursery:
        nursery.start_soon(outage)
        report = await rig.work()

    assert report == RunReport(end=Finished(finish=Finish.TURNS_USED), turns=2, seconds=57.0)


@pytest.mark.parametrize("how", ["down", "silent", "one issue"])
async def test_a_tracker_that_fails_for_a_minute_ends_the_run(clock: MockClock, how: str) -> None:
    """A run whose issue cannot be re-read for 60 s ends well, to be continued."""
    rig = Rig(agent={"max_turns": 2})
    match how:
        case "down":
            rig.tracker.down = TrackerErrorKind.UNAVAILABLE
        case "silent":
            rig.tracker.delay = 1e6
        case _:
            rig.tracker.unreadable[rig.issue.id] = TrackerErrorKind.INVALID

    report = await rig.work()

    assert report == RunReport(end=Finished(finish=Finish.UNREADABLE), turns=1, seconds=61.0)
    results = {fact.result for fact in rig.of(facts.TrackerAsked)}
    assert results == {"success" if how == "one issue" else "error"}


async def test_a_vanished_issue_ends_the_run(clock: MockClock) -> None:
    """Two reads five seconds apart must both miss it."""
    rig = Rig(agent={"max_turns": 2})
    rig.agent.scripts["A"] = [Completes(does=lambda: rig.tracker.lose("a"))]

    report = await rig.work()

    assert report == RunReport(end=Finished(finish=Finish.GONE), turns=1, seconds=6.0)


async def test_an_issue_missed_once_is_not_gone(clock: MockClock) -> None:
    """A read that misses the issue is doubted, and the next one counts."""
    rig = Rig(agent={"max_turns": 2})
    rig.agent.scripts["A"] = [Completes(does=lambda: rig.tracker.lose("a")), Completes()]

    async with trio.open_nursery() as nursery:
        nursery.start_soon(find_again_at, rig, 4.0)
        report = await rig.work()

    assert report == RunReport(end=Finished(finish=Finish.TURNS_USED), turns=2, seconds=7.0)


async def test_a_failing_read_does_not_confirm_a_miss(clock: MockClock) -> None:
    """Missed, then unanswered, then found: the issue is there."""
    rig = Rig(agent={"max_turns": 2})
    rig.agent.scripts["A"] = [Completes(does=lambda: rig.tracker.lose("a")), Completes()]

    async with trio.open_nursery() as nursery:
        nursery.start_soon(find_again_at, rig, 8.0)
        nursery.start_soon(down_between, rig, 5.0, 9.0)
        report = await rig.work()

    assert report.end == Finished(finish=Finish.TURNS_USED)


async def find_again_at(rig: Rig, seconds: float) -> None:
    await trio.sleep(seconds)
    rig.tracker.find_again("a")


async def down_between(rig: Rig, begin: float, end: float) -> None:
    await trio.sleep(begin)
    rig.tracker.down = TrackerErrorKind.UNAVAILABLE
    await trio.sleep(end - begin)
    rig.tracker.down = None
