"""A tracker and a forge for games of failovers, which note who changed what, and when."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.forged import Forged, forge_of, make_bare
from tests.forges.service import PATH, TOKEN
from tests.trackers.github.rig import QUICK, github, keys_of
from tests.trackers.github.service import NAME, GitHubService
from tests.trackers.server.exchange import Received
from tests.trackers.server.serving import TestServer
from tests.workspaces.git_http import git_server
from tests.workspaces.remotes import git

TODO, WORKING, HANDOFF = "Todo", "In Progress", "Review"
_STATES = (TODO, WORKING, HANDOFF, "Done")
_TOKEN_VARIABLE = "TRACKER_TOKEN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A request that changes something: when it arrived (Unix time), from which address, and
    whether at the tracker or at the forge."""

    at: float
    client: str
    where: str
    asked: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """An issue that was moved, by a request."""

    number: int
    before: str
    after: str
    change: Change


@dataclass
class World:
    """``on_change`` is called in the server's thread with each request that changes something,
    before it is performed and after that."""

    tracker: GitHubService
    tracker_server: TestServer
    forged: Forged
    changes: list[Change] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    on_change: Callable[[Change, bool], object] = lambda _change, _performed: None
    _known: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Listen to both servers."""
        for where, server in (("tracker", self.tracker_server), ("forge", self.forged.server)):
            self._listen(where, server)

    def _listen(self, where: str, server: TestServer) -> None:
        def seen(request: Received, performed: bool) -> None:
            if request.method == "GET" or request.path.endswith("/graphql"):
                return
            asked = f"{request.method} {request.path}"
            change = Change(at=time.time(), client=request.client, where=where, asked=asked)
            if performed:
                self.changes.append(change)
                self._note_moves(change)
            self.on_change(change, performed)

        server.before = lambda request: seen(request, False)
        server.after = lambda request: seen(request, True)

    def _note_moves(self, change: Change) -> None:
        """A move is one label that is put on and another that is taken off; the last one counts."""
        for number in list(self._known):
            states = [name for name in self.tracker.names(number) if name in _STATES]
            before = self._known[number]
            if states and states != [before] and len(states) == 1:
                self._known[number] = states[0]
                moved = Move(number=number, before=before, after=states[0], change=change)
                self.moves.append(moved)

    def add(self, number: int, directives: str) -> None:
        """Add an issue whose text directs the simulator."""
        with self.tracker_server.lock:
            self._known[number] = TODO
            body = f"sim: {directives}"
            self.tracker.put(number, names=[TODO], title=f"Issue {number}", body=body)

    def state_of(self, number: int) -> str:
        """Return the state of an issue."""
        with self.tracker_server.lock:
            return self._known[number]

    @property
    def numbers(self) -> list[int]:
        """The numbers of all issues."""
        return list(self._known)

    def comments_on(self, number: int) -> list[str]:
        """Return what was said about an issue."""
        return [str(one["body"]) for one in self.tracker.comments[number]]

    def updates_of(self, number: int) -> list[str]:
        """Return the commits that the branch of an issue was set to, one for each push."""
        log = self.forged.bare / "logs/refs/heads" / self.branch(number)
        return [line.split()[1] for line in log.read_text().splitlines()] if log.exists() else []

    def branch(self, number: int) -> str:
        """Return the branch of an issue."""
        return f"sortie/{identifier(number)}"

    @property
    def blocks(self) -> dict[str, Mapping[str, object] | str]:
        """The blocks of a workflow that uses both."""
        keys = {**keys_of(self.tracker_server), "kind": "github", "api_key": f"${_TOKEN_VARIABLE}"}
        states = {
            "active_states": [TODO, WORKING],
            "terminal_states": ["Done"],
            "in_progress_state": WORKING,
            "handoff_state": HANDOFF,
            "comments": {"on_completion": True},
        }
        return {"tracker": {**keys, **states}, "github": QUICK, **self.forged.blocks}

    @property
    def environ(self) -> dict[str, str]:
        """The secrets that a daemon needs."""
        return {
            _TOKEN_VARIABLE: str(keys_of(self.tracker_server)["api_key"]),
            "FORGE_TOKEN": TOKEN,
        }


def identifier(number: int) -> str:
    """Return the identifier of an issue."""
    return f"{NAME}-{number}"


@contextmanager
def world(root: Path) -> Iterator[World]:
    """Give a tracker and a forge, with its git behind HTTP, below a directory."""
    bare = make_bare(root)
    git(bare, "config", "core.logAllRefUpdates", "true")
    with (
        github() as (tracker, server),
        git_server(root, TOKEN) as remote,
        forge_of("gitea", bare, f"{remote.url}/{PATH}.git") as forged,
    ):
        yield World(tracker, server, forged)
