"""Linear: the issues of one team, over its GraphQL API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from sortie.config.values import choice
from sortie.trackers import Capability, TrackerAdapter, TrackerContext
from sortie.trackers.linear.settings_check import check_settings

if TYPE_CHECKING:
    from sortie.trackers.linear.tracker import LinearTracker


class LinearSettings(BaseModel):
    """The ``linear`` block.

    ``page_size`` is how many issues one request asks for; it is halved where Linear finds that too
    complex. ``auth`` says what the API key is; ``auto`` tells by how it begins.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    auth: Annotated[Literal["auto", "key", "oauth"], choice("auto", "key", "oauth")] = "auto"
    page_size: Annotated[int, Field(ge=1, le=250)] = 100


@asynccontextmanager
async def open_tracker(context: TrackerContext) -> AsyncIterator[LinearTracker]:
    """Hold the HTTP client open for as long as the tracker is."""
    from sortie.trackers.http.client import open_client
    from sortie.trackers.linear.api import PROVIDER, LinearApi, credential_of
    from sortie.trackers.linear.tracker import LinearTracker

    settings = context.settings
    assert isinstance(settings, LinearSettings)
    assert context.endpoint is not None
    assert context.api_key is not None
    credential = credential_of(context.api_key, settings.auth)
    async with open_client(PROVIDER, context.endpoint, credential, context.progress) as client:
        yield LinearTracker(LinearApi(client, settings.page_size), context)


ADAPTER = TrackerAdapter(
    kind="linear",
    block_name="linear",
    block=LinearSettings,
    open=open_tracker,
    required=frozenset({"api_key", "project"}),
    optional={"endpoint": "https://api.linear.app/graphql", "query_filter": None},
    check=check_settings,
    capabilities=frozenset(
        {
            Capability.BLOCKERS,
            Capability.LABELS,
            Capability.COMMENT_KEYS,
            Capability.RATE_LIMITS,
        }
    ),
)
