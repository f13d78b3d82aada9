"""A file on disk holds its old or its new content, whatever fails."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from sortie.model import TrackerErrorKind
from sortie.trackers.file.disk import (
    Syscalls,
    replace_if_same,
    translated,
)


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


def test_short_writes_are_continued(tmp_path: Path) -> None:
    """A write that takes a part of the data is followed by another."""
    path = tmp_path / "a.md"
    path.write_bytes(b"old")
    calls = Syscalls(write=lambda fd, data: os.write(fd, data[:3]))

    replace_if_same(path, b"old", b"new content", calls)

    assert path.read_bytes() == b"new content"


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
