"""Jira, Cloud and Data Center, as a tracker. Its libraries are the extra ``sortie[jira]``."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from sortie.model.trust import Right
from sortie.trackers import Capability, Tracker, TrackerAdapter, TrackerContext
from sortie.trackers.jira.settings import JiraSettings, check


def open_tracker(context: TrackerContext) -> AbstractAsyncContextManager[Tracker]:
    """Hold the client of a Jira open. Raises TrackerError (INVALID) where its libraries lack."""
    from sortie.trackers.jira.tracker import opened  # loads an HTTP library

    return opened(context)


ADAPTER = TrackerAdapter(
    kind="jira",
    block_name="jira",
    block=JiraSettings,
    open=open_tracker,
    required=frozenset({"endpoint", "api_key", "project"}),
    optional={"query_filter": None},
    rights=frozenset({Right.MEMBERS}),
    label_states=True,
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
