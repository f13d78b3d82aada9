"""Linear: the issues of one team, over its GraphQL API."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from sortie.config.values import choice
from sortie.model.trust import Right
from sortie.trackers import Capability, Tracker, TrackerAdapter, TrackerContext
from sortie.trackers.linear.settings_check import check_settings


class LinearSettings(BaseModel):
    """The ``linear`` block.

    ``page_size`` is how many issues one request asks for; it is halved where Linear finds that too
    complex. ``auth`` says what the API key is; ``auto`` tells by how it begins.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    auth: Annotated[Literal["auto", "key", "oauth"], choice("auto", "key", "oauth")] = "auto"
    page_size: Annotated[int, Field(ge=1, le=250)] = 100


def open_tracker(context: TrackerContext) -> AbstractAsyncContextManager[Tracker]:
    """Hold the HTTP client open for as long as the tracker is."""
    from sortie.trackers.linear.tracker import opened  # loads an HTTP library

    settings = context.settings
    assert isinstance(settings, LinearSettings)
    return opened(context, settings.auth, settings.page_size)


ADAPTER = TrackerAdapter(
    kind="linear",
    block_name="linear",
    block=LinearSettings,
    open=open_tracker,
    required=frozenset({"api_key", "project"}),
    optional={"endpoint": "https://api.linear.app/graphql", "query_filter": None},
    check=check_settings,
    rights=frozenset(Right),
    label_states=True,
    capabilities=frozenset(
        {
            Capability.BLOCKERS,
            Capability.LABELS,
            Capability.COMMENT_KEYS,
            Capability.RATE_LIMITS,
        }
    ),
)
