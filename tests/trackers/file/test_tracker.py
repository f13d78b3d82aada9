"""The file tracker reads among people, editors and others that change the same files."""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import structlog
import trio
import trio.testing

from sortie.model import (
    IssueId,
    TrackerError,
    TrackerErrorKind,
)
from sortie.trackers.file.issue_files import IssueFiles
from sortie.trackers.file.issue_index import FilesRead
from sortie.trackers.file.tracker import FileTracker
from tests.trackers.file.folders import SEEN, Memory, an_issue, make, names, now, write


class HangingFiles(IssueFiles):
    """A disk whose first look hangs until it is let go."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.hangs, self.let_go = threading.Event(), threading.Event()
        self.looks = 0

    def look(self, known: FilesRead, at: float) -> FilesRead:
        self.looks += 1
        if self.looks == 1:
            self.hangs.set()
            self.let_go.wait(30)
        return super().look(known, at)


def malformed(entries: list[structlog.typing.EventDict]) -> list[str]:
    return [e["error"] for e in entries if e["event"] == "tracker.issue_malformed"]


async def test_only_issue_files_of_the_directory_itself_are_read(
    folder: Path, memory: Memory
) -> None:
    """Hidden and editors' files, other suffixes and directories are no issues, and no news."""
    write(folder, "A.md")
    for name in (
        ".hidden.md",
        ".#A.md",
        "#A.md",
        "A.md~",
        ".A.md.swp",
        "A.md.bak",
        "A.txt",
        "4913",
    ):
        (folder / name).write_text("noise", encoding="utf-8")
    (folder / "sub.md").mkdir()
    write(folder / "sub.md", "B.md")
    tracker = make(folder, memory)

    with structlog.testing.capture_logs() as entries:
        found = await names(tracker)

    assert found == {"A"}
    assert malformed(entries) == []


async def test_what_is_not_a_regular_file_is_a_complaint_and_stops_nothing(
    folder: Path, memory: Memory
) -> None:
    """A link, a FIFO and a huge file are named and skipped, promptly."""
    write(folder, "A.md")
    (folder / "link.md").symlink_to("A.md")
    os.mkfifo(folder / "fifo.md")
    write(folder, "huge.md", body="x" * 5 * 2**20)
    tracker = make(folder, memory)

    with trio.fail_after(60), structlog.testing.capture_logs() as entries:
        found = await names(tracker)
        read = await tracker.fetch_by_ids([IssueId("fifo"), IssueId("huge")])

    assert found == {"A"}
    assert malformed(entries) == [
        "fifo.md: not a regular file; links are not followed",
        "huge.md: larger than 1048576 bytes, which is the limit",
        "link.md: not a regular file; links are not followed",
    ]
    assert {i: e.kind for i, e in read.failed.items()} == {
        "fifo": TrackerErrorKind.INVALID,
        "huge": TrackerErrorKind.INVALID,
    }


async def test_a_malformed_file_is_logged_once_for_each_content(
    folder: Path, memory: Memory
) -> None:
    """Polls do not repeat it; another content, even with the same fault, is told of, and so is the
    same content after it was mended."""
    path = folder / "A.md"
    path.write_text("---\nstate: [\n---\n", encoding="utf-8")
    tracker = make(folder, memory)

    with structlog.testing.capture_logs() as entries:
        await names(tracker)
        await names(tracker)
        first = len(malformed(entries))
        path.write_text("---\nstate: [\n---\nmore", encoding="utf-8")
        await names(tracker)
        second = len(malformed(entries))
        write(folder, "A.md")
        mended = await names(tracker)
        path.write_text("---\nstate: [\n---\nmore", encoding="utf-8")
        await names(tracker)

    assert (first, second, mended) == (1, 2, {"A"})
    assert malformed(entries) == ["A.md:3:1: invalid YAML: a value is missing here"] * 3


async def test_a_malformed_file_takes_no_name_from_another_issue(
    folder: Path, memory: Memory
) -> None:
    """A file that cannot be read but hints at an id does not spoil the issue that has this id."""
    write(folder, "A.md")
    (folder / "copy.md").write_text("---\nid: A\nstate: [\n---\n", encoding="utf-8")
    tracker = make(folder, memory)

    read = await tracker.fetch_by_ids([IssueId("A")])
    moved = await tracker.transition(an_issue("A"), "Done")

    assert ([issue.id for issue in read.issues], read.failed) == (["A"], {})
    assert moved.state == "Done"


async def test_an_issue_that_breaks_is_not_taken_for_missing(folder: Path, memory: Memory) -> None:
    """The file's id, though not its name, is remembered while the file cannot be read."""
    path = write(folder, "some-name.md", "id: 42\n")
    tracker = make(folder, memory)
    await names(tracker)

    path.write_text("half wr", encoding="utf-8")
    first = await tracker.fetch_by_ids([IssueId("42")])
    path.write_text("half writ", encoding="utf-8")
    second = await tracker.fetch_by_ids([IssueId("42")])

    assert set(first.failed) == set(second.failed) == {"42"}


