"""Jira for the suite of trackers: its service in this process, cloud and data center."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType

from msgspec.structs import replace

from sortie.model import Issue
from sortie.testing.tracker import STATES, OpenRig, Rig, context_of
from sortie.trackers import Tracker
from sortie.trackers.http.changes import SWEEP
from sortie.trackers.jira import ADAPTER
from sortie.trackers.jira.editions import Cloud, DataCenter
from sortie.trackers.jira.tracker import JiraTracker
from sortie.trackers.jira.tracker import opened as opened_tracker
from tests.trackers.jira.contracts import CloudContract, DataCenterContract
from tests.trackers.jira.server import API_KEY, PAT, Comment, JiraService, Record
from tests.trackers.server.aliases import AliasedTracker, Aliases, labelled
from tests.trackers.server.faults import Reset
from tests.trackers.server.people import CrowdRig
from tests.trackers.server.serving import TestServer, serving

PRIORITIES = {1: "Highest", 2: "High", 3: "Medium", 4: "Low"}


class JiraRig(CrowdRig):
    """The service and a tracker that asks it."""

    capabilities = ADAPTER.capabilities
    rights = ADAPTER.rights
    tells_edits = True
    keeps = frozenset({"priority", "assignee", "issue_type", "parent", "updated_at"})

    def __init__(
        self,
        service: JiraService,
        server: TestServer,
        tracker: Tracker,
        label_states: tuple[str, ...] = (),
    ) -> None:
        self._service = service
        self.crowd = service.crowd
        self._server = server
        self._aliases = Aliases(
            untold=frozenset({"url"}), label_states=label_states
        )  # it says where
        self._numbers: dict[str, int] = {}
        self._edition = Cloud() if service.cloud else DataCenter()
        self.tracker = AliasedTracker(tracker, self._aliases)

    def text(self, text: str) -> str:
        """See ConvertsTexts."""
        return self._edition.read_text(self._edition.write_text(text))

    def put(self, issue: Issue) -> None:
        number = self._number(issue.identifier)
        status, labels = labelled(issue, self._aliases.label_states)
        self._aliases.name(issue, str(10000 + number), f"PROJ-{number}")
        self._service.issues.pop(10000 + number, None)
        record = self._service.put(
            number,
            summary=issue.title,
            description=self._edition.write_text(issue.description),
            status=status,
            priority=PRIORITIES.get(issue.priority or 0),
            labels=labels,
            creator=issue.author,
            assignee=issue.assignee,
            issue_type=issue.issue_type,
            parent=issue.parent,
            links=[("Blocks", self._key(b.identifier)) for b in issue.blocked_by],
            created=issue.created_at,
            updated=issue.updated_at,
        )
        record.comments = [
            Comment(
                id=number * 100 + n,
                author=c.author,
                account=f"id-{c.author}",
                body=self._edition.write_text(c.body),
                created=c.created_at,
            )
            for n, c in enumerate(issue.comments)
        ]

    def number_of(self, issue_id: str) -> str:
        return str(self._id(issue_id))

    def lose(self, issue_id: str) -> None:
        del self._service.issues[self._id(issue_id)]
        self._service.index()

    def spoil(self, issue_id: str) -> None:
        self._record(issue_id).summary = None
        self._service.index()

    def fail(self) -> None:
        self._service.down = True

    def limit(self, seconds: int) -> None:
        self._service.limited = seconds

    def lose_answer(self, change: str) -> None:
        path = {"move": "transitions$", "comment": "comment$"}[change]
        if change == "move" and self._aliases.label_states:
            self._server.inject(Reset(performed=True), method="PUT", path="/issue/[0-9]+$")
        else:
            self._server.inject(Reset(performed=True), method="POST", path=path)

    def recover(self) -> None:
        self._service.down, self._service.limited = False, None

    def _number(self, identifier: str) -> int:
        return self._numbers.setdefault(identifier, len(self._numbers) + 1)

    def _key(self, identifier: str) -> str:
        key = f"PROJ-{self._number(identifier)}"
        return self._aliases.identifiers.setdefault(identifier, key)

    def _id(self, issue_id: str) -> int:
        return int(self._aliases.ids[issue_id])

    def _record(self, issue_id: str) -> Record:
        return self._service.issues[self._id(issue_id)]


LABEL_STATES = ("Check", "Review")
"""States of the suite that Jira has no status for in its variant with labels."""


def service_of_suite(*, cloud: bool, label_states: tuple[str, ...] = ()) -> JiraService:
    """Return a service with the statuses of the suite, but for those that are labels."""
    every = ("Todo", "In Progress", "Review", "Ready", "Check")
    working = [name for name in every if name not in label_states]
    finished = ("Done", "Dropped", "Shipped")
    statuses = {**dict.fromkeys(working, "new"), **dict.fromkeys(finished, "done")}
    return JiraService(cloud=cloud, statuses=statuses)


def contract_of(service: JiraService) -> CloudContract | DataCenterContract:
    """Return what exchanges with a service are held to."""
    return CloudContract() if service.cloud else DataCenterContract()


@asynccontextmanager
async def opened(
    server: TestServer,
    directory: Path,
    sweep: float = SWEEP,
    block: Mapping[str, object] = MappingProxyType({}),
    **keys: object,
) -> AsyncIterator[JiraTracker]:
    """Open a tracker of the project PROJ at a server."""
    service = server.service
    assert isinstance(service, JiraService)
    given = {
        "endpoint": server.url,
        "project": "PROJ",
        "api_key": API_KEY if service.cloud else PAT,
        **keys,
    }
    context = context_of(ADAPTER, block, directory, **given)
    async with opened_tracker(context, sweep) as tracker:
        yield tracker


@asynccontextmanager
async def _rig(
    directory: Path, *, cloud: bool, label_states: tuple[str, ...] = ()
) -> AsyncIterator[Rig]:
    service = service_of_suite(cloud=cloud, label_states=label_states)
    states = replace(STATES, labels=label_states)
    with serving(service, contract_of(service)) as server:
        async with opened(server, directory, states=states) as tracker:
            yield JiraRig(service, server, tracker, label_states)


RIGS: Mapping[str, OpenRig] = {
    "cloud": partial(_rig, cloud=True),
    "data-center": partial(_rig, cloud=False),
    "cloud-labels": partial(_rig, cloud=True, label_states=LABEL_STATES),
    "data-center-labels": partial(_rig, cloud=False, label_states=LABEL_STATES),
}
