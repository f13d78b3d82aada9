"""The toy tracker for the suite of trackers, with its service in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from toy_tracker import ADAPTER

from sortie.model import Issue, state_key
from sortie.testing.tracker import OpenRig, Rig, context_of
from sortie.trackers import Tracker
from tests.trackers.toy.server import API_KEY, PROJECT, ToyServer, serving

TERMINAL = frozenset(map(state_key, ("Done", "Dropped", "Shipped")))


class ToyRig:
    """The service and a client of it."""

    capabilities = ADAPTER.capabilities
    keeps = frozenset({"url", "assignee", "updated_at"})

    def __init__(self, server: ToyServer, tracker: Tracker) -> None:
        self._server = server
        self.tracker = tracker

    def put(self, issue: Issue) -> None:
        self._server.put(
            issue.id,
            key=issue.identifier,
            title=issue.title,
            body=issue.description,
            url=issue.url,
            author=issue.author,
            assignee=issue.assignee,
            labels=[*issue.labels, issue.state],
            open=state_key(issue.state) not in TERMINAL,
            created_at=_text(issue.created_at),
            updated_at=_text(issue.updated_at),
            comments=[
                {"author": c.author, "body": c.body, "created_at": _text(c.created_at)}
                for c in issue.comments
            ],
        )

    def lose(self, issue_id: str) -> None:
        del self._server.items[issue_id]

    def spoil(self, issue_id: str) -> None:
        self._server.put(issue_id, title=None)

    def fail(self) -> None:
        self._server.down = True

    def limit(self, seconds: int) -> None:
        self._server.retry_after = seconds

    def lose_answer(self, change: str) -> None:
        self._server.lost_answers.add({"move": "PATCH", "comment": "POST"}[change])

    def recover(self) -> None:
        self._server.down, self._server.retry_after = False, None


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


@asynccontextmanager
async def _http(directory: Path) -> AsyncIterator[Rig]:
    with serving() as server:
        keys = {"endpoint": server.url, "project": PROJECT, "api_key": API_KEY}
        async with ADAPTER.open(
            context_of(ADAPTER, {"page_size": 7}, directory, **keys)
        ) as tracker:
            yield ToyRig(server, tracker)


RIGS: Mapping[str, OpenRig] = {"http": _http}
