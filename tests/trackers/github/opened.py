"""A GitHub in this process and a tracker of it, for the tests of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sortie.model import Issue, IssueId
from sortie.testing.tracker import context_of
from sortie.trackers import TrackerContext
from sortie.trackers.github import ADAPTER
from sortie.trackers.github.tracker import GitHubTracker
from tests.trackers.github.rig import QUICK, github, keys_of
from tests.trackers.github.service import GitHubService
from tests.trackers.server.serving import TestServer


@dataclass(frozen=True, slots=True, kw_only=True)
class GitHub:
    """The service, its server, and a tracker with the states of the suite."""

    service: GitHubService
    server: TestServer
    tracker: GitHubTracker
    context: TrackerContext

    async def todo(self) -> list[str]:
        """Return the ids of the issues in the state Todo."""
        return [issue.id for issue in await self.tracker.fetch_candidates(["todo"])]

    async def read(self, number: int) -> Issue | None:
        """Read an issue again."""
        answer = await self.tracker.fetch_by_ids([IssueId(str(number))])
        return answer.issues[0] if answer.issues else None

    async def state(self, number: int) -> str:
        """Return the state an issue is in."""
        issue = await self.read(number)
        assert issue is not None
        return issue.state


@asynccontextmanager
async def github_opened(
    directory: Path, block: dict[str, Any] | None = None, **keys: Any
) -> AsyncIterator[GitHub]:
    """Open a tracker of an empty repository."""
    with github() as (service, server):
        settings = {**QUICK, **(block or {})}
        context = context_of(ADAPTER, settings, directory, **{**keys_of(server), **keys})
        async with ADAPTER.open(context) as tracker:
            assert isinstance(tracker, GitHubTracker)
            yield GitHub(service=service, server=server, tracker=tracker, context=context)
