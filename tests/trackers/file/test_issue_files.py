"""Looking at files costs little where nothing changed, and never misses a change."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from sortie.model import IssueId
from sortie.trackers.file import disk
from sortie.trackers.file.issue_files import IssueFiles
from sortie.trackers.file.issue_index import FilesRead


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "A.md"
    path.write_text("---\ntitle: t\nstate: Todo\n---\n", encoding="utf-8")
    return path


def changed_at(file: Path) -> float:
    status = file.stat()
    return max(status.st_mtime_ns, status.st_ctime_ns) / 1e9


def titles(reading: FilesRead) -> list[str]:
    return [found.issue.title for found in reading.index.found.values()]


def test_a_file_is_not_trusted_while_a_second_change_could_look_the_same(file: Path) -> None:
    """For two seconds after a change its times prove nothing; from then on they do."""
    files = IssueFiles(file.parent)
    changed = changed_at(file)

    early = files.look(FilesRead(), changed + 1.9)
    late = files.look(early, changed + 2.1)

    assert early.documents["A.md"].stamp is None
    assert late.documents["A.md"].stamp == disk.stamp(file.stat())
    assert titles(early) == titles(late) == ["t"]


def test_a_trusted_file_is_not_read_again(file: Path) -> None:
    """What is known of it is given, until its times change."""
    files = IssueFiles(file.parent)
    known = files.look(FilesRead(), changed_at(file) + 10)
    file.unlink()
    file.write_bytes(b"\xff")
    pretended = replace(known.documents["A.md"], stamp=disk.stamp(file.stat()))
    unread = replace(known, documents={"A.md": pretended})

    trusted = files.look(unread, 0.0)
    file.touch()
    read = files.look(unread, 0.0)

    assert trusted is unread
    assert titles(read) == []
    assert set(read.index.troubles) == {IssueId("A")}
