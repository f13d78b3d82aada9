"""One issue that nothing works with, among good ones: it never keeps them from their end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sortie.model import ErrorKind, HoldReason, RunStatus
from sortie.scheduler import Record
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.store import RecordRefused
from sortie.telemetry import facts
from sortie.workflow.prompts import Prompt
from tests.orchestrator.world import HANDOFF, World
from tests.transports.fake import Does
from tests.worker.rig import issue

GOOD = ("b", "c", "d")


class Bomb(str):
    """A text over which the scheduler stumbles, as it would over a bug of its own."""

    def strip(self, *_args: Any) -> str:
        """Crash."""
        raise LookupError("a bug")


class BombNumber(int):
    """A number with the same effect."""

    def __ge__(self, _other: object) -> bool:
        """Crash."""
        raise LookupError("a bug")


def poisoned(*, hooks: dict[str, Does] | None = None, **agent: object) -> World:
    """Return a world with one slot in which the issue ``a`` comes before the good ones."""
    return World(
        issue("a", priority=1),
        *(issue(name, priority=2) for name in GOOD),
        hooks=hooks,
        tracker=HANDOFF,
        agent={"max_concurrent_agents": 1} | agent,
    )


async def good_ones(world: World) -> None:
    """Wait until all good issues are handed off."""
    await world.until(facts.TransitionCompleted, 3, lambda f: f.issue.id in GOOD)
    assert {name: world.tracker.states()[name.upper()] for name in GOOD} == dict.fromkeys(
        GOOD, "Review"
    )


@pytest.mark.parametrize("name", [".", ".."])
async def test_an_identifier_that_is_no_directory_is_held_at_once(
    clock: MockClock, name: str
) -> None:
    """It is tried once; a new name ends the hold, and the issue runs."""
    world = poisoned()
    world.tracker.edit("a", identifier=name)

    async with world.life():
        await good_ones(world)
        await trio.sleep(3600)
        held = [(f.issue.id, f.reason) for f in world.of(facts.IssueHeld)]
        tries = [row for row in await world.history() if row.issue_id == "a"]
        world.tracker.edit("a", identifier="A")
        await world.until(facts.TransitionCompleted, 4)

    assert held == [("a", HoldReason.INVALID_WORKSPACE_CWD)]
    assert len(tries) == 1
    assert world.agent.begun[-1][0] == "A"


async def test_a_prompt_that_cannot_be_rendered_costs_one_issue(clock: MockClock) -> None:
    """It fails as a template error and is retried at leisure; the others are worked on."""
    world = poisoned()
    prompt = Prompt(source="{% if issue.identifier == 'A' %}{{ issue.nothing }}{% endif %}Work.")
    healthy = world.run_context_for("local")
    setattr(world, "run_context_for", lambda _host, _rule: replace(healthy, prompt=prompt))  # noqa: B010

    async with world.life():
        await good_ones(world)
        done_at = trio.current_time()
        await trio.sleep(600)

    tries = [row for row in await world.history() if row.issue == "A"]
    assert done_at < 10
    assert {row.error_kind for row in tries} == {ErrorKind.TEMPLATE_ERROR}
    assert len(tries) <= 8


@pytest.mark.parametrize("bomb", [{"title": Bomb("a")}, {"priority": BombNumber(1)}])
async def test_an_issue_that_crashes_the_daemon_is_held_at_the_third_start(
    clock: MockClock, bomb: dict[str, Any]
) -> None:
    """Two lives end by it, and nothing of theirs is lost; from the third on the others run."""
    world = poisoned()
    world.tracker.edit("a", **bomb)

    for _ in range(2):
        with pytest.raises(ExceptionGroup) as caught:
            async with world.life():
                await trio.sleep(3600)
        assert caught.group_contains(LookupError, match="a bug")
    crashes = (await world.store.recover()).crashes
    async with world.life() as orchestrator:
        await good_ones(world)
        (held,) = orchestrator.snapshot().held

    assert [(crash.issue.id, crash.times) for crash in crashes] == [("a", 2)]
    assert (held.issue.id, held.reason) == ("a", HoldReason.INTERNAL_ERROR)
    assert [row.issue for row in await world.history()] == ["B", "C", "D"]


async def test_a_record_that_no_row_can_hold_is_blamed_on_its_issue(clock: MockClock) -> None:
    """The daemon ends, and the next lives know over which issue; from the third on it is held."""
    world = poisoned()
    commit = world.store.commit

    async def refuse(records: Sequence[Record], at: float) -> None:
        for record in records:
            if not isinstance(record, rec.RecordExit) or record.run_id not in runs_of_a():
                continue
            if record.status is RunStatus.SUCCEEDED:
                raise RecordRefused("a number is too large", record)
        await commit(records, at)

    def runs_of_a() -> set[str]:
        return {fact.run_id for fact in world.of(facts.RunStarted) if fact.issue.id == "a"}

    setattr(world.store, "commit", refuse)  # noqa: B010
    for _ in range(2):
        orchestrator = await world.born()
        with pytest.raises(ExceptionGroup) as caught:
            await orchestrator.run()
        assert caught.group_contains(RecordRefused)
    setattr(world.store, "commit", commit)  # noqa: B010
    async with world.life() as living:
        await trio.sleep(60)
        held = {claim.issue.id: claim.reason for claim in living.snapshot().held}

    assert held == {"a": HoldReason.INTERNAL_ERROR}


async def test_a_refused_record_of_no_issue_is_named(clock: MockClock) -> None:
    """The daemon ends with what the store said, and blames nobody."""
    world = World()
    commit = world.store.commit

    async def refuse(records: Sequence[Record], at: float) -> None:
        for record in records:
            if isinstance(record, rec.RecordPause):
                raise RecordRefused("no room for a pause", record)
        await commit(records, at)

    setattr(world.store, "commit", refuse)  # noqa: B010
    orchestrator = await world.born()
    orchestrator.tell(ev.PauseAsked(paused=True))
    with pytest.raises(ExceptionGroup) as caught:
        await orchestrator.run()

    assert caught.group_contains(RecordRefused, match="no room for a pause")
    assert (await world.store.recover()).crashes == ()
