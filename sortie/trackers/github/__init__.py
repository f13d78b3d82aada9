"""GitHub Issues: states are labels, and whether an issue is open; see the README of this folder."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from sortie.model.trust import Right
from sortie.trackers import Capability, Tracker, TrackerAdapter, TrackerContext
from sortie.trackers.github.settings import ENDPOINT, GitHubSettings, findings


def open_tracker(context: TrackerContext) -> AbstractAsyncContextManager[Tracker]:
    """Hold the client open for as long as the tracker is."""
    from sortie.trackers.github.tracker import opened  # loads an HTTP library

    return opened(context)


ADAPTER = TrackerAdapter(
    kind="github",
    block_name="github",
    block=GitHubSettings,
    open=open_tracker,
    required=frozenset({"api_key", "project"}),
    optional={"endpoint": ENDPOINT, "query_filter": None},
    rights=frozenset(Right),
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
