"""A tracker in a package of its own: a small HTTP service, whose issues are open or closed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import httpx2
from pydantic import BaseModel, ConfigDict, Field
from toy_tracker.tracker import ToyTracker

from sortie.trackers import Capability, TrackerAdapter, TrackerContext

TIMEOUT = 30.0
"""Seconds without a byte after which a request has failed; the service holds one for 10."""


class ToySettings(BaseModel):
    """The ``toy`` block."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    page_size: Annotated[int, Field(ge=1, le=100)] = 50


@asynccontextmanager
async def open_tracker(context: TrackerContext) -> AsyncIterator[ToyTracker]:
    """Hold the client open for as long as the tracker is."""
    assert isinstance(context.settings, ToySettings)
    async with httpx2.AsyncClient(
        base_url=f"{context.endpoint}/{context.project}/",
        headers={"Authorization": f"Bearer {context.api_key}"},
        timeout=TIMEOUT,
        trust_env=False,
    ) as client:
        yield ToyTracker(client, context.states, context.progress, context.settings.page_size)


ADAPTER = TrackerAdapter(
    kind="toy",
    block_name="toy",
    block=ToySettings,
    open=open_tracker,
    required=frozenset({"api_key", "project"}),
    optional={"endpoint": "http://127.0.0.1:8080"},
    capabilities=frozenset(
        {
            Capability.LABELS,
            Capability.COMPARE_AND_SET,
            Capability.REMOVALS,
            Capability.CHANGES,
            Capability.RATE_LIMITS,
        }
    ),
)
