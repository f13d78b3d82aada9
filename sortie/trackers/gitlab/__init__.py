"""The GitLab tracker; its README states keys, states, limits and how errors are mapped."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from sortie.trackers import Capability, TrackerAdapter, TrackerContext
from sortie.trackers.gitlab.settings import DEFAULT_ENDPOINT, GitLabSettings, api_of, check

if TYPE_CHECKING:
    from sortie.trackers.gitlab.tracker import GitLabTracker


@asynccontextmanager
async def open_tracker(context: TrackerContext) -> AsyncIterator[GitLabTracker]:
    """Hold the client open for as long as the tracker is."""
    from sortie.trackers.gitlab.provider import PROVIDER
    from sortie.trackers.gitlab.tracker import GitLabTracker
    from sortie.trackers.http.client import open_client
    from sortie.trackers.http.credentials import header

    assert context.api_key is not None
    credential = header("PRIVATE-TOKEN", context.api_key)
    endpoint = api_of(context.endpoint or DEFAULT_ENDPOINT)
    async with open_client(PROVIDER, endpoint, credential, context.progress) as client:
        yield GitLabTracker(client, context)


ADAPTER = TrackerAdapter(
    kind="gitlab",
    block_name="gitlab",
    block=GitLabSettings,
    open=open_tracker,
    required=frozenset({"api_key", "project"}),
    optional={"endpoint": DEFAULT_ENDPOINT, "query_filter": None},
    capabilities=frozenset(
        {
            Capability.BLOCKERS,
            Capability.LABELS,
            Capability.COMMENT_KEYS,
            Capability.RATE_LIMITS,
        }
    ),
    check=check,
)
