"""A file on disk holds its old or its new content, whatever fails."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sortie.model import TrackerErrorKind
from sortie.trackers.file.disk import (
    LOCK_NAME,
    LockTaken,
    NotAFile,
    Syscalls,
    locked,
    read,
    remove_leftovers,
    replace_if_same,
    translated,
)


def failing(number: int) -> Callable[..., int]:
    def fail(*_args: object) -> int:
        raise OSError(number, os.strerror(number))

    return fail


def test_a_replacement_keeps_the_mode_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """The new content has the old file's permissions, and is the only file there."""
    path = tmp_path / "a.md"
    path.write_bytes(b"old")
    path.chmod(0o640)

    done = replace_if_same(path, b"old", b"new", Syscalls())

    assert done
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o7777 == 0o640
    assert os.listdir(tmp_path) == ["a.md"]


@pytest.mark.parametrize(
    "calls",
    [
        Syscalls(write=failing(errno.ENOSPC)),
        Syscalls(fsync=failing(errno.EIO)),
        Syscalls(replace=failing(errno.EACCES)),
    ],
    ids=["no-space", "broken", "refused"],
)
def test_a_failed_replacement_leaves_the_old_content_alone(tmp_path: Path, calls: Syscalls) -> None:
    """A full or broken disk costs the change, not the issue, and no file is left over."""
    path = tmp_path / "a.md"
    path.write_bytes(b"old")

    with pytest.raises(OSError):
        replace_if_same(path, b"old", b"new", calls)

    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.md"]


def test_short_writes_are_continued(tmp_path: Path) -> None:
    """A write that takes a part of the data is followed by another."""
    path = tmp_path / "a.md"
    path.write_bytes(b"old")
    calls = Syscalls(write=lambda fd, data: os.write(fd, data[:3]))

    replace_if_same(path, b"old", b"new content", calls)

    assert path.read_bytes() == b"new content"


def test_a_file_that_somebody_else_changed_is_not_replaced(tmp_path: Path) -> None:
    """The content is compared at the last moment: another's change, or removal, stands."""
    path = tmp_path / "a.md"
    path.write_bytes(b"old")
    edited = Syscalls(fsync=lambda _fd: path.write_bytes(b"edited"))
    removed = Syscalls(fsync=lambda _fd: path.unlink())

    first = replace_if_same(path, b"old", b"new", edited)
    content = path.read_bytes()
    second = replace_if_same(path, b"edited", b"new", removed)

    assert (first, content, second) == (False, b"edited", False)
    assert os.listdir(tmp_path) == []


def test_only_regular_files_are_read_and_none_is_waited_for(tmp_path: Path) -> None:
    """Links, FIFOs, directories and too large files are refused at once."""
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "directory").mkdir()

    raw, _ = read(tmp_path / "file", 5)

    assert raw == b"12345"
    for name, limit in (("file", 4), ("link", 5), ("fifo", 5), ("directory", 5)):
        with pytest.raises(NotAFile):
            read(tmp_path / name, limit)


def test_the_lock_is_one_holders_only(tmp_path: Path) -> None:
    """A second holder is turned away at once, and let in when the first is gone."""
    with locked(tmp_path), pytest.raises(LockTaken), locked(tmp_path):
        pass

    with locked(tmp_path):
        pass

    assert os.listdir(tmp_path) == [LOCK_NAME]


def test_leftovers_of_a_killed_writer_are_removed(tmp_path: Path) -> None:
    """Only Sortie's own temporary files go."""
    for name in (".sortie-tracker-x1.tmp", ".sortie-tracker-lock", "a.md", ".a.md.tmp"):
        (tmp_path / name).write_bytes(b"")

    remove_leftovers(tmp_path)

    assert sorted(os.listdir(tmp_path)) == [".a.md.tmp", ".sortie-tracker-lock", "a.md"]


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.EACCES, TrackerErrorKind.PERMISSION),
        (errno.EPERM, TrackerErrorKind.PERMISSION),
        (errno.EROFS, TrackerErrorKind.PERMISSION),
        (errno.ENOSPC, TrackerErrorKind.UNAVAILABLE),
        (errno.EIO, TrackerErrorKind.UNAVAILABLE),
        (errno.ESTALE, TrackerErrorKind.UNAVAILABLE),
    ],
)
def test_errors_of_the_system_become_errors_of_the_port(
    number: int, kind: TrackerErrorKind
) -> None:
    """What a person must mend is a permission error, what may pass is an outage."""
    error = translated(OSError(number, "reason", "/x"), "cannot write")

    assert error.kind is kind
    assert str(error).startswith("cannot write: reason ('/x')")
