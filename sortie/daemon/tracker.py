"""The tracker that the settings name, and what it may remember."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime

from sortie import trackers
from sortie.model import Sighting, StoreError
from sortie.store import Store
from sortie.trackers import Tracker
from sortie.workflow import Workflow


class StoredSightings:
    """The store as a tracker's memory of when issues were first seen."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def sight(self, digests: Mapping[str, str]) -> Mapping[str, Sighting]:
        """See Sightings. While the store fails, what it would have to note is seen now."""
        try:
            return await self._store.sight(digests, time.time())
        except StoreError:
            return await FreshSightings().sight(digests)


class FreshSightings:
    """A memory for one look: every issue was first seen now."""

    async def sight(self, digests: Mapping[str, str]) -> Mapping[str, Sighting]:
        """See Sightings."""
        now = datetime.now(UTC)
        return {issue_id: Sighting(first_seen=now, changed_at=now) for issue_id in digests}


def make_tracker(workflow: Workflow, sightings: trackers.Sightings) -> Tracker:
    """Make the tracker that the settings name."""
    settings = workflow.settings
    adapter = trackers.ADAPTERS.load(settings.tracker.kind)
    api_key = settings.tracker.api_key
    return adapter.create(
        trackers.TrackerContext(
            settings=settings.block(adapter.block_name),
            directory=workflow.path.parent,
            sightings=sightings,
            endpoint=settings.tracker.endpoint,
            api_key=api_key.reveal() if api_key is not None else None,
            project=settings.tracker.project,
            query_filter=settings.tracker.query_filter,
        )
    )
