"""Repositories whose work becomes pull requests, and daemons that are killed on the way."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import trio

from tests.e2e.conftest import Start
from tests.e2e.daemon import Daemon
from tests.e2e.place import Place
from tests.forges.service import PATH, TOKEN, ForgeService, forge_server
from tests.trackers.server.serving import TestServer
from tests.workspaces.remotes import git, make_remote


class Forged:
    """A repository at an address, and the forge that it is on."""

    def __init__(self, bare: Path, service: ForgeService, server: TestServer, url: str) -> None:
        self.bare = bare
        self.service = service
        self.server = server
        self.base = git(bare, "rev-parse", "main")
        endpoint = f"{server.url}{'/api/v3' if service.kind == 'github' else ''}"
        self.blocks: dict[str, Mapping[str, object]] = {
            "repository": {"url": url, "credential": "$FORGE_TOKEN"},
            "forge": {"kind": service.kind, "endpoint": endpoint, "labels": ["sortie"]},
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


def make_bare(root: Path) -> Path:
    """Make the forge's repository below a directory, where its address finds it."""
    bare = make_remote(root / "team")
    (root / PATH).with_suffix(".git").symlink_to(bare)
    git(bare, "config", "http.receivepack", "true")
    return bare


@contextmanager
def forge_of(kind: str, bare: Path, url: str) -> Iterator[Forged]:
    """Run a forge over a repository that has an address."""
    with forge_server(kind, bare) as (service, server):
        yield Forged(bare, service, server, url)
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


STEPS = ("finished", "proven", "pushed", "delivered")


async def kill_at(daemon: Daemon, stage: str, luck: random.Random) -> None:
    """Kill a daemon at a step of some delivery, right away or a moment later."""
    with trio.move_on_after(10):
        await daemon.line("delivery.advanced", stage=stage, nth=luck.randrange(1, 4))
        await trio.sleep(luck.choice((0.0, 0.0, 0.01, 0.05)))
    daemon.signal(signal.SIGKILL)
    await daemon.exit_code()


async def survive(
    place: Place,
    start: Start,
    forged: Forged,
    names: list[str],
    kills: int,
    seed: int,
    **environ: str,
) -> None:
    """Kill daemons at each step, over and over, then let one finish."""
    luck = random.Random(seed)
    for kill in range(kills):
        async with start(FORGE_TOKEN=TOKEN, KIRO_SIM_SAY=APPROVES, **environ) as daemon:
            await kill_at(daemon, STEPS[kill % len(STEPS)], luck)
    async with start(FORGE_TOKEN=TOKEN, KIRO_SIM_SAY=APPROVES, **environ) as daemon:
        await daemon.line("daemon.started")
        await until_all_are_handed_off(place, names)
    forged.require_delivered(names)
