"""Linear for the suite of trackers: one team, with small pages and with pages of the usual size."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sortie.model import Issue
from sortie.testing import tracker as tracker_suite
from sortie.testing.tracker import OpenRig, Rig, context_of
from sortie.trackers import Tracker
from sortie.trackers.linear import ADAPTER
from tests.trackers.linear.schema import GraphQLContract, schema
from tests.trackers.linear.service import API_KEY, STATES, LinearService, a_user
from tests.trackers.server.aliases import AliasedTracker, Aliases, labelled
from tests.trackers.server.faults import Reset
from tests.trackers.server.people import CrowdRig
from tests.trackers.server.serving import TestServer, serving


@contextmanager
def linear(
    certificate: Path | None = None, label_states: tuple[str, ...] = ()
) -> Iterator[tuple[LinearService, TestServer]]:
    """Run a Linear with one team, ENG, whose exchanges are held to its schema.

    It has no states of its own that are labels.
    """
    schema()  # parsed here, as that may take longer on a busy machine than a request may
    service = LinearService()
    service.add_team("ENG", [state for state in STATES if state[0] not in label_states])
    with serving(service, GraphQLContract(), certificate) as server:
        service.clock = server.now
        yield service, server


def keys_of(server: TestServer, **changes: Any) -> dict[str, Any]:
    """Return the keys of ``tracker`` for this server."""
    return {"endpoint": f"{server.url}/graphql", "project": "eng", "api_key": API_KEY} | changes


@asynccontextmanager
async def opened(
    server: TestServer, block: Mapping[str, Any] | None = None, **changes: Any
) -> AsyncIterator[Tracker]:
    """Open a tracker of this server, guarded by nobody."""
    context = context_of(ADAPTER, block or {}, Path("/"), **keys_of(server, **changes))
    async with ADAPTER.open(context) as tracker:
        yield tracker


class LinearRig(CrowdRig):
    """Linear, and a client of it."""

    capabilities = ADAPTER.capabilities
    rights = ADAPTER.rights
    tells_edits = True
    keeps = frozenset({"priority", "url", "assignee", "branch_name", "parent", "updated_at"})

    def __init__(
        self,
        service: LinearService,
        server: TestServer,
        tracker: Tracker,
        label_states: tuple[str, ...] = (),
    ) -> None:
        self._service = service
        self.crowd = service.crowd
        self._server = server
        self._aliases = Aliases(label_states=label_states)
        self.tracker = AliasedTracker(tracker, self._aliases)

    def put(self, issue: Issue) -> None:
        service = self._service
        state, labels = labelled(issue, self._aliases.label_states)
        linear_id = self._aliases.ids.get(issue.id) or str(uuid.uuid4())
        node = service.put(
            linear_id,
            title=issue.title,
            description=issue.description or None,
            state=state,
            priority=float(issue.priority or 0),
            url=issue.url or "",
            branchName=issue.branch_name or "",
            labels=labels,
            creator=issue.author and a_user(issue.author),
            assignee=issue.assignee and {"name": issue.assignee, "displayName": issue.assignee},
            parent=self._hidden(issue.parent) if issue.parent else None,
        )
        node["createdAt"], node["updatedAt"] = _text(issue.created_at), _text(issue.updated_at)
        self._aliases.name(issue, linear_id, node["identifier"])
        for comment_id, comment in list(service.comments.items()):
            if comment["issue_id"] == linear_id:
                del service.comments[comment_id]
        for remark in issue.comments:
            user = a_user(remark.author)
            at = _text(remark.created_at) if remark.created_at else None
            service.say(linear_id, remark.body, user=user, createdAt=at)
        node["inverse"].clear()
        for blocker in issue.blocked_by:
            self._hidden(blocker.identifier)
            service.block(linear_id, self._aliases.ids[blocker.identifier])

    def _hidden(self, name: str) -> dict[str, Any]:
        """Return the issue of that name; what the suite has not put cannot be read."""
        if name not in self._aliases.ids:
            node = self._service.put(title=" ", state="Backlog")
            self._aliases.ids[name] = node["id"]
            self._aliases.identifiers[name] = node["identifier"]
        return self._service.issues[self._aliases.ids[name]]

    def number_of(self, issue_id: str) -> str:
        return self._aliases.ids[issue_id]

    def lose(self, issue_id: str) -> None:
        self._service.trash(self._aliases.ids[issue_id])

    def spoil(self, issue_id: str) -> None:
        issue = self._service.issues[self._aliases.ids[issue_id]]
        issue["title"] = " "

    def fail(self) -> None:
        self._service.down = True

    def limit(self, seconds: int) -> None:
        self._service.retry_after = seconds

    def lose_answer(self, change: str) -> None:
        self._server.inject(Reset(performed=True), body=f"mutation Sortie{change.title()}")

    def recover(self) -> None:
        self._service.down, self._service.retry_after = False, None


def _text(time: datetime | None) -> str:
    assert time is not None
    return time.isoformat().replace("+00:00", "Z")


LABEL_STATES = ("Check", "In Progress", "Review")
"""States of the suite that the team does not have in the variant with labels."""


def _rig(block: Mapping[str, Any], label_states: tuple[str, ...] = ()) -> OpenRig:
    @asynccontextmanager
    async def rig(_directory: Path) -> AsyncIterator[Rig]:
        states = replace(tracker_suite.STATES, labels=label_states)
        with linear(label_states=label_states) as (service, server):
            for name in label_states:
                service.label(name)
            async with opened(server, block, states=states) as tracker:
                yield LinearRig(service, server, tracker, label_states)

    return rig


RIGS: Mapping[str, OpenRig] = {
    "pages": _rig({"page_size": 7}),
    "team": _rig({}),
    "labels": _rig({}, LABEL_STATES),
}
"""Small pages, those of the default, and some states that are labels."""
