"""GitLab for the suite of trackers: a project whose states are scoped labels, and a group."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from sortie.model import Blocker, Issue, state_key
from sortie.testing.tracker import STATES, OpenRig, Rig, context_of
from sortie.trackers import Tracker
from sortie.trackers.gitlab import ADAPTER
from tests.trackers.gitlab.server import gitlab
from tests.trackers.gitlab.service import GitLabService
from tests.trackers.gitlab.world import TOKEN, text_of
from tests.trackers.server.aliases import AliasedTracker, Aliases
from tests.trackers.server.faults import Reset
from tests.trackers.server.people import CrowdRig
from tests.trackers.server.serving import TestServer

TERMINAL = frozenset(map(state_key, ("Done", "Dropped", "Shipped")))


class GitLabRig(CrowdRig):
    """GitLab, and a client of it."""

    capabilities = ADAPTER.capabilities
    rights = ADAPTER.rights
    tells_edits = True
    keeps = frozenset({"url", "assignee", "parent"})

    def __init__(
        self, service: GitLabService, server: TestServer, tracker: Tracker, name: str, prefix: str
    ) -> None:
        self._service = service
        self.crowd = service.crowd
        self._server = server
        self._aliases = Aliases(untold=frozenset({"issue_type", "updated_at"}))
        self._name = name
        self._prefix = prefix
        self._numbers: dict[str, int] = {}
        service.web.labels += [f"{prefix}{name}" for name in STATES.named]
        self.tracker = AliasedTracker(tracker, self._aliases)

    def put(self, issue: Issue) -> None:
        iid = self._numbers.setdefault(issue.id, len(self._numbers) + 1)
        web = self._service.web
        self._aliases.name(issue, f"{web.id}:{iid}", f"{self._name}-{iid}")
        self._aliases.identifiers.setdefault("A-0", "&1")  # the only parents are epics
        self._service.put(
            iid,
            title=issue.title,
            description=issue.description or None,
            state="closed" if state_key(issue.state) in TERMINAL else "opened",
            labels=[*issue.labels, f"{self._prefix}{issue.state}"],
            author={"id": 8, "username": issue.author},
            assignees=[] if issue.assignee is None else [{"id": 9, "username": issue.assignee}],
            issue_type="issue",
            created_at=text_of(issue.created_at) if issue.created_at is not None else None,
            web_url=issue.url,
            epic=None if issue.parent is None else {"id": "3", "iid": "1", "title": "Epic"},
            user_notes_count=0,
        )
        web.notes[iid] = []
        for comment in issue.comments:
            fields: dict[str, Any] = {"author": {"id": 8, "username": comment.author}}
            if comment.created_at is not None:
                fields["created_at"] = text_of(comment.created_at)
            self._service.note(iid, comment.body, **fields)
        web.links[iid] = []
        for blocker in issue.blocked_by:
            self._block(iid, blocker)

    def _block(self, iid: int, blocker: Blocker) -> None:
        """Link an issue; what the suite knows of no issue for is one that cannot be read."""
        number = self._numbers.get(blocker.identifier)
        if number is None:
            number = self._numbers[blocker.identifier] = len(self._numbers) + 1
            self._aliases.identifiers[blocker.identifier] = f"{self._name}-{number}"
            self._service.put(number, state=None)
        self._service.link(iid, "is_blocked_by", number)

    def number_of(self, issue_id: str) -> str:
        return str(self._numbers[issue_id])

    def edit(self, issue_id: str, what: str, by: str, at: datetime) -> None:
        said = "changed the description" if what == "description" else "changed title from x to y"
        fields: dict[str, Any] = {
            "author": {"id": 8, "username": by},
            "created_at": text_of(at),
            "system": True,
        }
        self._service.note(self._numbers[issue_id], said, **fields)

    def lose(self, issue_id: str) -> None:
        self._service.lose(self._numbers[issue_id])

    def spoil(self, issue_id: str) -> None:
        self._service.put(self._numbers[issue_id], title=None, state=None)

    def fail(self) -> None:
        self._service.down = True

    def limit(self, seconds: int) -> None:
        self._service.retry_after = seconds

    def lose_answer(self, change: str) -> None:
        method = {"move": "PUT", "comment": "POST"}[change]
        self._server.inject(Reset(performed=True), method=method)

    def recover(self) -> None:
        self._service.down, self._service.retry_after = False, None


def _rig(block: Mapping[str, Any], project: str, name: str) -> OpenRig:
    @asynccontextmanager
    async def opened(directory: Path) -> AsyncIterator[Rig]:
        with gitlab() as (service, server):
            keys = {"endpoint": server.url, "project": project, "api_key": TOKEN}
            async with ADAPTER.open(context_of(ADAPTER, block, directory, **keys)) as tracker:
                yield GitLabRig(service, server, tracker, name, str(block.get("label_prefix", "")))

    return opened


RIGS: Mapping[str, OpenRig] = {
    "project": _rig({"label_prefix": "status::"}, "acme/web", "web"),
    "group": _rig({"scope": "group"}, "acme", "web"),
}
"""One project with states that are scoped labels, and all projects of a group."""
