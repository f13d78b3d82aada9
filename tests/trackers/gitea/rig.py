"""The Gitea tracker for the suite of trackers, with a server in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from sortie.model import Issue, state_key
from sortie.testing.tracker import OpenRig, Rig, context_of
from sortie.trackers import Tracker
from sortie.trackers.gitea import ADAPTER
from tests.trackers.gitea.service import PROJECT, TOKEN, GiteaService
from tests.trackers.server.aliases import AliasedTracker, Aliases
from tests.trackers.server.faults import Reset
from tests.trackers.server.people import CrowdRig
from tests.trackers.server.serving import TestServer, serving

TERMINAL = frozenset(map(state_key, ("Done", "Dropped", "Shipped")))


class GiteaRig(CrowdRig):
    """The server and a client of it."""

    capabilities = ADAPTER.capabilities
    rights = ADAPTER.rights
    tells_edits = False
    keeps = frozenset({"assignee"})

    def __init__(self, service: GiteaService, server: TestServer, tracker: Tracker) -> None:
        self._service = service
        self.crowd = service.crowd
        self._server = server
        self._aliases = Aliases(untold=frozenset({"updated_at", "url"}))
        self._numbers: dict[str, int] = {}
        self.tracker = AliasedTracker(tracker, self._aliases)

    def _number(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers) + 1)

    def put(self, issue: Issue) -> None:
        number, service = self._number(issue.id), self._service
        self._aliases.name(issue, str(number), f"web-{number}")
        given: dict[str, object] = {} if issue.url is None else {"html_url": issue.url}
        if issue.created_at is not None:
            given["created_at"] = _text(issue.created_at)
        service.put(
            number,
            title=issue.title,
            body=issue.description,
            state="closed" if state_key(issue.state) in TERMINAL else "open",
            names=[*issue.labels, issue.state],
            user=None if issue.author is None else {"login": issue.author},
            assignees=None if issue.assignee is None else [{"login": issue.assignee}],
            **given,
        )
        service.comments[number] = []
        for comment in issue.comments:
            at = None if comment.created_at is None else _text(comment.created_at)
            service.say(number, comment.author, comment.body, at)
        service.dependencies[number] = []
        for blocker in issue.blocked_by:
            known = blocker.identifier in self._numbers
            other = self._number(blocker.identifier)
            if not known:  # one that cannot be read
                self._aliases.identifiers[blocker.identifier] = f"web-{other}"
                service.put(other, title=None)
            service.dependencies[number].append(other)

    def number_of(self, issue_id: str) -> str:
        return str(self._numbers[issue_id])

    def lose(self, issue_id: str) -> None:
        del self._service.issues[self._numbers[issue_id]]

    def spoil(self, issue_id: str) -> None:
        self._service.put(self._numbers[issue_id], title=None)

    def fail(self) -> None:
        self._service.down = True

    def limit(self, seconds: int) -> None:
        self._service.retry_after = seconds

    def lose_answer(self, change: str) -> None:
        path = {"move": r"/issues/\d+/labels", "comment": "/comments"}[change]
        self._server.inject(Reset(performed=True), method="POST", path=path)

    def recover(self) -> None:
        self._service.down, self._service.retry_after = False, None


def _text(time: datetime) -> str:
    return time.isoformat()


@asynccontextmanager
async def _http(directory: Path) -> AsyncIterator[Rig]:
    service = GiteaService()
    with serving(service) as server:
        service.clock = server.now
        keys = {"endpoint": server.url, "project": PROJECT, "api_key": TOKEN}
        async with ADAPTER.open(context_of(ADAPTER, {}, directory, **keys)) as tracker:
            yield GiteaRig(service, server, tracker)


RIGS: Mapping[str, OpenRig] = {"http": _http}
