"""Jira, Cloud and Data Center, as a tracker. Its libraries are the extra ``sortie[jira]``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from sortie.config import Finding, Frozen, TrackerSettings
from sortie.config.values import choice
from sortie.trackers import Capability, TrackerAdapter, TrackerContext

if TYPE_CHECKING:
    from sortie.trackers.jira.tracker import JiraTracker

MISSING = "needs libraries that are not installed: pip install 'sortie[jira]'"


class JiraSettings(BaseModel):
    """The ``jira`` block.

    ``deployment``: which Jira it is; by itself Sortie looks at the address, and then asks the
    server. ``blocked_by``: how a link to what has to be finished first is called, seen from the
    issue that waits. ``priorities``: numbers for names of priorities, before the usual ones.
    ``restricted_comments``: comments that only a group or a role may see are read, too.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    deployment: Annotated[
        Literal["auto", "cloud", "data-center"], choice("auto", "cloud", "data-center")
    ] = "auto"
    blocked_by: Annotated[str, Field(min_length=1, max_length=255)] = "is blocked by"
    priorities: Annotated[
        Mapping[str, Annotated[int, Field(ge=0, le=1000)]], AfterValidator(Frozen)
    ] = Frozen()
    restricted_comments: bool = False


def check(tracker: TrackerSettings, block: JiraSettings) -> Iterator[Finding]:
    """Yield what is wrong with the settings, as far as can be seen without asking Jira."""
    from sortie.trackers.jira.settings import findings

    if _lacks_libraries():
        yield Finding(path=("tracker", "kind"), message=MISSING)
    yield from findings(tracker, block.deployment)


def _lacks_libraries() -> bool:
    from importlib.util import find_spec

    return find_spec("md_adf") is None or find_spec("mistune") is None


@asynccontextmanager
async def open_tracker(context: TrackerContext) -> AsyncIterator[JiraTracker]:
    """Hold the client of a Jira open. Raises TrackerError (INVALID) where its libraries lack."""
    from sortie.model import TrackerError, TrackerErrorKind
    from sortie.trackers.http.client import open_client
    from sortie.trackers.jira.provider import credential_of, provider_of
    from sortie.trackers.jira.tracker import JiraTracker

    if _lacks_libraries():  # which are loaded with the first comment only
        raise TrackerError(TrackerErrorKind.INVALID, f"the jira tracker {MISSING}")

    settings = context.settings
    assert isinstance(settings, JiraSettings)
    assert context.endpoint is not None
    assert context.api_key is not None
    provider = provider_of(context.endpoint, settings.deployment)
    credential = credential_of(context.api_key)
    async with open_client(provider, context.endpoint, credential, context.progress) as client:
        yield JiraTracker(client, context, settings)


ADAPTER = TrackerAdapter(
    kind="jira",
    block_name="jira",
    block=JiraSettings,
    open=open_tracker,
    required=frozenset({"endpoint", "api_key", "project"}),
    optional={"query_filter": None},
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
