"""A daemon that is killed at each request of a delivery: to the forge, and to the tracker."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Start
from tests.e2e.daemon import Daemon
from tests.e2e.forged import HOOK, Forged, forge_of, make_bare
from tests.e2e.place import Place
from tests.e2e.trackers.conftest import write
from tests.e2e.trackers.worlds import HANDOFF, VARIABLE, WORLDS, TrackerWorld
from tests.forges.service import ONE_KIND, PATH, TOKEN
from tests.trackers.server.exchange import Received
from tests.trackers.server.faults import Reset
from tests.trackers.server.serving import TestServer
from tests.workspaces.git_http import GitServer, git_server

REQUESTS = 17
"""A delivery with its comment and its handoff has fewer requests, at each forge."""

PUSH = "POST .*/git-receive-pack$"
OPENING = "POST .*/(pulls|merge_requests)$"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[TrackerWorld]:
    """A tracker over HTTP."""
    async with WORLDS["github"](tmp_path) as opened:
        yield opened


@pytest.fixture(params=ONE_KIND)
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Forged, GitServer]]:
    """A forge of each kind, with everything that a pull request can have, and its git."""
    root = tmp_path / "forge"
    bare = make_bare(root)
    with (
        git_server(root, TOKEN) as remote,
        forge_of(request.param, bare, f"{remote.url}/{PATH}.git") as forged,
    ):
        people = {"reviewers": ["ann"], "assignees": ["bob"]}
        forged.blocks["forge"] = {**forged.blocks["forge"], **people}
        yield forged, remote


class Trap:
    """Kills a daemon at a request after its agent has ended: the nth, or the first like a pattern.

    It is dead before the request is answered, which was performed or was not. ``seen`` are all
    requests up to there.
    """

    def __init__(self, place: Place, daemon: Daemon, at: int | str, *, performed: bool) -> None:
        self._place, self._daemon, self._at, self._performed = place, daemon, at, performed
        self.seen: list[str] = []
        self.sprung = False
        self.is_set = True

    def set_at(self, server: TestServer) -> None:
        """Have a server's requests looked at."""

        def before(request: Received) -> None:
            asked = f"{request.method} {request.path}"
            if self._counts() and self._is_at(asked):
                server.inject(Reset(performed=self._performed))
                self._spring()

        server.before = before

    def set_at_git(self, server: GitServer) -> None:
        """Have the requests of git looked at, where a pattern says which."""

        def look(asked: str) -> None:
            if self._counts() and isinstance(self._at, str) and re.search(self._at, asked):
                self._spring()

        if self._performed:
            server.after = look
        else:
            server.before = look

    def _counts(self) -> bool:
        return self.is_set and bool(self._place.agents("stop"))

    def _is_at(self, asked: str) -> bool:
        self.seen.append(asked)
        if isinstance(self._at, int):
            return len(self.seen) == self._at
        return re.search(self._at, asked) is not None

    def _spring(self) -> None:
        self.sprung, self.is_set = True, False
        self._daemon.kill()


KILLS = [
    pytest.param(OPENING, True, id="opened"),
    pytest.param("POST .*/statuses/", False, id="status", marks=pytest.mark.full),
    pytest.param(PUSH, False, id="push", marks=pytest.mark.full),
    pytest.param(PUSH, True, id="pushed"),
    pytest.param(1, False, id="first"),
    *(
        pytest.param(at, performed, marks=pytest.mark.full)
        for at in range(1, REQUESTS + 1)
        for performed in (False, True)
        if (at, performed) != (1, False)
    ),
]


@pytest.mark.parametrize(("at", "performed"), KILLS)
async def test_a_kill_at_any_request_leaves_one_of_everything(
    place: Place,
    start: Start,
    world: TrackerWorld,
    servers: tuple[Forged, GitServer],
    at: int | str,
    performed: bool,
) -> None:
    """One pull request with its labels and people, and what the agent said, one status, one
    comment on the issue that names the pull request, one handoff; and no agent works again."""
    forged, remote = servers
    world.put("A-1")
    blocks = {**forged.blocks, "hooks": {"before_run": HOOK}}
    write(place, world, polling={"interval_ms": 3_600_000}, **blocks)
    environ = {VARIABLE: world.token, "FORGE_TOKEN": TOKEN, "KIRO_SIM_SAY": "It is mended."}

    async def is_over() -> bool:
        return daemon.process.returncode is not None or _is_told(daemon)

    async def is_handed_off() -> bool:
        return (await world.read("A-1")).state == HANDOFF and bool(await world.said("A-1"))

    async with start("--log-level", "debug", **environ) as daemon:
        trap = Trap(place, daemon, at, performed=performed)
        for server in (world.server, forged.server):
            trap.set_at(server)
        trap.set_at_git(remote)
        await daemon.until(is_over)
        trap.is_set = False
    async with start("--log-level", "debug", **environ) as again:
        await again.until(is_handed_off)
        await again.ready()

    assert isinstance(at, int) or trap.sprung
    assert trap.sprung or len(trap.seen) < REQUESTS
    (request,) = forged.service.requests
    assert "> It is mended." in request.body
    assert request.labels == ["sortie"]
    assert request.assignees == ["bob"]
    assert request.reviewers == ["ann"]
    assert list(forged.service.statuses) == [(forged.service.head(request.branch), "sortie/verify")]
    (comment,) = (await world.read("A-1")).comments
    assert f"/pulls/{request.number}" in comment.body
    assert len(place.agents()) == 1


def _is_told(daemon: Daemon) -> bool:
    """Tell whether the issue is handed off and the pull request named on it."""
    handoffs = daemon.lines("issue.moved", lifecycle="handoff")
    return bool(handoffs and daemon.lines("comment.made"))
