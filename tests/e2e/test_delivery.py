"""From issues to pull requests: fifty of them, with the daemon killed at every step of the way."""

from __future__ import annotations

import json
import random
import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import trio

from tests.e2e.conftest import Start
from tests.e2e.daemon import Daemon
from tests.e2e.place import PROMPT, Place
from tests.e2e.remote import Fleet
from tests.forges.service import KINDS, PATH, TOKEN, ForgeService, forge_server
from tests.transports.ssh.sshd import requires_sshd
from tests.workspaces.git_http import GitServer, git_server
from tests.workspaces.remotes import git, make_remote

FEW = 6
MANY = 50


class Forged:
    """A repository behind git's HTTP server, and the forge that it is on."""

    def __init__(self, bare: Path, service: ForgeService, url: str, remote: GitServer) -> None:
        self.bare = bare
        self.service = service
        self.remote = remote
        self.base = git(bare, "rev-parse", "main")
        self.blocks: dict[str, Mapping[str, object]] = {
            "repository": {"url": f"{remote.url}/{PATH}.git", "credential": "$FORGE_TOKEN"},
            "forge": {"kind": service.kind, "endpoint": url, "labels": ["sortie"]},
            "verify": {"commands": ["test -e README && grep -q done-by-agent out.txt"]},
        }

    def require_delivered(self, names: list[str]) -> None:
        """Fail unless each issue has one branch and one pull request, and the base is untouched."""
        branches = git(self.bare, "for-each-ref", "--format=%(refname:short)", "refs/heads").split()
        assert sorted(branches) == sorted(["main", *(f"sortie/{name}" for name in names)])
        requests = Counter(one.branch for one in self.service.requests)
        assert requests == {f"sortie/{name}": 1 for name in names}
        assert git(self.bare, "rev-parse", "main") == self.base
        for name in names:
            head = git(self.bare, "rev-parse", f"sortie/{name}")
            assert git(self.bare, "show", f"{head}:out.txt") == f"done-by-agent {name}"
            assert git(self.bare, "rev-list", "--count", f"main..{head}") == "1"
            assert (head, "sortie/verify") in self.service.statuses


@pytest.fixture(params=KINDS)
def forged(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Forged]:
    """A forge of each kind."""
    root = tmp_path / "forge"
    bare = make_remote(root / "team")
    (root / PATH).with_suffix(".git").symlink_to(bare)
    git(bare, "config", "http.receivepack", "true")
    with (
        forge_server(request.param, bare) as (service, server),
        git_server(root, TOKEN) as remote,
    ):
        prefix = "/api/v3" if request.param == "github" else ""
        yield Forged(bare, service, f"{server.url}{prefix}", remote)
        assert server.violations == []


def add_issues(place: Place, count: int) -> list[str]:
    """Add issues whose agents leave a file in no commit."""
    names = [f"T-{number}" for number in range(1, count + 1)]
    for name in names:
        place.add_issue(name)
    return names


HOOK = 'printf "done-by-agent %s\\n" "$SORTIE_ISSUE_IDENTIFIER" >out.txt'
"""What an agent would do: it runs before the first turn of each run."""

SETTINGS: dict[str, Mapping[str, object]] = {
    "hooks": {"before_run": HOOK},
    "agent": {"max_concurrent_agents": 8, "max_retry_backoff_ms": 100},
    "kiro": {"trust_all_tools": True},
}


REVIEWED: dict[str, Mapping[str, object]] = SETTINGS | {"self_review": {"rounds": 0}}
APPROVES = '{"verdict": "approve", "findings": []}'
"""What the simulator says as a reviewer; as an agent it may say anything."""


async def until_all_are_handed_off(place: Place, names: list[str], within: float = 300) -> None:
    """Wait until every issue stands in the handoff state."""
    with trio.fail_after(within):
        while any(place.state_of(name) != "Human Review" for name in names):
            await trio.sleep(0.05)


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


STEPS = ("finished", "proven", "pushed", "delivered")


async def kill_at(daemon: Daemon, stage: str, luck: random.Random) -> None:
    """Kill a daemon at a step of some delivery, right away or a moment later."""
    with trio.move_on_after(10):
        await daemon.line("delivery.advanced", stage=stage, nth=luck.randrange(1, 4))
        await trio.sleep(luck.choice((0.0, 0.0, 0.01, 0.05)))
    daemon.signal(signal.SIGKILL)
    await daemon.exit_code()


async def survive(
    place: Place, start: Start, forged: Forged, names: list[str], kills: int, seed: int
) -> None:
    """Kill daemons at each step, over and over, then let one finish."""
    luck = random.Random(seed)
    environ = {"FORGE_TOKEN": TOKEN, "KIRO_SIM_SAY": APPROVES}
    for kill in range(kills):
        async with start(**environ) as daemon:
            await kill_at(daemon, STEPS[kill % len(STEPS)], luck)
    async with start(**environ) as daemon:
        await daemon.line("daemon.started")
        await until_all_are_handed_off(place, names)
    forged.require_delivered(names)


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
@pytest.mark.parametrize(
    ("count", "kills"), [(FEW, 4), pytest.param(MANY, 16, marks=pytest.mark.full)]
)
async def test_so_it_is_on_two_hosts(
    place: Place, start: Start, fleet: Fleet, forged: Forged, count: int, kills: int
) -> None:
    """With the hosts' own git."""
    fleet.add("one", "two")
    fleet.write_workflow(PROMPT, hosts=None, worker=None, **REVIEWED | forged.blocks)
    await survive(place, start, forged, add_issues(place, count), kills, seed=count + 1)
    fleet.require_nothing_local()
