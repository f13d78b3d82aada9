"""The move to the in-progress state of a tracker in an outage, and of one that refuses it."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from sortie.model import Failed, Finished, Stopped, TrackerErrorKind
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from tests.agents.fake import Chats, Completes
from tests.worker.rig import RUN, Rig, issue

OUTAGES = [TrackerErrorKind.UNAVAILABLE, TrackerErrorKind.CLOSED]


def rig_in_outage(kind: TrackerErrorKind, **agent: object) -> Rig:
    """Return a rig with an agent that works for ten minutes, and a tracker that takes no move."""
    rig = Rig(tracker={"in_progress_state": "Doing"}, agent=agent)
    rig.agent.scripts["A"] = [Chats(every=100, times=6)]
    rig.tracker.transitions_fail = kind
    return rig


def results(rig: Rig) -> list[str]:
    """Return how the moves ended."""
    return [fact.result for fact in rig.facts if isinstance(fact, facts.TransitionCompleted)]


@pytest.mark.parametrize("kind", OUTAGES)
async def test_the_move_is_made_up_for_when_the_outage_is_over(
    clock: MockClock, kind: TrackerErrorKind
) -> None:
    """The run goes on meanwhile; the move is made within a pause, and told as ours."""
    rig = rig_in_outage(kind)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(end_outage_after, rig, 160.0)
        report = await rig.work()

    assert isinstance(report.end, Finished)
    assert results(rig) == ["error"] * 5 + ["success"]
    assert rig.tracker.journey("a") == ("Todo", "Doing")
    moved = ev.IssueMoved(RUN, issue(state="Doing"), True)
    assert rig.told.count(moved) == 1


@pytest.mark.parametrize("kind", [TrackerErrorKind.INVALID, TrackerErrorKind.PERMISSION])
async def test_a_refused_move_is_not_tried_again(clock: MockClock, kind: TrackerErrorKind) -> None:
    """What the tracker refuses it would refuse again."""
    rig = rig_in_outage(kind)

    await rig.work()

    assert results(rig) == ["error"]


async def test_no_move_is_made_over_the_word_of_somebody_else(clock: MockClock) -> None:
    """An issue that was moved meanwhile stays where it is, and is asked for no more."""
    rig = rig_in_outage(TrackerErrorKind.UNAVAILABLE, max_turns=2)
    rig.agent.scripts["A"] = [
        Completes(does=lambda: rig.tracker.edit("a", state="Doing")),
        Chats(every=100, times=6),
    ]

    await rig.work()

    assert results(rig) == ["error"]
    assert rig.tracker.moves == []


async def test_a_stop_ends_the_tries(clock: MockClock) -> None:
    """A run that is stopped in an outage ends at once, without the move."""
    rig = rig_in_outage(TrackerErrorKind.UNAVAILABLE)

    report = await rig.work_stopped_at(35.0)

    assert isinstance(report.end, Stopped)
    assert results(rig) == ["error"] * 3
    assert trio.current_time() < 40.0


async def test_an_error_of_the_turn_is_told_as_ever(clock: MockClock) -> None:
    """What ends the turn ends the run, whatever is tried beside it."""
    rig = rig_in_outage(TrackerErrorKind.UNAVAILABLE, stall_timeout_ms=50_000)

    report = await rig.work()

    assert isinstance(report.end, Failed)
    assert results(rig) == ["error"] * 3


async def end_outage_after(rig: Rig, seconds: float) -> None:
    """Have the tracker take moves again."""
    await trio.sleep(seconds)
    rig.tracker.transitions_fail = None
