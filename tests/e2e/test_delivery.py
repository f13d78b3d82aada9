"""From issues to pull requests: fifty of them, with the daemon killed at every step of the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Start
from tests.e2e.forged import (
    REVIEWED,
    SETTINGS,
    Forged,
    add_issues,
    forge_of,
    make_bare,
    survive,
    until_all_are_handed_off,
)
from tests.e2e.place import PROMPT, Place
from tests.e2e.remote import Fleet
from tests.forges.service import ONE_KIND, PATH, TOKEN
from tests.transports.ssh.sshd import requires_sshd
from tests.workspaces.git_http import git_server

pytestmark = pytest.mark.portless

FEW = 4
MANY = 50


@pytest.fixture(params=ONE_KIND)
def forged(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Forged]:
    """A forge of each kind, with git over HTTP."""
    root = tmp_path / "forge"
    bare = make_bare(root)
    with (
        git_server(root, TOKEN) as remote,
        forge_of(request.param, bare, f"{remote.url}/{PATH}.git") as forged,
    ):
        yield forged


async def test_issues_become_pull_requests(place: Place, start: Start, forged: Forged) -> None:
    """Each with its branch, its evidence and its status; the credential is nowhere."""
    place.write_workflow(PROMPT, **SETTINGS | forged.blocks)
    names = add_issues(place, FEW)

    async with start(FORGE_TOKEN=TOKEN) as daemon:
        await until_all_are_handed_off(place, names)
        log = str(daemon.log)

    forged.require_delivered(names)
    request = forged.service.requests[0]
    assert request.labels == ["sortie"]
    assert "exit 0" in request.body
    assert TOKEN not in log
    found = [
        file
        for file in place.root.rglob("*")
        if file.is_file()
        and forged.bare not in file.parents
        and TOKEN.encode() in file.read_bytes()
    ]
    assert found == []
    for line in place.agents():
        assert TOKEN not in str(line)


async def test_open_findings_stand_in_the_pull_request(
    place: Place, start: Start, forged: Forged
) -> None:
    """They hold nothing back; nothing that the reviewer had can push."""
    place.write_workflow(PROMPT, **REVIEWED | forged.blocks)
    names = add_issues(place, 1)
    finding = {"severity": "must", "path": "out.txt", "line": 1, "text": "It is too short."}
    says = json.dumps({"verdict": "request_changes", "findings": [finding]})

    async with start(FORGE_TOKEN=TOKEN, KIRO_SIM_SAY=says):
        await until_all_are_handed_off(place, names)

    forged.require_delivered(names)
    (request,) = forged.service.requests
    assert "**changes requested**, and not made:" in request.body
    assert "> must, `out.txt:1`:\n> It is too short." in request.body
    assert len(place.agents()) == 2
    assert TOKEN not in place.agents_log.read_text()


@pytest.mark.parametrize(
    ("count", "kills"), [(FEW, 4), pytest.param(MANY, 24, marks=pytest.mark.full)]
)
async def test_a_kill_at_any_step_repeats_nothing(
    place: Place, start: Start, forged: Forged, count: int, kills: int
) -> None:
    """No pull request twice, no commit lost, the base untouched, and each commit approved."""
    place.write_workflow(PROMPT, **REVIEWED | forged.blocks)
    await survive(place, start, forged, add_issues(place, count), kills, seed=count)
    told = [run["delivery"] for run in await place.history() if run["delivery"]]
    reviews = [each["review"] for each in told if each["stage"] == "delivered"]
    assert {review["verdict"] for review in reviews} == {"approve"}


@requires_sshd
@pytest.mark.full
@pytest.mark.parametrize(("count", "kills"), [(FEW, 4), (MANY, 16)])
async def test_so_it_is_on_two_hosts(
    place: Place, start: Start, fleet: Fleet, forged: Forged, count: int, kills: int
) -> None:
    """With the hosts' own git."""
    fleet.add("one", "two")
    fleet.write_workflow(PROMPT, hosts=None, worker=None, **REVIEWED | forged.blocks)
    await survive(place, start, forged, add_issues(place, count), kills, seed=count + 1)
    fleet.require_nothing_local()
