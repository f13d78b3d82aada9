"""The file tracker writes among people, editors and others that change the same files."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
import trio
import trio.testing

from sortie.model import (
    IssueId,
    TrackerError,
    TrackerErrorKind,
)
from sortie.resources.lease import LEASE, Lease, boot_time
from sortie.trackers.file.disk import LOCK_NAME, Syscalls, locked
from sortie.trackers.file.tracker import LOCK_WAIT
from tests.trackers.file.folders import Memory, make, one, write


async def test_a_json_file_behind_a_link_is_written_where_it_is(
    tmp_path: Path, memory: Memory
) -> None:
    """``file.path`` itself may be a link, which stays one."""
    (tmp_path / "real").mkdir()
    real = tmp_path / "real" / "issues.json"
    real.write_text('[{"id": "A", "title": "t", "state": "Todo"}]', encoding="utf-8")
    link = tmp_path / "link.json"
    link.symlink_to(real)
    tracker = make(link, memory)

    await tracker.transition(await one(tracker, "A"), "Done")

    assert link.is_symlink()
    assert real.read_text("utf-8") == '[{"id": "A", "title": "t", "state": "Done"}]'


async def test_an_edit_in_between_is_kept_and_the_change_made_on_top(
    folder: Path, memory: Memory
) -> None:
    """A person's save between reading and writing is neither lost nor an error."""
    path = write(folder, "A.md", body="old")
    edits = iter(["edited once", "edited twice"])

    def edit(_fd: int) -> None:
        body = next(edits, None)
        if body is not None:
            write(folder, "A.md", body=body)

    tracker = make(folder, memory, Syscalls(fsync=edit))
    issue = await one(tracker, "A")

    moved = await tracker.transition(issue, "Done")

    assert (moved.state, moved.description) == ("Done", "edited twice")
    assert path.read_text("utf-8") == "---\ntitle: t\nstate: Done\n---\nedited twice"


async def test_a_file_that_never_rests_is_given_up(folder: Path, memory: Memory) -> None:
    """After three tries the change fails, may be tried again, and the last edit stands."""
    path = write(folder, "A.md")
    edits: list[str] = []

    def edit(_fd: int) -> None:
        edits.append(f"edit {len(edits)}")
        write(folder, "A.md", body=edits[-1])

    tracker = make(folder, memory, Syscalls(fsync=edit))
    issue = await one(tracker, "A")

    with pytest.raises(TrackerError) as failed:
        await tracker.comment(issue, "hello")

    assert failed.value.kind is TrackerErrorKind.UNAVAILABLE
    assert edits == ["edit 0", "edit 1", "edit 2"]
    assert path.read_text("utf-8").endswith("---\nedit 2")
    assert sorted(os.listdir(folder)) == [LOCK_NAME, "A.md"]


async def test_an_edit_of_the_state_in_between_is_a_conflict(folder: Path, memory: Memory) -> None:
    """The state is compared again with each try, so a person's decision wins."""
    path = write(folder, "A.md")
    text = path.read_text("utf-8").replace("Todo", "Cancelled")
    tracker = make(folder, memory, Syscalls(fsync=lambda _fd: path.write_text(text)))
    issue = await one(tracker, "A")

    with pytest.raises(TrackerError) as refused:
        await tracker.transition(issue, "Done")

    assert refused.value.kind is TrackerErrorKind.CONFLICT
    assert path.read_text("utf-8") == text


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, TrackerErrorKind.CLOSED),
        (errno.EIO, TrackerErrorKind.CLOSED),
        (errno.EROFS, TrackerErrorKind.CLOSED),
    ],
)
@pytest.mark.parametrize("shape", ["directory", "json"])
async def test_a_disk_that_fails_costs_the_change_only(
    tmp_path: Path, memory: Memory, shape: str, number: int, kind: TrackerErrorKind
) -> None:
    """The old file is whole, nothing lies about, and the issue can still be read."""

    def fail(_fd: int) -> None:
        raise OSError(number, os.strerror(number))

    path = tmp_path / "issues"
    if shape == "directory":
        path.mkdir()
        file = write(path, "A.md")
    else:
        file = path
        file.write_text('[{"id": "A", "title": "t", "state": "Todo"}]', encoding="utf-8")
    before = file.read_bytes()
    tracker = make(path, memory, Syscalls(fsync=fail))
    issue = await one(tracker, "A")

    with pytest.raises(TrackerError) as failed:
        await tracker.transition(issue, "Done")

    assert failed.value.kind is kind
    assert os.strerror(number) in str(failed.value)
    assert file.read_bytes() == before
    assert sorted(os.listdir(file.parent)) == sorted([LOCK_NAME, file.name])
    assert await one(tracker, "A") == issue


