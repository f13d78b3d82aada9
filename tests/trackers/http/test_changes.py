"""A list that is kept up to date by asking what has changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
import trio
import trio.testing

from sortie.model import TrackerError, TrackerErrorKind
from sortie.trackers.http.changes import SWEEP, ChangingList

THEN = datetime(2026, 11, 22, 10, tzinfo=UTC)


@dataclass(frozen=True)
class Thing:
    """Something with a name and the minute of its last change."""

    name: str
    minute: int
    text: str = ""


@dataclass
class World:
    """Things as they are, and how they were asked for."""

    things: dict[str, Thing] = field(default_factory=dict)
    asked: list[object] = field(default_factory=list)
    fails: bool = False
    takes: float = 0.0
    meanwhile: Callable[[], None] | None = None
    shown: dict[str, Thing] = field(default_factory=dict)  # as it stood when its page was read
    kept: ChangingList[Thing] = field(
        default_factory=lambda: ChangingList(
            lambda thing: thing.name, lambda thing: THEN + timedelta(minutes=thing.minute)
        )
    )

    def put(self, *things: Thing) -> None:
        """Add or change things."""
        self.things |= {thing.name: thing for thing in things}

    async def whole(self) -> list[Thing]:
        """Answer with all."""
        self._ask("whole")
        await trio.sleep(self.takes)
        if self.meanwhile is not None:
            self.meanwhile()
        return list({**self.things, **self.shown}.values())

    async def since(self, time: datetime) -> list[Thing]:
        """Answer with what has changed since."""
        self._ask((time - THEN) / timedelta(minutes=1))
        return [t for t in self.things.values() if THEN + timedelta(minutes=t.minute) >= time]

    def _ask(self, what: object) -> None:
        self.asked.append(what)
        if self.fails:
            raise TrackerError(TrackerErrorKind.UNAVAILABLE, "down")

    async def refresh(self, now: float, scope: str = "open") -> set[str]:
        """Bring the list up to date and return its names."""
        return set(await self.kept.refresh(scope, now, self.whole, self.since))


async def test_changes_are_asked_for_with_an_overlap() -> None:
    """From two minutes before the latest one that was seen, and from there until a later one is
    seen, so that the same question has the same ETag."""
    world = World()
    world.put(Thing("a", 1), Thing("b", 10))

    await world.refresh(0)
    await world.refresh(30)
    await world.refresh(60)
    world.put(Thing("c", 20))
    names = await world.refresh(90)
    await world.refresh(120)

    assert world.asked == ["whole", 8.0, 8.0, 8.0, 18.0]
    assert names == {"a", "b", "c"}


async def test_what_changes_while_a_slow_answer_is_read_is_asked_for(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """An issue that changes after its page was read, before a later change on a later page."""
    world = World(takes=300)
    world.put(Thing("a", 1))

    def change() -> None:
        world.put(Thing("a", 26, "changed"), Thing("b", 30))
        world.shown = {"a": Thing("a", 1)}

    world.meanwhile = change
    await world.refresh(0)
    world.takes, world.meanwhile, world.shown = 0.0, None, {}
    await world.refresh(330)
    await world.refresh(360)

    assert world.asked == ["whole", 30 - 4 - 2, 28.0]
    assert world.kept.items["a"].text == "changed"


async def test_what_was_removed_is_known_after_a_sweep() -> None:
    """Which comes in time, and early where the list is of something else, or told to."""
    world = World()
    world.put(Thing("a", 1), Thing("b", 2))
    await world.refresh(0)
    del world.things["a"]

    seen = [await world.refresh(now) for now in (30, SWEEP - 1, SWEEP)]
    world.kept.forget()
    await world.refresh(SWEEP + 1)
    await world.refresh(SWEEP + 2, "all")

    assert seen == [{"a", "b"}, {"a", "b"}, {"b"}]
    assert [asked for asked in world.asked if asked == "whole"] == ["whole"] * 4


async def test_an_answer_that_fails_changes_nothing() -> None:
    """Not even when the next one is due."""
    world = World()
    world.put(Thing("a", 1))
    await world.refresh(0)
    world.fails = True
    for now in (30, SWEEP):
        with pytest.raises(TrackerError):
            await world.refresh(now)
    known = set(world.kept.items)
    world.fails = False
    world.put(Thing("b", 1))

    assert known == {"a"}
    assert await world.refresh(SWEEP + 30) == {"a", "b"}


async def test_the_same_thing_is_the_same_object() -> None:
    """So that nobody looks at it again."""
    world = World()
    world.put(Thing("a", 1))
    await world.refresh(0)
    first = world.kept.items["a"]
    world.put(Thing("a", 1))
    await world.refresh(30)
    await world.refresh(SWEEP)

    assert world.kept.items["a"] is first


async def test_what_another_answer_told_is_taken_over() -> None:
    """Of what the list has; what is gone is forgotten."""
    world = World()
    world.put(Thing("a", 1), Thing("b", 1))
    await world.refresh(0)

    world.kept.put(Thing("a", 5, "later"))
    world.kept.put(Thing("c", 5))
    world.kept.drop("b")

    assert dict(world.kept.items) == {"a": Thing("a", 5, "later")}


async def test_an_empty_list_is_asked_for_whole() -> None:
    """There is no time to ask from; the first thing in it is found."""
    world = World()
    await world.refresh(0)
    world.put(Thing("a", 1))

    assert await world.refresh(30) == {"a"}
    assert world.asked == ["whole", "whole"]
