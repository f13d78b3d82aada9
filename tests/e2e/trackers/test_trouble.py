"""Trackers over HTTP that are limited or down, and daemons that are killed while they ask them."""

from __future__ import annotations

import pytest
import trio

from tests.e2e.conftest import Start
from tests.e2e.daemon import Daemon
from tests.e2e.place import PATIENCE, Place
from tests.e2e.trackers.conftest import Environ, statuses, write
from tests.e2e.trackers.test_working import until_said
from tests.e2e.trackers.worlds import HANDOFF, TrackerWorld
from tests.trackers.server.exchange import Received
from tests.trackers.server.faults import Reset
from tests.trackers.server.serving import Hook

REQUESTS = 14
"""A handoff with its comment has fewer requests, of each tracker."""


@pytest.mark.full
async def test_limits_and_an_outage_leave_runs_alone_and_repeat_nothing(
    place: Place, start: Start, world: TrackerWorld, environ: Environ
) -> None:
    """The tracker is limited, then down, then back: the run under way goes on, its end is told
    once and its issue handed off once."""
    name = world.put("A-1", "delay 4")
    write(place, world, {"on_dispatch": True, "on_completion": True})

    async with start("--log-level", "debug", **environ) as daemon:
        await daemon.line("agent.launched")
        await until_said(world, "A-1", 1)
        world.rig.limit(1)
        await daemon.line("tracker.rests")
        world.server.stop()
        world.rig.recover()
        failed = len(daemon.lines("poll.failed"))
        await daemon.line("poll.failed", nth=failed + 2)
        world.rig.limit(2)
        world.server.start()
        await daemon.line("tracker.rests", nth=2)
        world.rig.recover()
        await daemon.line("issue.moved", issue=name, lifecycle="handoff")
        said = await until_said(world, "A-1", 2)
        await daemon.ready()
    ended = await statuses(place, environ)

    assert said == ["Sortie started", "The run"]
    assert (await world.read("A-1")).state == HANDOFF
    assert ended == ["succeeded"]


def killing(daemon: Daemon, place: Place, world: TrackerWorld, at: int, performed: bool) -> Hook:
    """Return what kills a daemon at its nth request after its agent has ended.

    It is dead before the request is answered, which was performed or was not.
    """
    count = 0

    def before(_request: Received) -> None:
        nonlocal count
        if not place.agents("stop"):
            return
        count += 1
        if count == at:
            world.server.before = lambda _request: None
            world.server.inject(Reset(performed=performed))
            daemon.kill()

    return before


KILLS = [
    pytest.param(at, performed, marks=() if (at, performed) == (3, True) else pytest.mark.full)
    for at in range(1, REQUESTS + 1)
    for performed in (False, True)
]


@pytest.mark.parametrize(("at", "performed"), KILLS)
async def test_a_kill_at_any_request_of_a_handoff_leaves_one_comment_and_one_state(
    place: Place,
    start: Start,
    world: TrackerWorld,
    environ: Environ,
    at: int,
    performed: bool,
) -> None:
    """Whatever the tracker has heard of the daemon that was killed, the next one brings it to the
    same end."""
    world.put("A-1")
    write(place, world, {"on_completion": True}, polling={"interval_ms": 3_600_000})

    async with start("--log-level", "debug", **environ) as daemon:
        world.server.before = killing(daemon, place, world, at, performed)
        await _killed_or_done(daemon)
        world.server.before = lambda _request: None
    async with start("--log-level", "debug", **environ) as again:
        with trio.fail_after(PATIENCE):
            while (await world.read("A-1")).state != HANDOFF:
                await trio.sleep(0.05)
        await until_said(world, "A-1", 1)
        await again.ready()
    said = await world.said("A-1")
    ended = await statuses(place, environ)

    assert said == ["The run"]
    assert (await world.read("A-1")).state == HANDOFF
    assert ended.count("succeeded") == 1


async def _killed_or_done(daemon: Daemon) -> None:
    """Wait until a daemon was killed, or has handed off and commented without being killed."""
    with trio.fail_after(PATIENCE):
        while daemon.process.returncode is None:
            if daemon.lines("issue.moved", lifecycle="handoff") and daemon.lines("comment.made"):
                return
            await trio.sleep(0.05)
