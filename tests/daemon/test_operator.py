"""What operators are told of issues that the daemon does not have in hand."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from trio.testing import MockClock

from sortie.model import IssueId, TrackerErrorKind
from sortie.telemetry import facts
from sortie.web.issue import ExplanationView
from sortie.web.source import CommandAnswer
from tests.agents.fake import Fails, Silent
from tests.orchestrator.daemon_view import view_of
from tests.orchestrator.world import World
from tests.worker.rig import issue


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("DONE-1", "DONE-1 is in Done, which is a terminal state: it is finished"),
        ("x", "X is in Review, a handoff state: a person takes it from there"),
        (
            "LOST-1",
            "LOST-1 is in To Do, which no setting names; did you mean Todo? (active states are"
            " Todo, Doing)",
        ),
        (
            "ICE-1",
            "ICE-1 is in Icebox, which no setting names (active states are Todo, Doing)",
        ),
        ("bad-1", "bad-1 cannot be read: bad-1: it is invalid"),
    ],
)
async def test_an_issue_that_is_not_worked_on_is_told_why(
    clock: MockClock, name: str, expected: str
) -> None:
    """Its state, or what is wrong with it, is said by explain, stop and retry alike."""
    world = World(
        issue("done-1", state="Done"),
        issue("x", state="Review"),
        issue("lost-1", state="To Do"),
        issue("ice-1", state="Icebox"),
        issue("bad-1"),
        tracker={"handoff_state": "Review"},
    )
    world.tracker.unreadable[IssueId("bad-1")] = TrackerErrorKind.INVALID

    async with world.life() as orchestrator:
        controls = view_of(orchestrator, world)
        await world.until(facts.PollCompleted)
        explained = await controls.explain(name)
        answers = [await controls.stop(name), await controls.retry(name)]

    assert explained == expected
    assert answers == [CommandAnswer(status=404, message=expected)] * 2


async def test_a_misspelt_name_is_told_what_it_may_mean(clock: MockClock) -> None:
    """Names that look like it are offered, the likeliest first, whatever their states."""
    world = World(issue("shop-17"), issue("shop-71", state="Done"))
    world.agent.scripts["SHOP-17"] = [Silent()]

    async with world.life() as orchestrator:
        controls = view_of(orchestrator, world)
        await world.until(facts.AgentLaunched)
        near = await controls.explain("shop17")
        far = await controls.explain("nobody")

    assert isinstance(near, str)
    assert near.endswith("; did you mean SHOP-17, SHOP-71?")
    assert isinstance(far, str)
    assert "did you mean" not in far


async def test_an_explanation_tells_what_the_issue_is_about(clock: MockClock) -> None:
    """Its labels and its description, each cut where it is long."""
    labels = ("bug", "x" * 5000, *map(str, range(100)))
    world = World(replace(issue(), labels=labels, description="word " * 100_000))
    world.agent.scripts["A"] = [Silent()]

    async with world.life() as orchestrator:
        controls = view_of(orchestrator, world)
        await world.until(facts.AgentLaunched)
        told = await controls.explain("A")

    assert isinstance(told, ExplanationView)
    assert told.labels[0] == "bug"
    assert (len(told.labels), max(map(len, told.labels))) == (50, 100)
    assert told.description.startswith("word word ")
    assert len(told.description) <= 8192


async def test_an_explanation_tells_the_last_failure(clock: MockClock) -> None:
    """Why an issue waits is not only that it failed, but how."""
    world = World(issue())
    world.agent.scripts["A"] = [Fails()]

    async with world.life() as orchestrator:
        controls = view_of(orchestrator, world)
        await world.until(facts.RetryScheduled)
        found = await controls.explain("A")

    assert isinstance(found, ExplanationView)
    assert found.last_failure is not None
    assert found.last_failure.message == "the fake agent fails: turn_failed"
