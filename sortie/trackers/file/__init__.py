"""The file tracker, the embedded default: a directory of Markdown issues or a JSON file."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from sortie.config import PathText
from sortie.trackers import TrackerAdapter, TrackerContext
from sortie.trackers.file.issue_files import IssueFiles
from sortie.trackers.file.tracker import FileTracker


class FileSettings(BaseModel):
    """The ``file`` block."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: PathText


def create(context: TrackerContext) -> FileTracker:
    """Make the tracker of a ``file`` block."""
    settings = context.settings
    assert isinstance(settings, FileSettings)
    return FileTracker(
        IssueFiles(Path(settings.path)), context.sightings, lambda: datetime.now(UTC)
    )


ADAPTER = TrackerAdapter(kind="file", block_name="file", block=FileSettings, create=create)
