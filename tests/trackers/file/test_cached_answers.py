"""What is remembered of files changes no answer: a tracker that has just begun gives the same."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import trio
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sortie.model import Issue, IssueId
from sortie.trackers.file.issue_files import IssueFiles
from sortie.trackers.file.tracker import FileTracker
from tests.trackers.file.folders import Memory, make, one, write

STATES = ["todo", "done"]
IDS = ["A", "B", "C", "D"]
NAMES = [f"{name}.md" for name in IDS]

FIELDS = st.fixed_dictionaries(
    {"title": st.sampled_from(["s", "t"]), "state": st.sampled_from(["Todo", "Done", "Else", "["])},
    optional={
        "id": st.sampled_from(IDS),
        "identifier": st.sampled_from(IDS),
        "blocked_by": st.sampled_from(["A", "B", "[A, B]", "E"]),
        "created_at": st.just("2026-01-01"),
    },
)
EDITS = st.tuples(
    st.sampled_from(
        ["write", "write", "write", "forge", "rename", "replace", "lose", "link", "mkdir", "chmod"]
    ),
    st.sampled_from(NAMES),
    st.sampled_from(NAMES),
    FIELDS,
)
Edit = tuple[str, str, str, dict[str, str]]


def edit(folder: Path, what: Edit) -> None:
    """Do to the files what people, editors and git do; nothing where it cannot be done."""
    kind, name, other, fields = what
    path, text = folder / name, "".join(f"{key}: {value}\n" for key, value in fields.items())
    is_file = path.is_file() and not path.is_symlink()
    match kind:
        case "write" if is_file or not os.path.lexists(path):
            path.write_text(f"---\n{text}---\n")
        case "forge" if is_file:  # the size and the time of the last change stay as they were
            status, old = path.stat(), path.read_text()
            path.write_text(old.replace("Todo", "Done").replace("title: s", "title: t"))
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        case "rename" if os.path.lexists(path) and not (path.is_dir() or (folder / other).is_dir()):
            path.rename(folder / other)
        case "replace" if not path.is_dir():
            (folder / "new").write_text(f"---\n{text}---\n")
            (folder / "new").rename(path)
        case "lose" if os.path.lexists(path):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        case "link" if not os.path.lexists(path):
            path.symlink_to(other)
        case "mkdir" if not os.path.lexists(path):
            path.mkdir()
        case "chmod" if is_file:
            path.chmod(path.stat().st_mode ^ 0o040)
        case _:
            pass


def let_time_pass(folder: Path) -> None:
    """Wait until the file system's clock, which ticks every few milliseconds, has moved on.

    So the next change leaves another time than any before, as all do that are seconds apart.
    """
    newest = max(path.lstat().st_ctime_ns for path in (folder, *folder.iterdir()))
    probe = folder.parent / "probe"
    probe.touch()
    while probe.stat().st_ctime_ns <= newest:
        probe.touch()


def later() -> datetime:
    """Return a time at which each change of today has settled."""
    return datetime.now(UTC) + timedelta(days=1)


async def listed(tracker: FileTracker) -> dict[str, object]:
    """Return what a list and the overview say, without what only memory can tell."""
    issues = {i.id: replace(i, formerly=()) for i in await tracker.fetch_candidates(STATES)}
    overview = tracker.overview()
    known = {i.id: replace(i, formerly=()) for i in overview.issues}
    return {"list": issues, "known": known, "bad": {u.message for u in overview.unreadable}}


async def reread(tracker: FileTracker, issue_id: str) -> tuple[Issue | None, bool]:
    """Return what a re-read says of an issue, and whether it could be told at all."""
    read = await tracker.fetch_by_ids([IssueId(issue_id)])
    found = [replace(issue, formerly=()) for issue in read.issues]
    return (found[0] if found else None), not read.failed


async def move_all(tracker: FileTracker, fresh: FileTracker) -> None:
    """Move every issue that can be given."""
    for issue in fresh.overview().issues:
        moved = await tracker.transition(issue, "Done" if issue.state == "Todo" else "Todo")
        assert moved.state != issue.state


@given(
    st.lists(
        st.tuples(st.lists(EDITS, max_size=4), st.sampled_from(["list", "move", *IDS])), max_size=8
    )
)
def test_answers_are_those_of_a_tracker_that_has_just_begun(
    history: list[tuple[list[Edit], str]],
) -> None:
    """After edits, renames, removals, links, forged times and changed modes, whatever was asked
    in between; but for a second file that claims a name, which is the next list's to tell."""

    async def live(folder: Path) -> None:
        tracker = FileTracker(IssueFiles(folder), Memory(), later)
        for happened, question in history:
            for each in happened:
                let_time_pass(folder)
                edit(folder, each)
            fresh = make(folder, Memory())
            expected = await listed(fresh)
            if question == "move":
                let_time_pass(folder)
                await move_all(tracker, fresh)
            elif question == "list" or "must be one issue's only" in str(expected):
                assert await listed(tracker) == expected
            else:
                given, wanted = await reread(tracker, question), await reread(fresh, question)
                assert given[0] == wanted[0]
                # of a file that cannot be read, the id that it had before is remembered
                assert given[1] == wanted[1] or expected["bad"]

    with TemporaryDirectory() as directory:
        (folder := Path(directory) / "issues").mkdir()
        trio.run(live, folder)


