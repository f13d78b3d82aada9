"""GitHub Issues: states are labels, and whether an issue is open; see the README of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from sortie.trackers import Capability, TrackerAdapter, TrackerContext
from sortie.trackers.github.settings import ENDPOINT, GitHubSettings, findings

if TYPE_CHECKING:
    from sortie.trackers.github.tracker import GitHubTracker


@asynccontextmanager
async def open_tracker(context: TrackerContext) -> AsyncIterator[GitHubTracker]:
    """Hold the client open for as long as the tracker is."""
    from sortie.trackers.github.opened import opened

    async with opened(context) as tracker:
        yield tracker


ADAPTER = TrackerAdapter(
    kind="github",
    block_name="github",
    block=GitHubSettings,
    open=open_tracker,
    required=frozenset({"api_key", "project"}),
    optional={"endpoint": ENDPOINT, "query_filter": None},
    capabilities=frozenset(
        {
            Capability.BLOCKERS,
            Capability.LABELS,
            Capability.COMMENT_KEYS,
            Capability.RATE_LIMITS,
        }
    ),
    check=findings,
)
