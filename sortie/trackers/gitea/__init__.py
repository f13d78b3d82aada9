"""The issues of a repository on Gitea or Forgejo: states are labels, and open or closed."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from sortie.model.trust import Right
from sortie.trackers import Capability, Tracker, TrackerAdapter, TrackerContext
from sortie.trackers.gitea.settings import GiteaSettings, findings


def open_tracker(context: TrackerContext) -> AbstractAsyncContextManager[Tracker]:
    """Hold the client open for as long as the tracker is."""
    from sortie.trackers.gitea.tracker import opened  # loads an HTTP library

    return opened(context)


ADAPTER = TrackerAdapter(
    kind="gitea",
    block_name="gitea",
    block=GiteaSettings,
    open=open_tracker,
    required=frozenset({"endpoint", "api_key", "project"}),
    rights=frozenset(Right),
    capabilities=frozenset(
        {Capability.BLOCKERS, Capability.LABELS, Capability.COMMENT_KEYS, Capability.RATE_LIMITS}
    ),
    check=findings,
)
