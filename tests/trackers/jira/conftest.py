"""A Jira of each kind, and a tracker that asks it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sortie.trackers.jira.tracker import JiraTracker
from tests.trackers.jira.rig import contract_of, opened
from tests.trackers.jira.server import JiraService
from tests.trackers.server.serving import TestServer, serving

BEFORE_ALL = ("/serverInfo", "/myself", "/project/PROJ")


@dataclass
class Jira:
    """The service behind its server, and a tracker of its project."""

    service: JiraService
    server: TestServer
    tracker: JiraTracker
    directory: Path

    def asked(self) -> list[str]:
        """Return what was asked since the last call, without what comes before all else."""
        asked = [r for r in self.server.asked if not r.path.endswith(BEFORE_ALL)]
        self.server.asked.clear()
        return [f"{r.method} {r.path.removeprefix(self.service.api)}" for r in asked]

    def opened(
        self, block: Mapping[str, object] | None = None, **keys: Any
    ) -> AbstractAsyncContextManager[JiraTracker]:
        """Open another tracker of the same server."""
        return opened(self.server, self.directory, block=block or {}, **keys)


@pytest.fixture(params=[True, False], ids=["cloud", "data-center"])
def service(request: pytest.FixtureRequest) -> JiraService:
    """A Jira without issues."""
    return JiraService(cloud=request.param)


@pytest.fixture
def server(service: JiraService) -> Iterator[TestServer]:
    """Its server, which holds all exchanges to the description."""
    with serving(service, contract_of(service)) as running:
        service.now = running.now
        yield running


@pytest.fixture
async def jira(service: JiraService, server: TestServer, tmp_path: Path) -> AsyncIterator[Jira]:
    """A Jira and a tracker of it."""
    async with opened(server, tmp_path) as tracker:
        yield Jira(service, server, tracker, tmp_path)
