"""A place whose issues are those of a tracker over HTTP, each kind in turn."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.place import Place
from tests.e2e.trackers.worlds import VARIABLE, WORLDS, TrackerWorld

Environ = dict[str, Any]


OFTEN = frozenset({"github", "jira"})
PARAMS = [pytest.param(name, marks=() if name in OFTEN else pytest.mark.full) for name in WORLDS]
"""A daemon asks all trackers alike, and ``tests/contract/test_tracker.py`` tries each of them."""


@pytest.fixture(params=PARAMS)
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[TrackerWorld]:
    """Each tracker over HTTP that there is."""
    async with WORLDS[request.param](tmp_path) as opened:
        yield opened


@pytest.fixture
def environ(world: TrackerWorld) -> Environ:
    """The tracker's token, where a daemon finds it."""
    return {VARIABLE: world.token}


def write(place: Place, world: TrackerWorld, comments: Any = None, **blocks: Any) -> None:
    """Write a workflow that works on the world's issues."""
    changes: dict[str, Any] = {**blocks, "tracker": {**world.settings, "comments": comments or {}}}
    if world.block:
        changes[str(world.keys["kind"])] = world.block
    place.write_workflow(**changes)


async def statuses(place: Place, environ: Environ) -> list[str]:
    """Return how the recorded runs ended, newest first."""
    ran = await place.sortie("history", "--format", "json", **environ)
    assert (ran.code, ran.err) == (0, "")
    return [row["status"] for row in json.loads(ran.out)]
