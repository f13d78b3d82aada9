"""Files that get another name, or another id, while Sortie runs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import structlog.testing

from sortie.model import IssueId
from sortie.trackers.file import issue_index as renames
from tests.trackers.file.folders import Memory, make, names, one, write


def renamed(folder: Path) -> None:
    (folder / "A.md").rename(folder / "B.md")


def moved_by_copy(folder: Path) -> None:
    shutil.copy(folder / "A.md", folder / "B.md")
    (folder / "A.md").unlink()


def renamed_and_edited(folder: Path) -> None:
    renamed(folder)
    text = (folder / "B.md").read_text()
    (folder / "B.md").write_text(text.replace("title: t", "title: u") + "more")


def written_anew_with_the_same_title(folder: Path) -> None:
    (folder / "A.md").unlink()
    write(folder, "new").rename(folder / "B.md")
    (folder / "B.md").write_text((folder / "B.md").read_text() + "other text")


def given_an_id(folder: Path) -> None:
    (folder / "A.md").write_text("---\nid: B\ntitle: u\nstate: Todo\n---\n")


WAYS = [
    renamed,
    moved_by_copy,
    renamed_and_edited,
    written_anew_with_the_same_title,
    given_an_id,
]


@pytest.mark.parametrize("way", WAYS)
async def test_a_renamed_issue_knows_its_former_id(
    folder: Path, memory: Memory, way: Callable[[Path], None]
) -> None:
    """However the old name went and the new one came, and also when it is read again."""
    tracker = make(folder, memory)
    write(folder, "A.md")
    assert await names(tracker) == {"A"}

    way(folder)
    first = await one(tracker, "B")
    (folder / "C.md").write_text("---\ntitle: x\nstate: Todo\n---\n")
    again = await one(tracker, "B")

    assert await names(tracker) == {"B", "C"}
    assert (first.formerly, again.formerly) == (("A",), ("A",))


async def test_names_add_up_and_never_hold_the_own_one(folder: Path, memory: Memory) -> None:
    """A second renaming keeps the first; one that is taken back leaves the other behind."""
    tracker = make(folder, memory)
    write(folder, "A.md")
    formerly = []
    for old, new in (("A", "B"), ("B", "C"), ("C", "A")):
        await names(tracker)
        (folder / f"{old}.md").rename(folder / f"{new}.md")
        formerly.append((await one(tracker, new)).formerly)

    assert formerly == [("A",), ("A", "B"), ("B", "C")]


def saved(path: Path, title: str) -> None:
    """Write a file as many editors do: a new one in its place. The old one is kept elsewhere, so
    that its inode is not used again."""
    path.rename(path.with_name(f"{path.stem}-{title}.bak"))
    path.write_text(f"---\ntitle: {title}\nstate: Todo\n---\n")


async def test_an_edit_keeps_what_an_issue_was_called(folder: Path, memory: Memory) -> None:
    """A renamed issue that is edited is still the one that somebody may work on."""
    tracker = make(folder, memory)
    write(folder, "A.md")
    await names(tracker)
    renamed(folder)
    await names(tracker)

    saved(folder / "B.md", "u")

    assert (await one(tracker, "B")).formerly == ("A",)


async def test_a_second_renaming_keeps_the_first_one_after_an_edit(
    folder: Path, memory: Memory
) -> None:
    """The first name is known through the second one, though nothing else leads to it."""
    tracker = make(folder, memory)
    write(folder, "A.md")
    await names(tracker)
    renamed(folder)
    await names(tracker)
    saved(folder / "B.md", "u")
    await names(tracker)

    (folder / "B.md").rename(folder / "C.md")

    assert (await one(tracker, "C")).formerly == ("A", "B")


async def test_a_file_that_was_saved_unchanged_is_known_when_it_is_renamed(
    folder: Path, memory: Memory
) -> None:
    """The file that is there now is the one that may get another name, not that of the first
    look."""
    tracker = make(folder, memory)
    write(folder, "A.md")
    await names(tracker)
    saved(folder / "A.md", "t")
    await names(tracker)

    renamed_and_edited(folder)

    assert (await one(tracker, "B")).formerly == ("A",)


async def test_an_issue_that_was_away_for_a_while_is_known_again(
    folder: Path, memory: Memory, tmp_path: Path
) -> None:
    """Moved out in one look and in under another name in a later one, it is the same file."""
    tracker = make(folder, memory)
    path = write(folder, "A.md")
    await names(tracker)
    path.rename(tmp_path / "elsewhere")
    write(folder, "other.md", "id: X\n").write_text("---\ntitle: z\nstate: Todo\n---\n")
    await names(tracker)

    (tmp_path / "elsewhere").rename(folder / "B.md")

    assert (await one(tracker, "B")).formerly == ("A",)


async def test_a_copy_is_an_issue_of_its_own(folder: Path, memory: Memory) -> None:
    """A file that served as a template stays, so that nothing was renamed."""
    tracker = make(folder, memory)
    write(folder, "A.md")
    await names(tracker)

    shutil.copy(folder / "A.md", folder / "B.md")

    assert (await one(tracker, "B")).formerly == ()


async def test_what_is_remembered_is_bounded(
    folder: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that come and go for ever do not fill the memory; the last ones are known."""
    monkeypatch.setattr(renames, "GONE_LIMIT", 3)
    monkeypatch.setattr(renames, "FORMER_LIMIT", 2)
    tracker = make(folder, memory)
    for number in range(10):
        text = f"---\ntitle: t{number}\nstate: Todo\n---\n"
        (folder / "F.md").write_text(text.replace("title", f"id: I{number}\ntitle"))
        await names(tracker)
    (folder / "F.md").unlink()
    await names(tracker)

    assert [gone.ids for gone in tracker._reading.gone] == [
        ("I5", "I6", "I7"),
        ("I6", "I7", "I8"),
        ("I7", "I8", "I9"),
    ]


async def test_the_suffix_may_be_capitalized(folder: Path, memory: Memory) -> None:
    """X.MD is an issue whose id is X."""
    write(folder, "X.MD")
    write(folder, "Y.Md")

    assert await names(make(folder, memory)) == {"X", "Y"}


async def test_a_readme_is_told_once_in_words(folder: Path, memory: Memory) -> None:
    """A file about the folder is no malformed issue, however often it is edited."""
    tracker = make(folder, memory)
    write(folder, "A.md")

    with structlog.testing.capture_logs() as log:
        for text in ("# Our issues\n", "# All our issues\n", ""):
            (folder / "README.md").write_text(text)
            assert await names(tracker) == {"A"}
            await tracker.fetch_by_ids([])

    assert [(entry["event"], entry["log_level"], entry["error"]) for entry in log] == [
        (
            "tracker.file_ignored",
            "warning",
            "README.md: is no issue, since it does not begin with a line ---; left alone",
        )
    ]
    assert tracker.overview().unreadable == ()


async def test_a_readme_that_was_an_issue_is_one_still(folder: Path, memory: Memory) -> None:
    """With front matter it is an issue, and one that lost it is malformed, not gone."""
    tracker = make(folder, memory)
    path = write(folder, "README.md")
    assert await names(tracker) == {"README"}
    path.write_text("oops")

    read = await tracker.fetch_by_ids([IssueId("README")])

    assert list(read.failed) == ["README"]
