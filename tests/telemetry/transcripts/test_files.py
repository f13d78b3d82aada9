"""Files of transcripts: closed to others, without links, and damage in one is noticed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.model import RunId
from sortie.telemetry.private_directory import opened
from sortie.telemetry.transcripts import is_run_id
from sortie.telemetry.transcripts.files import OURS, Member, members, name_of, packed, unpacked
from tests.telemetry.transcripts.fake import RUN

BAD_IDS = [
    "",
    ".",
    "..",
    "../../etc/passwd",
    "a" * 36,
    RUN.replace("-", "/"),
    f"{RUN}\n",
    f"{RUN}x",
]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "here.transcripts"


def file_in(place: Path) -> Path:
    return place / f"{RUN}.jsonl.gz"


def test_nobody_else_can_read_it(place: Path) -> None:
    """Directory and file are their owner's, whatever the umask and the directory's mode were."""
    old = os.umask(0)
    try:
        place.mkdir(mode=0o777)
        with opened(str(place), make=True) as directory:
            directory.append(name_of(RUN), b"one", 0)
    finally:
        os.umask(old)

    assert (mode(place), mode(file_in(place))) == (0o700, 0o600)


@pytest.mark.parametrize("name", BAD_IDS)
def test_only_ids_of_runs_are_names(name: str) -> None:
    """No other text reaches a path, so that none leads elsewhere."""
    assert not is_run_id(name)
    with pytest.raises(OSError, match="no run has such an id"):
        name_of(RunId(name))


def test_no_link_is_followed(place: Path, tmp_path: Path) -> None:
    """Neither in place of the directory nor of a file, which may be a second name of another."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    place.mkdir()
    traps: list[Callable[[], None]] = [
        lambda: file_in(place).symlink_to(victim),
        lambda: file_in(place).hardlink_to(victim),
        lambda: os.mkfifo(file_in(place)),
        lambda: file_in(place).mkdir(),
    ]
    for put in traps:
        put()
        with opened(str(place)) as directory, pytest.raises(OSError):
            directory.append(name_of(RUN), b"evil", 0)
        if file_in(place).is_dir():
            file_in(place).rmdir()
        else:
            file_in(place).unlink()
    elsewhere = tmp_path / "link"
    elsewhere.symlink_to(place)
    with pytest.raises(OSError), opened(str(elsewhere), make=True):
        raise AssertionError("it was opened")

    assert victim.read_bytes() == b"precious"


def test_what_a_failed_write_left_is_overwritten(place: Path) -> None:
    """A file goes on where the last write that succeeded ended, and never before that."""
    with opened(str(place), make=True) as directory:
        directory.append(name_of(RUN), b"whole", 0)
        with file_in(place).open("ab") as file:
            file.write(b"torn, and long")
        directory.append(name_of(RUN), b" again", 5)
        with pytest.raises(OSError, match="shorter"):
            directory.append(name_of(RUN), b"late", 50)

    assert file_in(place).read_bytes() == b"whole again"


def test_what_is_there_is_listed(place: Path) -> None:
    """Files of runs with their sizes; halves of a crash are removed, and others left alone."""
    with opened(str(place), make=True) as directory:
        directory.append(name_of(RUN), b"12345", 0)
        (place / f"{RUN}.jsonl.gz.new").write_bytes(b"half")
        (place / "notes.txt").write_text("somebody's")
        found = [(each.name, each.size) for each in directory.stored(OURS)]

    assert found == [(name_of(RUN), 5)]
    assert sorted(path.name for path in place.iterdir()) == [f"{RUN}.jsonl.gz", "notes.txt"]


PAYLOADS = (b"one\n", b"two\n" * 5000, b"three\n")


def file_of(payloads: tuple[bytes, ...]) -> bytes:
    """Return a file whose members have so many lines as their payloads."""
    parts, line = [], 1
    for number, payload in enumerate(payloads, 1):
        lines = payload.count(b"\n")
        parts.append(packed(payload, line, lines, ends=number == len(payloads)))
        line += lines
    return b"".join(parts)


@contextmanager
def file_with(path: Path, content: bytes) -> Iterator[int]:
    """Have a file with this content, open."""
    path.write_bytes(content)
    fd = os.open(path, os.O_RDONLY)
    try:
        yield fd
    finally:
        os.close(fd)


@given(st.integers(0, len(file_of(PAYLOADS))))
def test_a_cut_loses_what_is_behind_it(at: int) -> None:
    """Wherever a crash cuts the file, the members before that are whole, and the rest is none."""
    whole = file_of(PAYLOADS)
    ends, end = [], 0
    for payload in PAYLOADS:
        end += len(packed(payload, 1, 1, ends=False))
        ends.append(end)

    fd = os.memfd_create("cut")
    try:
        os.write(fd, whole[:at])
        found = list(members(fd))
        held = tuple(unpacked(fd, member) for member in found)
    finally:
        os.close(fd)

    assert held == PAYLOADS[: sum(end <= at for end in ends)]


@given(st.binary(max_size=200))
def test_what_is_no_member_is_none(garbage: bytes) -> None:
    """Behind the members anything may stand, and is not taken for one."""
    fd = os.memfd_create("garbage")
    try:
        os.write(fd, file_of(PAYLOADS) + garbage)
        found = list(members(fd))
    finally:
        os.close(fd)

    assert len(found) == len(PAYLOADS)


@pytest.mark.parametrize("at", [-1, -6, -12])
def test_damage_is_noticed(tmp_path: Path, at: int) -> None:
    """A member whose body or trailer was changed is not believed."""
    content = bytearray(file_of(PAYLOADS[:1]))
    content[at] ^= 0xFF
    with file_with(tmp_path / "file", bytes(content)) as fd:
        (member,) = members(fd)

        with pytest.raises(ValueError, match="damaged"):
            unpacked(fd, member)


def test_a_member_that_unpacks_to_more_than_it_says_is_refused(tmp_path: Path) -> None:
    """No more is unpacked than the header allows for."""
    with file_with(tmp_path / "file", packed(bytes(1 << 20), 1, 1, ends=False)) as fd:
        (member,) = members(fd)
        small = Member(offset=0, size=member.size, first=1, lines=1, unpacked=10, ends=False)

        with pytest.raises(ValueError, match="damaged"):
            unpacked(fd, small)
