"""The GitHub tracker for the suite of trackers, with a server in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from sortie.model import Issue, state_key
from sortie.testing.tracker import STATES, OpenRig, Rig, context_of
from sortie.trackers.github import ADAPTER
from sortie.trackers.github.tracker import GitHubTracker
from tests.trackers.github.graphql_service import GitHubContract
from tests.trackers.github.service import NAME, OWNER, PREFIX, TOKEN, GitHubService
from tests.trackers.github.shapes import a_label, a_user
from tests.trackers.server.aliases import AliasedTracker, Aliases
from tests.trackers.server.contract import OpenApiContract
from tests.trackers.server.faults import Reset
from tests.trackers.server.people import CrowdRig
from tests.trackers.server.serving import TestServer, serving

DESCRIPTION = Path(__file__).with_name("github.openapi.json.gz")
QUICK = {"change_gap_ms": 0}
TERMINAL = frozenset(map(state_key, ("Done", "Dropped", "Shipped")))


@contextmanager
def github(certificate: Path | None = None) -> Iterator[tuple[GitHubService, TestServer]]:
    """Run a GitHub whose exchanges are held to GitHub's own description."""
    service = GitHubService()
    contract = GitHubContract(OpenApiContract(DESCRIPTION, prefix=PREFIX))
    with serving(service, contract, certificate) as server:
        service.base = f"{server.url}{PREFIX}"
        service.clock = server.now
        for name in STATES.named:
            service.labels[name.casefold()] = a_label(service.repository, name)
        yield service, server


def keys_of(server: TestServer) -> dict[str, str]:
    """Return the keys of ``tracker`` for a server."""
    return {
        "endpoint": f"{server.url}{PREFIX}",
        "project": f"{OWNER}/{NAME}",
        "api_key": TOKEN,
    }


class GitHubRig(CrowdRig):
    """The server and a client of it."""

    capabilities = ADAPTER.capabilities
    rights = ADAPTER.rights
    tells_edits = True
    keeps = frozenset({"assignee", "issue_type", "parent", "updated_at"})

    def __init__(self, service: GitHubService, server: TestServer, tracker: GitHubTracker) -> None:
        self._service = service
        self.crowd = service.crowd
        self._server = server
        self.aliases = Aliases(untold=frozenset({"url"}))
        self.tracker = AliasedTracker(tracker, self.aliases)

    def put(self, issue: Issue) -> None:
        service = self._service
        number = self._number(issue)
        terminal = state_key(issue.state) in TERMINAL
        kind = None
        if issue.issue_type is not None:
            kind = {"id": 1, "node_id": "T_1", "name": issue.issue_type, "description": None}
        parent = {}
        if issue.parent is not None:
            self.aliases.identifiers[issue.parent] = f"{NAME}-999"
            parent = {"parent_issue_url": f"{service.repository}/issues/999"}
        service.put(
            number,
            names=[*issue.labels, issue.state],
            title=issue.title,
            body=issue.description,
            state="closed" if terminal else "open",
            user=None if issue.author is None else a_user(issue.author),
            assignees=[a_user(issue.assignee)] if issue.assignee else [],
            created_at=_text(issue.created_at),
            updated_at=_text(issue.updated_at),
            type=kind,
            **parent,
        )
        service.spoiled.discard(number)
        service.comments[number] = []
        for comment in issue.comments:
            service.say(number, comment.author, comment.body, comment.created_at)
        known = [b.identifier for b in issue.blocked_by]
        if known:
            self._block(number, known)

    def _block(self, number: int, names: list[str]) -> None:
        """Have an issue wait for the first of these; the others are hidden from us."""
        first, *hidden = names
        blocker = self._numbered(first)
        for name in hidden:
            self.aliases.identifiers[name] = f"{NAME}-{number}-hidden-blocker"
        updated = self._service.items[number]["updated_at"]
        self._service.block(number, blocker, hidden=len(hidden))
        self._service.items[number]["updated_at"] = updated

    def _number(self, issue: Issue) -> int:
        number = self._numbered(issue.id)
        self.aliases.name(issue, str(number), f"{NAME}-{number}")
        return number

    def _numbered(self, issue_id: str) -> int:
        if issue_id not in self.aliases.ids:
            self.aliases.ids[issue_id] = str(len(self.aliases.ids) + 1)
        return int(self.aliases.ids[issue_id])

    def number_of(self, issue_id: str) -> str:
        return self.aliases.ids[issue_id]

    def lose(self, issue_id: str) -> None:
        self._service.remove(int(self.aliases.ids[issue_id]))

    def spoil(self, issue_id: str) -> None:
        number = int(self.aliases.ids[issue_id])
        self._service.spoiled.add(number)
        self._service.change(number, title=None)

    def fail(self) -> None:
        self._service.down = True

    def limit(self, seconds: int) -> None:
        self._service.retry_after = seconds

    def lose_answer(self, change: str) -> None:
        path = {"move": "labels$", "comment": "comments$"}[change]
        self._server.inject(Reset(performed=True), method="POST", path=path)

    def recover(self) -> None:
        self._service.down, self._service.retry_after = False, None


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@asynccontextmanager
async def _rest(directory: Path) -> AsyncIterator[Rig]:
    with github() as (service, server):
        async with ADAPTER.open(
            context_of(ADAPTER, QUICK, directory, **keys_of(server))
        ) as tracker:
            assert isinstance(tracker, GitHubTracker)
            yield GitHubRig(service, server, tracker)


RIGS: Mapping[str, OpenRig] = {"rest": _rest}
