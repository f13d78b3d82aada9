"""Live updates: only what has changed, and nothing where nothing has."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import trio
import trio.testing
from msgspec.structs import replace

from sortie.web.broadcaster import Broadcaster
from sortie.web.dashboard.board import board
from sortie.web.dashboard.painter import Painter
from sortie.web.dashboard.pieces import PageFeed, Piece
from sortie.web.state import StateView
from tests.web.dashboard import states
from tests.web.dashboard.served import World


def feed_of(world: World, operator: bool = False) -> PageFeed:
    return PageFeed(
        look=lambda: board(world.look(), world.health, world.activity),
        paint=Painter(frozenset).paint,
        clock=states.NOW.timestamp,
        operator=operator,
    )


def told_after(change: Callable[[StateView], StateView]) -> dict[str, Any]:
    """Return what is told of one change of a busy daemon."""
    world = World()
    feed = feed_of(world)
    feed.changes()
    world.state = change(world.state)
    messages = feed.changes()
    assert [message.event for message in messages] == ["page"]
    told: dict[str, Any] = json.loads(messages[0].data)
    return told


def test_nothing_is_told_where_nothing_changed() -> None:
    """Also not because time passes: browsers count by themselves."""
    world = World()
    feed = feed_of(world)

    first = feed.changes()
    world.state = dataclasses.replace(world.state, generated_at=states.ago(-30))
    second = feed.changes()

    assert (first, second) == ((), ())


def test_a_line_of_output_changes_one_cell() -> None:
    """What an agent says is told by itself, without its row."""

    def speak(state: StateView) -> StateView:
        first, *rest = state.running
        return dataclasses.replace(
            state, running=(dataclasses.replace(first, last_message="Hello"), *rest)
        )

    told = told_after(speak)

    assert list(told["set"]) == ["s:run-1"]
    assert "Hello" in told["set"]["s:run-1"]
    assert told["order"] == {}


def test_a_turn_changes_one_row_with_its_words() -> None:
    """A row that is told has its words in it, and they are not told again."""

    def go_on(state: StateView) -> StateView:
        first, *rest = state.running
        return dataclasses.replace(
            state, running=(dataclasses.replace(first, turn=8, last_message="Turn 8"), *rest)
        )

    told = told_after(go_on)

    assert list(told["set"]) == ["r:run-1"]
    assert "Turn 8" in told["set"]["r:run-1"]


def test_an_issue_that_goes_leaves_its_list() -> None:
    """The list is told in its new order, with the counts that have changed."""

    def let_go(state: StateView) -> StateView:
        counts = dataclasses.replace(state.counts, held=1)
        return dataclasses.replace(state, held=state.held[:1], counts=counts)

    told = told_after(let_go)

    assert set(told["set"]) == {"summary", "count-held"}
    assert told["order"] == {"held-rows": ["h:id-h1"]}


def test_only_operators_are_told_of_buttons() -> None:
    """The stream of visitors holds no command."""
    world = World()

    (visitor,) = feed_of(world).whole()
    (operator,) = feed_of(world, operator=True).whole()

    assert b"data-confirm" not in visitor.data
    assert b"data-confirm" in operator.data


async def test_ten_who_watch_are_painted_for_once(autojump_clock: trio.testing.MockClock) -> None:
    """However many follow, a change is found and painted once, and all get the same bytes."""
    world, painted = World(), []

    class Counting(Painter):
        def paint(self, piece: Piece, now: float, operator: bool) -> str:
            painted.append(piece.id)
            return super().paint(piece, now, operator)

    feed = replace(feed_of(world), paint=Counting(frozenset).paint)
    broadcaster = Broadcaster(feed, "life")
    first = broadcaster.look_now()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(broadcaster.run)
        with ExitStack() as stack:
            everybody = [stack.enter_context(broadcaster.listening(first)) for _ in range(10)]
            run, *rest = world.state.running
            world.state = dataclasses.replace(
                world.state, running=(dataclasses.replace(run, turn=8), *rest)
            )
            looks = world.looks
            broadcaster.notify()
            blocks = [await each.next_block() for each in everybody]
        nursery.cancel_scope.cancel()

    assert len({id(block) for block in blocks}) == 1
    assert painted == ["r:run-1"]
    assert world.looks == looks + 1
