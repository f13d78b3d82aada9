"""A place whose agent answers what happens to its pull requests, on a forge with people."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trio

from tests.e2e.conftest import Start
from tests.e2e.place import Place
from tests.e2e.remote import SIMULATOR
from tests.forges.nouns import Request
from tests.forges.service import PATH, TOKEN, ForgeService, forge_server
from tests.workspaces.git_http import git_server
from tests.workspaces.remotes import commit, git, make_remote

Steps = tuple[tuple[str, dict[str, Any]], ...]
"""Lines of a daemon's log: the event and some of its fields."""

PROMPT = "{{ issue.identifier }}\n"
AGENT = """\
#!/bin/sh
# An agent that does what its prompt asks for.
case " $* " in *" chat "*) ;; *) exec {simulator} "$@" ;; esac
name=$(basename "$PWD")
printf '%s\\n=====\\n' "$*" >>"{root}/prompts-$name"
case "$*" in
  *"cannot be merged: it conflicts"*)
    git merge -q origin/main >&2 || {{ git checkout -q --ours . && git add -A; }}
    git commit -qm 'Merge main' >&2 || : ;;
  *"has failed."*) echo "$name mended" >"$name.txt" ;;
  *"Rename it"*) echo "$name renamed" >"$name.txt" ;;
  *"Why so"*) ;;
  *) [ -e "$name.txt" ] || echo "$name at first" >"$name.txt" ;;
esac
mkdir -p .sortie; echo done >.sortie/status
KIRO_SIM_NOTE=0 exec {simulator} "$@"
"""
REACTIONS: dict[str, object] = {
    "interval_ms": 1000,
    "max_interval_ms": 1000,
    "checks": {},
    "review": {"debounce_ms": 300},
    "conflicts": {},
    "commands": {},
    "merge": {"settle_ms": 500, "require": {"checks": ["ci"]}},
    "merged": {"state": "Done"},
}


class Reviewed:
    """A place, a forge with people, and the agent between them."""

    def __init__(
        self, place: Place, bare: Path, service: ForgeService, api: str, remote: str
    ) -> None:
        self.place = place
        self.bare = bare
        self.service = service
        self._blocks: dict[str, Mapping[str, object]] = {
            "repository": {"url": f"{remote}/{PATH}.git", "credential": "$FORGE_TOKEN"},
            "forge": {"kind": service.kind, "endpoint": api},
            "reactions": REACTIONS,
            "agent": {
                "command": str(place.root / "agent"),
                "max_retry_backoff_ms": 100,
                "max_concurrent_agents": 3,
            },
        }
        program = place.root / "agent"
        program.write_text(AGENT.format(root=place.root, simulator=SIMULATOR))
        program.chmod(0o755)
        service.permissions = {"ann": "write", "bob": "write"}
        service.people = ("ann", "bob", "mallory")
        service.labels = ("sortie", "needs-human", "sortie:fix")
        service.automatic = False
        service.required = ("ci",)
        self.write()

    def write(self, **blocks: Mapping[str, object]) -> None:
        """Write the workflow, with some blocks changed."""
        known = dict(self._blocks)
        for name, block in blocks.items():
            known[name] = {**known.get(name, {}), **block}
        self.place.write_workflow(PROMPT, **known)

    def prompts(self, name: str) -> list[str]:
        """Return what an issue's agent was told, turn by turn."""
        path = self.place.root / f"prompts-{name}"
        return path.read_text().split("\n=====\n")[:-1] if path.exists() else []

    def request(self, name: str) -> Request:
        """Return the one pull request of an issue."""
        (found,) = (one for one in self.service.requests if one.branch == f"sortie/{name}")
        return found

    def head(self, name: str) -> str:
        """Return the head of an issue's branch."""
        return git(self.bare, "rev-parse", f"sortie/{name}")

    async def until(self, what: Callable[[], object], within: float = 300) -> None:
        """Wait for something to be so; what is not there yet is not so."""
        with trio.fail_after(within):
            while not _holds(what):
                await trio.sleep(0.05)

    async def opened(self, name: str) -> Request:
        """Wait for a pull request whose issue is handed off."""
        await self.until(lambda: self.request(name))
        await self.until(lambda: self.place.state_of(name) == "Human Review")
        return self.request(name)

    async def merged(self, names: list[str], within: float = 300) -> None:
        """Be CI until all of these are merged and gone."""

        def all_done() -> bool:
            for name in names:
                head = git(self.bare, "rev-parse", "-q", "--verify", f"sortie/{name}", ok=False)
                if head and (head, "ci") not in {(c.commit, c.name) for c in self.service.made}:
                    self.service.set_check(head, "ci", "success")
            return all(
                self.place.state_of(name) == "Done"
                and self.request(name).state == "merged"
                and not (self.place.workspaces / name).exists()
                for name in names
            )

        await self.until(all_done, within)

    def push_to_main(self, file: str, text: str) -> None:
        """Push to the base as a person."""
        seed = self.bare.parent / "seed"
        git(seed, "fetch", "-q", "origin")
        git(seed, "checkout", "-q", "-B", "mine", "origin/main")
        commit(seed, file, text)
        git(seed, "push", "-q", "origin", "HEAD:main")

    def approve(self, name: str) -> None:
        """Approve as a person with the right to it, with a check that has succeeded."""
        self.service.review(self.request(name).number, "ann", "approved")


async def killed_at(start: Start, steps: Steps, kills: int) -> None:
    """Kill so many daemons, each a moment after a line of its log, in an order by chance."""
    luck = random.Random(kills)
    order = [steps[number % len(steps)] for number in range(kills)]
    luck.shuffle(order)
    for event, fields in order:
        async with start(FORGE_TOKEN=TOKEN) as daemon:
            with trio.move_on_after(10):
                await daemon.line(event, **fields)
                await trio.sleep(luck.choice((0.0, 0.0, 0.02, 0.1)))
            daemon.signal(signal.SIGKILL)
            await daemon.exit_code()


def _holds(what: Callable[[], object]) -> bool:
    try:
        return bool(what())
    except (ValueError, IndexError, AssertionError, FileNotFoundError):
        return False


@contextmanager
def reviewed_place(place: Place, kind: str) -> Iterator[Reviewed]:
    """Run a forge of a kind for a place."""
    root = place.root / "forge"
    bare = make_remote(root / "team")
    (root / PATH).with_suffix(".git").symlink_to(bare)
    git(bare, "config", "http.receivepack", "true")
    with forge_server(kind, bare) as (service, server), git_server(root, TOKEN) as remote:
        prefix = "/api/v3" if kind == "github" else ""
        yield Reviewed(place, bare, service, f"{server.url}{prefix}", remote.url)
        assert server.violations == []
