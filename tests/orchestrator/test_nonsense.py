"""A tracker whose adapter answers with what it must not."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sortie.model import Blocker, Comment, Issue, IssueId, RunStatus
from sortie.orchestrator.tracker_answers import flaw_of
from sortie.telemetry import facts
from sortie.trackers import IssuesRead
from tests.agents.fake import Chats, Completes, Silent
from tests.orchestrator.world import HANDOFF, World
from tests.trackers.fake import FakeTracker
from tests.worker.rig import issue

GOOD = issue("bad")
STATELESS: dict[str, Any] = {"state": None}
WRONG_FIELDS: dict[str, Any] = {
    "id": 5,
    "identifier": None,
    "title": b"bytes",
    "state": None,
    "description": None,
    "priority": "high",
    "url": 1,
    "labels": ["a list"],
    "assignee": ("A",),
    "comments": (Comment(author="a", body=None),),  # type: ignore[arg-type]
    "blocked_by": (Blocker(identifier="A", state=1),),  # type: ignore[arg-type]
    "created_at": "yesterday",
    "updated_at": datetime(2026, 1, 1),  # it has no time zone
}


class LyingTracker(FakeTracker):
    """A tracker that puts ``lies`` before its issues, and before what is re-read."""

    def __init__(self, *issues: Issue) -> None:
        super().__init__(issues)
        self.lies: tuple[Any, ...] = ()
        self.read_lies: tuple[Any, ...] = ()
        self.failed: Any = {}

    async def fetch_candidates(self, states: Collection[str]) -> Sequence[Issue]:
        """Answer with lies and truths."""
        return [*self.lies, *await super().fetch_candidates(states)]

    async def fetch_by_ids(self, ids: Collection[IssueId]) -> IssuesRead:
        """Answer with lies and truths."""
        answer = await super().fetch_by_ids(ids)
        if not self.read_lies and not self.failed:
            return answer
        return IssuesRead(issues=(*self.read_lies, *answer.issues), failed=self.failed)


def lied_to(*issues: Issue, **sections: Any) -> tuple[World, LyingTracker]:
    """Return a world whose tracker lies."""
    world = World(tracker=HANDOFF, **sections)
    tracker = world.tracker = LyingTracker(*issues)
    return world, tracker


@pytest.mark.parametrize("wrong", [None, "an issue", *WRONG_FIELDS])
async def test_what_is_no_issue_costs_only_itself(clock: MockClock, wrong: str | None) -> None:
    """One malformed issue among good ones is skipped and told of once, not once a poll."""
    world, tracker = lied_to(issue("a"))
    tracker.lies = (
        (replace(GOOD, **{wrong: WRONG_FIELDS[wrong]}),) if wrong in WRONG_FIELDS else (wrong,)
    )

    async with world.life():
        await world.until(facts.TransitionCompleted)
        await trio.sleep(300)

    assert [row.issue for row in await world.history()] == ["A"]
    (told,) = world.of(facts.AdapterCrashed)
    assert told.where == "fetch_candidates"
    assert (wrong or "NoneType").removeprefix("an issue") in told.traceback


def test_each_field_is_looked_at() -> None:
    """A good issue has no flaw, and each wrong field is named."""
    flaws = {name: flaw_of(replace(GOOD, **{name: value})) for name, value in WRONG_FIELDS.items()}

    assert flaw_of(GOOD) is None
    assert all(f"wrong {name}" in (flaw or "") for name, flaw in flaws.items())


async def test_a_reread_that_makes_no_sense_is_no_miss(clock: MockClock) -> None:
    """A run whose issue comes back as rubbish, for as long as it likes, goes on."""
    world, tracker = lied_to(issue("a"))
    world.agent.scripts["A"] = [Chats(every=10, times=60)]

    async with world.life():
        await world.until(facts.AgentLaunched)
        tracker.lose("a")
        tracker.read_lies = (replace(issue("a"), **STATELESS),)
        await trio.sleep(300)
        stopped = world.of(facts.RunStopping)
        tracker.find_again("a")
        tracker.read_lies = ()
        await world.until(facts.TransitionCompleted)

    assert stopped == []
    assert [row.status for row in await world.history()] == [RunStatus.SUCCEEDED]


async def test_an_issue_that_is_listed_twice_runs_once(clock: MockClock) -> None:
    """The same id twice, in a list or a re-read, whatever else they say, is one issue."""
    world, tracker = lied_to(issue("a"))
    tracker.lies = (issue("a", priority=1), issue("a", description="another"))
    tracker.read_lies = (issue("a", description="a third"),)
    world.agent.scripts["A"] = [Chats(every=10, times=20)]

    async with world.life() as orchestrator:
        await trio.sleep(150)
        claims = set(orchestrator.snapshot().claims)
        await world.until(facts.TransitionCompleted)

    assert claims == {"a"}
    assert world.agent.runs_of("A") == 1
    assert [fact.result for fact in world.of(facts.TransitionCompleted)] == ["success"]


async def test_two_issues_with_one_identifier_do_not_share_a_workspace(clock: MockClock) -> None:
    """Neither is started until they differ; the others are."""
    world, tracker = lied_to(issue("a"), issue("b", state="Todo"), issue("c"))
    tracker.edit("b", identifier="A")

    async with world.life():
        await world.until(facts.TransitionCompleted)
        await trio.sleep(100)
        begun = [name for name, _ in world.agent.begun]
        tracker.edit("b", identifier="B")
        await world.until(facts.TransitionCompleted, 3)

    assert begun == ["C"]
    assert [fact.traceback for fact in world.of(facts.AdapterCrashed)] == [
        "the issues a, b have one identifier, 'A'; none is started"
    ]


@pytest.mark.parametrize("answer", [None, 7, "Issue", IssuesRead(issues=None)])  # type: ignore[arg-type]
@pytest.mark.parametrize("method", ["fetch_candidates", "fetch_by_ids"])
async def test_an_answer_of_another_kind_is_no_answer(
    clock: MockClock, method: str, answer: object
) -> None:
    """It is told as a crash of the adapter, and work goes on with the next good answer."""
    world = World(issue(), tracker=HANDOFF)
    healthy = getattr(world.tracker, method)

    async def lie(*_args: object) -> object:
        await trio.lowlevel.checkpoint()
        return answer

    setattr(world.tracker, method, lie)
    async with world.life():
        await trio.sleep(100)
        setattr(world.tracker, method, healthy)
        await world.until(facts.TransitionCompleted)

    world.tracker.assert_all_in("Review")
    assert {fact.where for fact in world.of(facts.AdapterCrashed)} == {method}


@pytest.mark.parametrize("answer", [None, issue("b", state="Doing"), replace(GOOD, **STATELESS)])
async def test_a_move_that_returns_another_issue_is_a_failed_move(
    clock: MockClock, answer: object
) -> None:
    """The run goes on as its own issue, and no other issue is claimed by it."""
    world = World(
        issue("a"),
        issue("b", state="Backlog"),
        tracker={"in_progress_state": "Doing"},
        agent={"max_turns": 2},
    )
    world.agent.scripts["A"] = [Completes(), Silent()]
    move = world.tracker.transition

    async def lie(present: Issue, state: str) -> object:
        await move(present, state)
        return answer

    setattr(world.tracker, "transition", lie)  # noqa: B010
    async with world.life() as orchestrator:
        await world.until(facts.TurnBegan, 2)
        await trio.sleep(100)
        claims = set(orchestrator.snapshot().claims)

    assert claims == {"a"}
    assert [fact.result for fact in world.of(facts.TransitionCompleted)] == ["error"]