@pytest.mark.parametrize(
    ("fronts", "word", "ids"),
    [
        (["id: X\n", "id: X\n"], "id 'X'", ["X"]),
        (["identifier: X\n", "identifier: X\n"], "identifier 'X'", ["A", "B"]),
    ],
)
async def test_two_files_that_claim_one_name_are_both_left_out(
    folder: Path, memory: Memory, fronts: list[str], word: str, ids: list[str]
) -> None:
    """Neither is guessed to be the right one: no list holds them, a re-read is an error."""
    write(folder, "A.md", fronts[0])
    write(folder, "B.md", fronts[1])
    write(folder, "C.md")
    tracker = make(folder, memory)

    with structlog.testing.capture_logs() as entries:
        found = await names(tracker)
        read = await tracker.fetch_by_ids([IssueId(i) for i in ids])
        with pytest.raises(TrackerError) as refused:
            await tracker.comment(an_issue(ids[0]), "hello")
    (folder / "B.md").unlink()
    after = await names(tracker)

    message = f"A.md, B.md: each has the {word}; it must be one issue's only"
    assert found == {"C"}
    assert malformed(entries) == [message]
    assert {i: (e.kind, str(e)) for i, e in read.failed.items()} == dict.fromkeys(
        ids, (TrackerErrorKind.INVALID, message)
    )
    assert refused.value.kind is TrackerErrorKind.INVALID
    assert after == {"C", ids[0]}


async def test_missing_times_come_from_sightings(folder: Path, memory: Memory) -> None:
    """Only issues without times are looked up, and again only when their content changed."""
    write(folder, "A.md")
    write(folder, "B.md", "created_at: 2026-01-01\nupdated_at: 2026-01-02\n")
    write(folder, "C.md", "created_at: 2026-01-01\n")
    tracker = make(folder, memory)

    await names(tracker)
    await names(tracker)
    write(folder, "A.md", body="changed")
    await names(tracker)
    read = await tracker.fetch_by_ids([IssueId(i) for i in "ABC"])

    january = datetime(2026, 1, 1, tzinfo=UTC)
    assert [sorted(asked) for asked in memory.asked] == [["A", "C"], ["A"]]
    assert {i.id: (i.created_at, i.updated_at) for i in read.issues} == {
        "A": (SEEN.first_seen, SEEN.changed_at),
        "B": (january, january + timedelta(days=1)),
        "C": (january, SEEN.changed_at),
    }


async def test_a_store_that_cannot_remember_is_an_outage(folder: Path, memory: Memory) -> None:
    """Its error does not pass through the port as it is."""
    write(folder, "A.md")
    memory.broken = True
    tracker = make(folder, memory)

    with pytest.raises(TrackerError) as failed:
        await names(tracker)

    assert failed.value.kind is TrackerErrorKind.UNAVAILABLE
    assert "the database is locked" in str(failed.value)


@pytest.mark.parametrize("shape", ["directory", "json"])
async def test_a_path_that_vanished_is_named_and_comes_back(
    tmp_path: Path, memory: Memory, shape: str
) -> None:
    """No call takes it for a tracker without issues."""
    path = tmp_path / "issues"
    tracker = make(path, memory)

    with pytest.raises(TrackerError) as missing:
        await tracker.fetch_by_ids([IssueId("A")])
    if shape == "directory":
        path.mkdir()
        write(path, "A.md")
    else:
        path.write_text('[{"id": "A", "title": "t", "state": "todo"}]', encoding="utf-8")
    found = await names(tracker)

    assert missing.value.kind is TrackerErrorKind.CLOSED
    assert str(missing.value) == (
        f"cannot read issues from {path}: it is not there; put it back or set file.path"
    )
    assert found == {"A"}


async def test_a_path_that_is_neither_directory_nor_file_is_an_outage(
    tmp_path: Path, memory: Memory
) -> None:
    """A FIFO is refused without waiting for somebody to write into it."""
    os.mkfifo(tmp_path / "fifo")

    with trio.fail_after(60), pytest.raises(TrackerError) as refused:
        await names(make(tmp_path / "fifo", memory))

    assert refused.value.kind is TrackerErrorKind.UNAVAILABLE


async def test_files_that_come_and_go_during_a_poll_are_no_error(
    folder: Path, memory: Memory
) -> None:
    """Renames, removals and rewrites while the directory is read leave every answer whole."""
    for number in range(40):
        write(folder, f"A{number}.md")
    tracker = make(folder, memory)
    over = threading.Event()

    def churn() -> None:
        turn = 0
        while not over.is_set():
            turn += 1
            path = folder / f"A{turn % 20}.md"
            path.rename(folder / "moved.md")
            write(folder, f"B{turn % 3}.md", body=str(turn))
            (folder / "moved.md").rename(path)
            (folder / f"B{turn % 3}.md").unlink()

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, churn)
            answers = [await names(tracker) for _ in range(50)]
            over.set()
    settled = {f"A{number}" for number in range(20, 40)}
    assert all(settled <= answer for answer in answers)


async def test_a_cancelled_look_leaves_the_tracker_usable(folder: Path, memory: Memory) -> None:
    """Leaving does not wait for a disk that hangs, and the next question is answered."""
    write(folder, "A.md")
    files = HangingFiles(folder)
    tracker = FileTracker(files, memory, now)

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(names, tracker)
            await trio.to_thread.run_sync(files.hangs.wait)
            nursery.cancel_scope.cancel()
        found = await names(tracker)
    files.let_go.set()

    assert found == {"A"}
