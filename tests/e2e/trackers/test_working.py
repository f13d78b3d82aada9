"""The daemon at work on the issues of each tracker over HTTP: the whole way, and who sees what."""

from __future__ import annotations

import json
import sys

import pytest
import trio

from sortie.model import Blocker
from tests.e2e.conftest import Start
from tests.e2e.place import PATIENCE, Place
from tests.e2e.test_secrets import KEEPER, telltales, watch_command_lines
from tests.e2e.trackers.conftest import Environ, statuses, write
from tests.e2e.trackers.worlds import HANDOFF, VARIABLE, WORLDS, TrackerWorld

SAID = ["Sortie started", "The run"]


async def until_said(world: TrackerWorld, name: str, count: int) -> list[str]:
    """Wait until so many comments are on an issue."""
    with trio.fail_after(PATIENCE):
        while len(said := await world.said(name)) < count:
            await trio.sleep(0.05)
    return said


async def test_issues_are_worked_on_from_the_first_poll_to_the_clean_up(
    place: Place, start: Start, world: TrackerWorld, environ: Environ, nursery: trio.Nursery
) -> None:
    """Dispatch, in progress, comments, handoff; an issue that is blocked waits until the other is
    done, whose workspace goes then. The token is seen by nobody but the tracker: no log, answer,
    command line, file, agent or hook has it."""
    first = world.put("A-1")
    second = world.put("A-2", blocked_by=(Blocker(identifier="A-1"),))
    write(
        place,
        world,
        {"on_dispatch": True, "on_completion": True},
        agent={"command": [sys.executable, str(KEEPER)]},
        hooks={"before_run": "env > ../../hook.txt"},
    )
    place.loaded = None  # whose command lines are looked at
    seen: set[str] = set()
    done = trio.Event()

    async with start("--log-level", "debug", KEEPER_SECONDS="0.5", **environ) as daemon:
        nursery.start_soon(watch_command_lines, seen, done)
        await daemon.line("issue.moved", issue=first, lifecycle="handoff")
        said = await until_said(world, "A-1", 2)
        handed_off = (await world.read("A-1")).state
        given = json.loads((place.workspaces / first / "given.json").read_text())
        early = daemon.lines("run.started", issue=second)
        await world.finish("A-1")
        await daemon.line("issue.moved", issue=second, lifecycle="handoff")
        assert (await place.sortie("refresh", **environ)).code == 0
        await daemon.line("workspace.removed", issue=first)
        pages = [await daemon.get(path) for path in ("/metrics", "/api/v1/state", "/readyz")]
        done.set()

    moves = [line["state"] for line in daemon.lines("issue.moved", issue=first)]
    assert (moves, handed_off) == (["In Progress", HANDOFF], HANDOFF)
    assert (said, early) == (SAID, [])
    assert await until_said(world, "A-2", 2) == SAID
    assert VARIABLE not in given["environ"]
    assert VARIABLE not in (place.root / "hook.txt").read_text()
    for text in (json.dumps(daemon.log), *(page.text for page in pages), *seen):
        assert world.token not in text
    assert telltales(place.root, world.token) == []


@pytest.mark.parametrize(
    "world",
    [pytest.param(k, marks=() if k == "github" else pytest.mark.full) for k in WORLDS],
    indirect=True,
)
async def test_a_dead_token_that_looks_like_an_empty_tracker_ends_no_run(
    place: Place, start: Start, world: TrackerWorld, environ: Environ
) -> None:
    """What is not seen any more is not gone: the run goes on, and is handed off afterwards."""
    name = world.put("A-1", "delay 4")
    write(place, world, {"on_completion": True})

    async with start("--log-level", "debug", **environ) as daemon:
        await daemon.line("agent.launched")
        world.hide(True)
        seen, failed = len(daemon.log), len(daemon.lines("tracker.failed"))
        await daemon.line("tracker.failed", nth=failed + 6, operation="fetch_by_ids")
        stopped = [line for line in daemon.log[seen:] if line["event"] == "run.stopping"]
        world.hide(False)
        await daemon.line("issue.moved", issue=name, lifecycle="handoff")
        said = await until_said(world, "A-1", 1)
    ended = await statuses(place, environ)

    assert stopped == []
    assert said == ["The run"]
    assert ended == ["succeeded"]
    assert (await world.read("A-1")).state == HANDOFF
