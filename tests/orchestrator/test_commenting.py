"""Comments on the issues."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from sortie.model import StoreError, TrackerError, TrackerErrorKind
from sortie.orchestrator.comments import COMMENT_PATIENCE
from sortie.orchestrator.loop import EFFECTS_GRACE
from sortie.telemetry import facts
from sortie.trackers.outages import LONGEST_PAUSE
from tests.agents.fake import Completes, Fails
from tests.orchestrator.world import HANDOFF, World
from tests.worker.rig import issue

WORKSPACE = "Workspace: `/root/A` on host local"


async def test_comments_tell_of_a_run(clock: MockClock) -> None:
    """Dispatch, failure and completion are told where the settings ask for it, with the attempt
    that the log names."""
    comments = {"on_dispatch": True, "on_completion": True, "on_failure": True}
    world = World(issue(), tracker={**HANDOFF, "comments": comments})
    world.agent.scripts["A"] = [Fails(credits=1.5), Completes()]

    async with world.life():
        await world.until(facts.CommentCompleted, 4)

    assert world.tracker.remarks("a") == (
        "Sortie started an agent on this issue, host local.",
        "The run failed after 1 turn, 1.5 credits: turn_failed: the fake agent fails: turn_failed"
        f"\n\n{WORKSPACE}",
        "Sortie started an agent on this issue (attempt 1), host local.",
        f"The run ended after 1 turn: it took all its turns.\n\n{WORKSPACE}",
    )
    assert [started.attempt for started in world.of(facts.RunStarted)] == [0, 1]
    assert [f.lifecycle for f in world.of(facts.CommentCompleted)] == [
        "dispatch",
        "failure",
        "dispatch",
        "completion",
    ]


@pytest.mark.parametrize("kind", [TrackerErrorKind.UNAVAILABLE, TrackerErrorKind.CLOSED])
async def test_a_comment_outlasts_an_outage(clock: MockClock, kind: TrackerErrorKind) -> None:
    """What was to be said while the tracker was down is said once it is back, and once."""
    world = World(issue(), tracker={**HANDOFF, "comments": {"on_dispatch": True}})
    world.tracker.comments_fail = kind

    async with world.life():
        await world.until(facts.TransitionCompleted)
        early = world.of(facts.CommentCompleted)
        await trio.sleep(3600)
        world.tracker.comments_fail = None
        told = await world.until(facts.CommentCompleted)

    assert early == []
    assert told.result == "success"
    assert len(world.tracker.remarks("a")) == 1


async def test_a_comment_whose_answer_was_lost_is_made_once(
    clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tracker that made it and could not say so is asked again, and told that it may be there."""
    world = World(issue(), tracker={**HANDOFF, "comments": {"on_dispatch": True}})
    made, losses = world.tracker.comment, [1, 2]

    async def lose(*args: Any, **options: Any) -> None:
        await made(*args, **options)
        if losses:
            losses.pop()
            raise TrackerError(TrackerErrorKind.UNAVAILABLE, "the answer was lost")

    monkeypatch.setattr(world.tracker, "comment", lose)
    async with world.life():
        told = await world.until(facts.CommentCompleted)

    assert (told.result, losses) == ("success", [])
    assert len(world.tracker.remarks("a")) == 1


async def test_a_comment_that_can_never_be_made_is_given_up(clock: MockClock) -> None:
    """After some hours, and told."""
    world = World(issue(), tracker={**HANDOFF, "comments": {"on_dispatch": True}})
    world.tracker.comments_fail = TrackerErrorKind.UNAVAILABLE

    async with world.life():
        told = await world.until(facts.CommentCompleted)

    assert told.result == "error"
    assert COMMENT_PATIENCE - LONGEST_PAUSE <= trio.current_time() <= COMMENT_PATIENCE + 60


@pytest.mark.parametrize("how", ["fails", "hangs"])
async def test_a_comment_never_blocks_a_run(clock: MockClock, how: str) -> None:
    """A tracker that refuses comments, or takes for ever, costs nothing else."""
    comments = {"on_dispatch": True, "on_completion": True}
    world = World(issue(), tracker={**HANDOFF, "comments": comments})
    if how == "fails":
        world.tracker.comments_fail = TrackerErrorKind.PERMISSION
    else:

        async def hang(*_args: object, **_kwargs: object) -> None:
            await trio.sleep_forever()

        setattr(world.tracker, "comment", hang)  # noqa: B010

    async with world.life():
        await world.until(facts.TransitionCompleted)
        done_at = trio.current_time()

    assert done_at < 5
    assert trio.current_time() - done_at <= EFFECTS_GRACE
    if how == "fails":
        told = [(f.lifecycle, f.result) for f in world.of(facts.CommentCompleted)]
        assert told == [("dispatch", "error"), ("completion", "error")]


@pytest.mark.parametrize("made", [True, False])
async def test_a_comment_that_a_killed_daemon_may_have_made_is_made_once(
    clock: MockClock, made: bool
) -> None:
    """The next life looks for it, and makes it only where it is not there."""
    world = World(issue(), tracker={**HANDOFF, "comments": {"on_completion": True}})
    healthy = world.tracker.comment
    asked = trio.Event()

    async def cut_off(*args: Any, **kwargs: Any) -> None:
        if made:
            await healthy(*args, **kwargs)
        asked.set()
        await trio.sleep_forever()

    setattr(world.tracker, "comment", cut_off)  # noqa: B010
    async with world.life_cut_short():
        await asked.wait()
    (due,) = (await world.store.recover()).comments
    setattr(world.tracker, "comment", healthy)  # noqa: B010
    async with world.life():
        await world.until(facts.CommentCompleted)

    assert (due.lifecycle, due.body) == (
        "completion",
        f"The run ended after 1 turn: it took all its turns.\n\n{WORKSPACE}",
    )
    assert world.tracker.remarks("a") == (due.body,)
    assert (await world.store.recover()).comments == ()


async def test_a_comment_that_was_made_is_forgotten_once_records_can_be_written(
    clock: MockClock,
) -> None:
    """Else each later daemon would look for it, and make it again where a person has removed it."""
    world = World(issue(), tracker={**HANDOFF, "comments": {"on_completion": True}})
    healthy = world.tracker.comment

    async def made_as_the_disk_fills(*args: Any, **kwargs: Any) -> None:
        await healthy(*args, **kwargs)
        world.store.failing = StoreError("the disk is full")

    setattr(world.tracker, "comment", made_as_the_disk_fills)  # noqa: B010
    async with world.life():
        await world.until(facts.CommentCompleted)
        await trio.sleep(58)
        world.store.failing = None
        due = len((await world.store.recover()).comments)
        await trio.sleep(60)
        left = (await world.store.recover()).comments

    assert due == 1
    assert left == ()