async def test_a_change_tidies_up_after_a_killed_writer(folder: Path, memory: Memory) -> None:
    """A temporary file that a ``kill -9`` left is gone after the next change."""
    write(folder, "A.md")
    (folder / ".sortie-tracker-abc.tmp").write_text("half", encoding="utf-8")
    tracker = make(folder, memory)

    await tracker.comment(await one(tracker, "A"), "hello")

    assert sorted(os.listdir(folder)) == [LOCK_NAME, "A.md"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
async def test_permissions_are_named(folder: Path, memory: Memory) -> None:
    """An unreadable file is that issue's error; a directory that refuses writes refuses them for
    all issues."""
    write(folder, "A.md").chmod(0)
    write(folder, "B.md")
    folder.chmod(0o500)
    tracker = make(folder, memory)

    read = await tracker.fetch_by_ids([IssueId("A"), IssueId("B")])
    with pytest.raises(TrackerError) as refused:
        await tracker.transition(read.issues[0], "Done")
    folder.chmod(0o700)

    assert read.failed[IssueId("A")].kind is TrackerErrorKind.PERMISSION
    assert refused.value.kind is TrackerErrorKind.CLOSED


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.EPERM, TrackerErrorKind.PERMISSION),
        (errno.EACCES, TrackerErrorKind.PERMISSION),
        (errno.EROFS, TrackerErrorKind.CLOSED),
        (errno.ENOSPC, TrackerErrorKind.CLOSED),
    ],
)
async def test_a_file_that_may_not_be_replaced_is_that_issues_trouble(
    folder: Path, memory: Memory, number: int, kind: TrackerErrorKind
) -> None:
    """A sticky directory or an immutable file refuses one issue; a disk that has become read-only
    or full meanwhile refuses all, and its message names no temporary file, so that it repeats."""

    def refuse(new: Path, old: Path) -> None:
        raise OSError(number, os.strerror(number), str(new), None, str(old))

    write(folder, "A.md")
    tracker = make(folder, memory, Syscalls(replace=refuse))

    with pytest.raises(TrackerError) as refused:
        await tracker.transition(await one(tracker, "A"), "Done")

    assert refused.value.kind is kind
    assert (".tmp" in str(refused.value)) is (kind is TrackerErrorKind.PERMISSION)


async def test_a_comment_that_would_make_the_issue_unreadable_is_refused(
    folder: Path, memory: Memory
) -> None:
    """No file grows over the limit by Sortie's hand."""
    path = write(folder, "A.md", body="x" * (2**20 - 200))
    before = path.read_bytes()
    tracker = make(folder, memory)
    issue = await one(tracker, "A")

    with pytest.raises(TrackerError) as refused:
        await tracker.comment(issue, "y" * 300)

    assert refused.value.kind is TrackerErrorKind.INVALID
    assert "larger than 1048576 bytes" in str(refused.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("state", ["", "  ", "a\nb", "a\x1b", "x" * 300])
async def test_a_state_that_could_not_be_read_back_is_refused(
    folder: Path, memory: Memory, state: str
) -> None:
    """It is an error of the request, and the file stays as it is."""
    path = write(folder, "A.md")
    before = path.read_bytes()
    tracker = make(folder, memory)
    issue = await one(tracker, "A")

    with pytest.raises(TrackerError) as refused:
        await tracker.transition(issue, state)

    assert refused.value.kind is TrackerErrorKind.INVALID
    assert path.read_bytes() == before


async def test_a_transition_to_where_the_issue_is_writes_nothing(
    folder: Path, memory: Memory
) -> None:
    """The same state leaves the file, with its times, alone."""
    path = write(folder, "A.md", "updated_at: 2020-01-01\n")
    before = path.read_bytes()
    tracker = make(folder, memory)
    issue = await one(tracker, "A")

    answer = await tracker.transition(issue, "Todo")

    assert answer == issue
    assert path.read_bytes() == before


async def test_a_lock_that_another_holds_is_waited_for_and_then_given_up(
    folder: Path, memory: Memory, autojump_clock: trio.testing.MockClock
) -> None:
    """A change waits while another process changes, but not for ever."""
    write(folder, "A.md")
    tracker = make(folder, memory)
    issue = await one(tracker, "A")
    started = trio.current_time()

    with locked(folder), pytest.raises(TrackerError) as refused:
        await tracker.transition(issue, "Done")
    waited = trio.current_time() - started
    moved = await tracker.transition(issue, "Done")

    assert refused.value.kind is TrackerErrorKind.UNAVAILABLE
    assert waited == pytest.approx(LOCK_WAIT, abs=0.1)
    assert moved.state == "Done"


async def test_no_issue_is_changed_once_the_lease_is_over(folder: Path, memory: Memory) -> None:
    """Another daemon may lead the workflow; what is in the file stays."""
    path = write(folder, "A.md", body="old")
    before = path.read_bytes()
    tracker = make(folder, memory)
    issue = await one(tracker, "A")
    token = LEASE.set(Lease("team", 7, "here:1", boot_time() - 1))

    with pytest.raises(TrackerError, match="token 7"):
        await tracker.transition(issue, "Done")

    LEASE.reset(token)
    assert path.read_bytes() == before
