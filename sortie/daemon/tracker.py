"""The tracker that the settings name, and what it may remember."""

from __future__ import annotations

import time
import traceback
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime

import trio

from sortie import trackers
from sortie.config.settings import Settings
from sortie.daemon.secrets_in_settings import known_secrets
from sortie.model import Sighting, SortieError, StoreError, TrackerError, TrackerErrorKind
from sortie.model.secrets import redactor
from sortie.orchestrator.guarded_tracker import GuardedTracker
from sortie.orchestrator.time_limits import progress
from sortie.store import Store
from sortie.telemetry import Publish, facts
from sortie.trackers import Tracker, TrackerAdapter, TrackerContext, TrackerStates
from sortie.workflow.loader import Workflow

OPEN_LIMIT = 60.0
"""Seconds that an adapter has to become ready, in which it asks the tracker nothing."""


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


def states_of(settings: Settings) -> TrackerStates:
    """Return the states that the settings name, those of all rules too."""
    top, every = settings.tracker, [rule.settings.tracker for rule in settings.rules]
    moves = (name for one in every for name in (one.in_progress_state, one.handoff_state))
    return TrackerStates(
        active=settings.active_states,
        terminal=top.terminal_states,
        in_progress=top.in_progress_state,
        handoff=top.handoff_state,
        others=tuple(name for name in moves if name is not None),
        labels=top.label_states,
    )


@asynccontextmanager
async def open_tracker(
    workflow: Workflow,
    sightings: trackers.Sightings,
    publish: Publish,
    environ: Mapping[str, str],
) -> AsyncIterator[GuardedTracker]:
    """Hold the tracker open that the settings name, and let no secret of them or of ``environ``
    pass in its issues. Raises TrackerError where it cannot be used."""
    adapter = trackers.ADAPTERS.load(workflow.settings.tracker.kind)
    context = _context(workflow, adapter, sightings)
    async with AsyncExitStack() as stack:
        # The scope stays around what the adapter opens, such as a nursery, until that is closed.
        opening = stack.enter_context(trio.CancelScope())
        opening.deadline = trio.current_time() + OPEN_LIMIT
        tracker = await _entered(stack, adapter, context, publish)
        opening.deadline = float("inf")
        guarded = GuardedTracker(tracker, publish)
        guarded.hide(redactor(known_secrets(workflow.settings, environ)))
        guarded.trust(workflow.settings.trust)
        yield guarded
        return
    message = f"the {adapter.kind} tracker was not ready within {OPEN_LIMIT:g} s"
    raise TrackerError(TrackerErrorKind.UNAVAILABLE, message)


async def _entered(
    stack: AsyncExitStack, adapter: TrackerAdapter, context: TrackerContext, publish: Publish
) -> Tracker:
    try:
        return await stack.enter_async_context(adapter.open(context))
    except SortieError:
        raise
    except Exception as exc:  # the edge: an adapter's bug
        publish(facts.AdapterCrashed(where="open", traceback=traceback.format_exc()))
        message = f"the {adapter.kind} tracker could not be opened: {type(exc).__name__}"
        raise TrackerError(TrackerErrorKind.UNAVAILABLE, message) from exc


def _context(
    workflow: Workflow, adapter: TrackerAdapter, sightings: trackers.Sightings
) -> TrackerContext:
    settings = workflow.settings.tracker
    api_key, defaults = settings.api_key, adapter.optional
    return TrackerContext(
        settings=workflow.settings.block(adapter.block_name),
        directory=workflow.path.parent,
        sightings=sightings,
        states=states_of(workflow.settings),
        progress=progress,
        endpoint=settings.endpoint or defaults.get("endpoint"),
        api_key=api_key.get_secret_value() if api_key is not None else defaults.get("api_key"),
        project=settings.project or defaults.get("project"),
        query_filter=settings.query_filter or defaults.get("query_filter"),
    )
