"""What is wrong with files is told under every name by which people may ask."""

from __future__ import annotations

from pathlib import Path

from tests.trackers.file.folders import Memory, make, names, write


async def test_a_malformed_file_answers_to_its_name_and_to_its_stem(
    tmp_path: Path, memory: Memory
) -> None:
    """Who asks for the issue or for the file is told what is wrong with it."""
    write(tmp_path, "A-1.md", front="labels: [\n")
    tracker = make(tmp_path, memory)

    await names(tracker)
    (unreadable,) = tracker.overview().unreadable

    assert {"A-1", "A-1.md"} <= unreadable.names
    assert unreadable.message.startswith("A-1.md:")


async def test_files_that_claim_one_name_answer_to_each_of_theirs(
    tmp_path: Path, memory: Memory
) -> None:
    """A copy of an issue's file is found by the name of the copy too."""
    write(tmp_path, "A-1.md")
    write(tmp_path, "A-2.md", front="id: A-1\n")
    write(tmp_path, "A-3.md")
    tracker = make(tmp_path, memory)

    await names(tracker)
    overview = tracker.overview()

    (unreadable,) = overview.unreadable
    assert {"A-1", "A-1.md", "A-2", "A-2.md"} <= unreadable.names
    assert [issue.identifier for issue in overview.issues] == ["A-3"]
