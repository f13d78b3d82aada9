"""The GitLab tracker; its README states keys, states, limits and how errors are mapped."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from sortie.model.trust import Right
from sortie.trackers import Capability, Tracker, TrackerAdapter, TrackerContext
from sortie.trackers.gitlab.settings import DEFAULT_ENDPOINT, GitLabSettings, check


def open_tracker(context: TrackerContext) -> AbstractAsyncContextManager[Tracker]:
    """Hold the client open for as long as the tracker is."""
    from sortie.trackers.gitlab.tracker import opened  # loads an HTTP library

    return opened(context)


ADAPTER = TrackerAdapter(
    kind="gitlab",
    block_name="gitlab",
    block=GitLabSettings,
    open=open_tracker,
    required=frozenset({"api_key", "project"}),
    optional={"endpoint": DEFAULT_ENDPOINT, "query_filter": None},
    rights=frozenset(Right),
    capabilities=frozenset(
        {Capability.BLOCKERS, Capability.LABELS, Capability.COMMENT_KEYS, Capability.RATE_LIMITS}
    ),
    check=check,
)