async def test_a_reread_tells_how_what_blocks_the_issue_stands_now(
    folder: Path, memory: Memory
) -> None:
    """Also where it was moved to another file, and where nobody had heard of it."""
    write(folder, "A.md", "blocked_by: [B, C]\n")
    blocker = write(folder, "B.md")
    tracker = make(folder, memory)
    await tracker.fetch_candidates(STATES)

    blocker.write_text(blocker.read_text().replace("Todo", "Done"))
    edited = await one(tracker, "A")
    blocker.write_text(blocker.read_text().replace("Done", "Else"))
    blocker.rename(folder / "X.md")
    (folder / "X.md").write_text("---\nidentifier: B\ntitle: t\nstate: Else\n---\n")
    write(folder, "C.md")
    moved = await one(tracker, "A")

    assert [b.state for b in edited.blocked_by] == ["Done", None]
    assert [b.state for b in moved.blocked_by] == ["Else", "Todo"]


async def test_a_second_file_with_its_id_is_told_by_the_next_list(
    folder: Path, memory: Memory
) -> None:
    """A re-read is about the file in which the issue is known to be; from the list on it fails."""
    write(folder, "A.md")
    tracker = make(folder, memory)
    await tracker.fetch_candidates(STATES)
    write(folder, "B.md", "id: A\n")

    before = await tracker.fetch_by_ids([IssueId("A")])
    found = await tracker.fetch_candidates(STATES)
    after = await tracker.fetch_by_ids([IssueId("A")])

    assert ([issue.id for issue in before.issues], found, list(after.failed)) == (["A"], (), ["A"])


async def test_what_did_not_change_is_the_same_object(folder: Path, memory: Memory) -> None:
    """The list and the overview, so that the caller need not look at them again."""
    write(folder, "A.md", "blocked_by: [B]\n")
    write(folder, "B.md", "blocked_by: [C]\n")
    blocker = write(folder, "C.md")
    tracker = make(folder, memory)

    first, overview = await tracker.fetch_candidates(STATES), tracker.overview()
    again, same_overview = await tracker.fetch_candidates(STATES), tracker.overview()
    blocker.write_text(blocker.read_text().replace("Todo", "Done"))
    others = await tracker.fetch_candidates(["done"])

    assert again is first
    assert same_overview is overview
    assert [issue.id for issue in others] == ["C"]


async def test_a_reread_looks_at_no_file_that_has_nothing_to_do_with_it(
    folder: Path, memory: Memory
) -> None:
    """What is wrong elsewhere is told by the next list, so that the number of files costs nothing;
    an issue that is not known, or not there any more, is looked for everywhere."""
    write(folder, "A.md")
    tracker = make(folder, memory)
    await tracker.fetch_candidates(STATES)
    (folder / "bad.md").write_text("---\nstate: [\n---\n")

    await tracker.fetch_by_ids([IssueId("A")])
    unnoticed = tracker.overview().unreadable
    await tracker.fetch_by_ids([IssueId("nobody")])
    noticed = tracker.overview().unreadable

    assert (unnoticed, len(noticed)) == ((), 1)
