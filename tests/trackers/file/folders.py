"""Issues on disk, and trackers over them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trio
import trio.testing

from sortie.model import (
    Issue,
    IssueId,
    Sighting,
    StoreError,
)
from sortie.trackers.file.disk import Syscalls
from sortie.trackers.file.issue_files import IssueFiles
from sortie.trackers.file.tracker import FileTracker

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
SEEN = Sighting(first_seen=NOW - timedelta(days=2), changed_at=NOW - timedelta(days=1))


class Memory:
    """Sightings that remember what they were asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []
        self.broken = False

    async def sight(self, digests: Mapping[str, str]) -> Mapping[str, Sighting]:
        await trio.lowlevel.checkpoint()
        if self.broken:
            raise StoreError("the database is locked")
        self.asked.append(dict(digests))
        return dict.fromkeys(digests, SEEN)


def make(path: Path, memory: Memory, calls: Syscalls | None = None) -> FileTracker:
    return FileTracker(IssueFiles(path, calls), memory, now)


def now() -> datetime:
    return datetime.now(UTC)


def write(folder: Path, name: str, front: str = "", body: str = "") -> Path:
    path = folder / name
    path.write_text(f"---\ntitle: t\nstate: Todo\n{front}---\n{body}", encoding="utf-8")
    return path


async def names(tracker: FileTracker) -> set[str]:
    return {issue.id for issue in await tracker.fetch_candidates(["todo"])}


async def one(tracker: FileTracker, issue_id: str) -> Issue:
    (issue,) = (await tracker.fetch_by_ids([IssueId(issue_id)])).issues
    return issue


def an_issue(issue_id: str) -> Issue:
    return Issue(id=IssueId(issue_id), identifier=issue_id, title="t", state="Todo")
