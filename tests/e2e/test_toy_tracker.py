"""A tracker over HTTP in a package of its own, from the first poll to the last comment."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.e2e.conftest import Start
from tests.e2e.place import PATIENCE, Place, Ran
from tests.e2e.test_secrets import KEEPER, telltales, watch_command_lines
from tests.trackers.toy.server import API_KEY, PROJECT, ToyServer, serving

NEEDLE = "7c0ffee"
ENVIRON = {
    "PYTHONPATH": str(Path(__file__).parents[1] / "examples"),
    "TOY_KEY": API_KEY,
}


async def sortie(place: Place, *arguments: str) -> Ran:
    """Run a command that finds the toy tracker and its key."""
    return await place.sortie(*arguments, within=PATIENCE, **ENVIRON)


@pytest.fixture
def server() -> Iterator[ToyServer]:
    """The service, with three pages of issues that are none of ours."""
    with serving() as service:
        for number in range(5):
            service.put(f"T-{number + 10}", open=False)
        yield service


@pytest.fixture
def toy(place: Place, server: ToyServer) -> Place:
    """A place whose issues are the service's."""
    place.write_workflow(
        tracker={
            "kind": "toy",
            "endpoint": server.url,
            "project": PROJECT,
            "api_key": "$TOY_KEY",
            "comments": {"on_dispatch": True, "on_completion": True},
        },
        toy={"page_size": 2},
        agent={"command": [sys.executable, str(KEEPER)]},
    )
    return place


async def test_an_issue_is_worked_on_through_rate_limits(
    toy: Place, start: Start, server: ToyServer, nursery: trio.Nursery
) -> None:
    """It is polled, run, commented on and handed off, and no limit is run into twice; the key of
    the tracker is seen by nobody but the tracker."""
    toy.loaded = None  # whose command lines are looked at
    seen: set[str] = set()
    done = trio.Event()
    server.put("T-1", labels=["todo", "urgent"])
    server.limits = 1

    async with start("--log-level", "debug", KEEPER_SECONDS="1.5", **ENVIRON) as daemon:
        nursery.start_soon(watch_command_lines, seen, done)
        await daemon.line("tracker.rests", nth=1, seconds=1.0)
        await daemon.line("agent.launched")
        server.limits = 1
        await daemon.line("tracker.rests", nth=2)
        await daemon.line("issue.moved", issue="T-1", lifecycle="handoff")
        await daemon.line("comment.made", nth=2)
        page, state = await daemon.get("/metrics"), await daemon.get("/api/v1/state")
        done.set()
    given = json.loads((toy.workspaces / "T-1" / "given.json").read_text())
    history = json.loads((await sortie(toy, "history", "--format", "json")).out)

    item, comments = server.items["T-1"], server.comments["T-1"]
    assert (item["open"], item["labels"]) == (True, ["urgent", "Human Review"])
    assert [comment["body"].split()[:2] for comment in comments] == [
        ["Sortie", "started"],
        ["The", "run"],
    ]
    assert [row["status"] for row in history] == ["succeeded"]
    assert len(server.limited) == 2
    for limited in server.limited:
        early = [asked for at, asked in server.asked if 0.2 < at - limited < 0.9]
        assert early == []
    assert "TOY_KEY" not in given["environ"]
    for text in (json.dumps(daemon.log), page.text, state.text, json.dumps(history), *seen):
        assert NEEDLE not in text
    assert telltales(toy.root, NEEDLE) == []


async def test_a_change_that_the_tracker_tells_of_is_polled_at_once(
    toy: Place, start: Start, server: ToyServer
) -> None:
    """Nobody waits an hour for the next poll."""
    text = toy.workflow.read_text().replace('"interval_ms": 200', '"interval_ms": 3600000')
    toy.write_text(text)

    async with start("--log-level", "debug", **ENVIRON) as daemon:
        await daemon.line("poll.completed", candidates=0)
        server.put("T-1", labels=["Todo"])
        await daemon.line("run.started", issue="T-1")
        await daemon.line("issue.moved", issue="T-1", lifecycle="handoff")


async def test_looks_from_the_command_line_ask_the_same_tracker(
    toy: Place, server: ToyServer
) -> None:
    """``render`` and a dry run find its issues, and say in one line what keeps them from it."""
    server.put("T-1", labels=["Todo"], title="Mend the fence")
    toy.write_text(toy.workflow.read_text() + "{{ issue.title }}!\n")

    rendered = await sortie(toy, "render", "T-1")
    dry = await sortie(toy, "run", "--dry-run")
    unknown = await sortie(toy, "render", "T-9")
    server.put("T-1", title=None)
    spoiled = await sortie(toy, "render", "T-1")
    server.retry_after = 5
    limited = await sortie(toy, "run", "--dry-run")

    assert "Mend the fence!" in rendered.out
    assert (dry.code, dry.out.count("T-1")) == (0, 1)
    assert (unknown.code, unknown.err.count("\n")) == (1, 1)
    assert spoiled.err == "sortie: issue T-1 has no title; give it one\n"
    assert (limited.code, limited.err.count("\n")) == (1, 1)
    assert "429" in limited.err


async def test_what_the_tracker_needs_is_told_by_validate_and_run(toy: Place) -> None:
    """A missing key is a located problem, and no traceback."""
    text = toy.workflow.read_text().replace('"project"', '"query_filter"')
    toy.write_text(text)

    validated = await sortie(toy, "validate")
    ran = await sortie(toy, "run")

    problem = "WORKFLOW.md:4:5: tracker.project: is required by the toy tracker"
    assert problem in validated.out
    assert "warning: tracker.query_filter: means nothing to the toy tracker" in validated.out
    assert problem in ran.err
    assert (validated.code, ran.code) == (1, 1)
    assert "Traceback" not in ran.err
