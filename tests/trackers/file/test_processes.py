"""Real processes that write the same files at the same time lose nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from subprocess import PIPE

import pytest
import trio

from sortie.model import IssueId, Sighting
from sortie.trackers.file.disk import LOCK_NAME
from sortie.trackers.file.issue_files import IssueFiles
from sortie.trackers.file.tracker import FileTracker

WRITERS, REMARKS = 3, 5

PROGRAM = """
import sys
from datetime import UTC, datetime
from pathlib import Path
import trio
from sortie.model import IssueId
from sortie.trackers.file.issue_files import IssueFiles
from sortie.trackers.file.tracker import FileTracker

class Sightings:
    async def sight(self, digests):
        raise AssertionError("the issues have their times")

async def main():
    path, writer, remarks = sys.argv[1:]
    tracker = FileTracker(IssueFiles(Path(path)), Sightings(), lambda: datetime.now(UTC))
    print("ready", flush=True)
    sys.stdin.read()
    (issue,) = (await tracker.fetch_by_ids([IssueId("A")])).issues
    for number in range(int(remarks)):
        await tracker.comment(issue, f"{writer}: {number}")

trio.run(main)
"""


class NoSightings:
    async def sight(self, digests: Mapping[str, str]) -> Mapping[str, Sighting]:
        raise AssertionError("the issues have their times")


def prepare(directory: Path, shape: str) -> Path:
    times = {"created_at": "2026-01-01", "updated_at": "2026-01-01"}
    fields = {"id": "A", "title": "t", "state": "Todo", **times}
    if shape == "json":
        path = directory / "issues.json"
        path.write_text(json.dumps([{**fields, "description": "text"}]), encoding="utf-8")
        return path
    path = directory / "issues"
    path.mkdir()
    front = "".join(f"{key}: {value}\n" for key, value in fields.items())
    (path / "A.md").write_text(f"---\n{front}---\ntext", encoding="utf-8")
    return path


async def write_remarks(path: Path, writer: int, started: trio.Event, go: trio.Event) -> None:
    command = [sys.executable, "-c", PROGRAM, str(path), str(writer), str(REMARKS)]
    run = partial(trio.run_process, command, stdin=PIPE, stdout=PIPE)
    async with trio.open_nursery() as nursery:
        process: trio.Process = await nursery.start(run)
        assert process.stdout is not None
        assert process.stdin is not None
        assert (await process.stdout.receive_some()).startswith(b"ready")
        started.set()
        await go.wait()
        await process.stdin.aclose()


@pytest.mark.parametrize("shape", ["directory", "json"])
async def test_no_remark_of_many_writers_is_lost(tmp_path: Path, shape: str) -> None:
    """Each process's comments are all there in its order, and no reader sees a torn file."""
    path = prepare(tmp_path, shape)
    tracker = FileTracker(IssueFiles(path), NoSightings(), lambda: datetime.now(UTC))
    sizes: list[int] = []
    go, over = trio.Event(), trio.Event()

    async def watch() -> None:
        while not over.is_set():
            (issue,) = (await tracker.fetch_by_ids([IssueId("A")])).issues
            sizes.append(len(issue.comments))

    with trio.fail_after(90):
        async with trio.open_nursery() as watching:
            async with trio.open_nursery() as writing:
                started = [trio.Event() for _ in range(WRITERS)]
                for writer, event in enumerate(started):
                    writing.start_soon(write_remarks, path, writer, event, go)
                for event in started:
                    await event.wait()
                watching.start_soon(watch)
                go.set()
            over.set()
    (issue,) = (await tracker.fetch_by_ids([IssueId("A")])).issues

    said = [comment.body for comment in issue.comments]
    assert len(said) == WRITERS * REMARKS
    for writer in range(WRITERS):
        own = [body for body in said if body.startswith(f"{writer}: ")]
        assert own == [f"{writer}: {number}" for number in range(REMARKS)]
    assert sizes == sorted(sizes)
    assert issue.description == "text"
    left = {file.name for file in (path if shape == "directory" else tmp_path).iterdir()}
    assert left == {LOCK_NAME, "A.md" if shape == "directory" else "issues.json"}
