"""GitLab with a tracker of it, opened as a test wants it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sortie.model import Issue, IssueId
from sortie.testing.tracker import context_of
from sortie.trackers.gitlab import ADAPTER
from sortie.trackers.gitlab.tracker import GitLabTracker
from tests.trackers.gitlab.server import gitlab
from tests.trackers.gitlab.service import GitLabService
from tests.trackers.gitlab.world import TOKEN
from tests.trackers.server.serving import TestServer

Open = Callable[..., AbstractAsyncContextManager[GitLabTracker]]


@dataclass(frozen=True, slots=True)
class Hub:
    """GitLab: ``world`` is what is in it, ``server`` what it is asked, ``open`` asks it."""

    world: GitLabService
    server: TestServer
    open: Open

    def asked(self, since: int = 0) -> list[str]:
        """Return the requests after the first so many, without what stands before their routes."""
        every = (f"{r.method} {r.path.partition('/api/v4')[2]}" for r in self.server.asked)
        return list(every)[since:]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """An empty project ``acme/web``, and how a tracker of it is opened."""
    with gitlab() as (world, server):

        @asynccontextmanager
        async def opened(block: Any = None, **keys: Any) -> AsyncIterator[GitLabTracker]:
            given = {"endpoint": server.url, "project": "acme/web", "api_key": TOKEN, **keys}
            context = context_of(ADAPTER, block or {}, tmp_path, **given)
            async with ADAPTER.open(context) as tracker:
                assert isinstance(tracker, GitLabTracker)
                yield tracker

        yield Hub(world, server, opened)


def id_of(item: Any) -> IssueId:
    """Return the id that an issue of GitLab's has here."""
    return IssueId(f"{item['project_id']}:{item['iid']}")


async def read_one(tracker: GitLabTracker, item: Any) -> Issue:
    """Read an issue that has to be there."""
    read = await tracker.fetch_by_ids([id_of(item)])
    assert not read.failed
    (issue,) = read.issues
    return issue
