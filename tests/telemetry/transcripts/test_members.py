"""Members: what is packed can be read again, and what is cut or damaged is known for that."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.telemetry.transcripts.members import Member, members, packed, unpacked

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
def opened(path: Path, content: bytes) -> Iterator[int]:
    """Have a file with this content, open."""
    path.write_bytes(content)
    fd = os.open(path, os.O_RDONLY)
    try:
        yield fd
    finally:
        os.close(fd)


def test_members_say_what_they_hold(tmp_path: Path) -> None:
    """Each knows its lines, its place, and whether it is the last; what it holds comes back."""
    with opened(tmp_path / "file", file_of(PAYLOADS)) as fd:
        found = list(members(fd))
        held = [unpacked(fd, member) for member in found]

    assert held == [*PAYLOADS]
    assert [(member.first, member.last, member.ends) for member in found] == [
        (1, 1, False),
        (2, 5001, False),
        (5002, 5002, True),
    ]
    assert [member.offset for member in found[1:]] == [member.end for member in found[:-1]]


def test_any_gzip_program_reads_it() -> None:
    """The file is a gzip file, whatever its headers say more."""
    assert gzip.decompress(file_of(PAYLOADS)) == b"".join(PAYLOADS)


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
    with opened(tmp_path / "file", bytes(content)) as fd:
        (member,) = members(fd)

        with pytest.raises(ValueError, match="damaged"):
            unpacked(fd, member)


def test_a_member_that_unpacks_to_more_than_it_says_is_refused(tmp_path: Path) -> None:
    """No more is unpacked than the header allows for."""
    with opened(tmp_path / "file", packed(bytes(1 << 20), 1, 1, ends=False)) as fd:
        (member,) = members(fd)
        small = Member(offset=0, size=member.size, first=1, lines=1, unpacked=10, ends=False)

        with pytest.raises(ValueError, match="damaged"):
            unpacked(fd, small)
