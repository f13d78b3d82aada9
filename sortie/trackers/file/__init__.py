"""The file tracker, the embedded default: a directory of Markdown issues or a JSON file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from sortie.config.values import PathText
from sortie.trackers import Capability, Tracker, TrackerAdapter, TrackerContext


class FileSettings(BaseModel):
    """The ``file`` block."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: PathText


@asynccontextmanager
async def open_tracker(context: TrackerContext) -> AsyncIterator[Tracker]:
    """Make the tracker of a ``file`` block; it holds nothing open."""
    # Here, as commands that only read settings load no tracker.
    from sortie.trackers.file.issue_files import IssueFiles
    from sortie.trackers.file.tracker import FileTracker

    settings = context.settings
    assert isinstance(settings, FileSettings)
    files = IssueFiles(Path(settings.path))
    yield FileTracker(files, context.sightings, lambda: datetime.now(UTC))


ADAPTER = TrackerAdapter(
    kind="file",
    block_name="file",
    block=FileSettings,
    open=open_tracker,
    capabilities=frozenset(
        {
            Capability.LIST_COMMENTS,
            Capability.BLOCKERS,
            Capability.LABELS,
            Capability.FREE_STATES,
            Capability.COMPARE_AND_SET,
            Capability.REMOVALS,
        }
    ),
)
