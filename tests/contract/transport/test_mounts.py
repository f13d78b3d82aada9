"""Removing a directory in which something is mounted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sortie.model import TransportError
from sortie.transports import Transport
from tests.transports.mounts import bound, requires_mounts

pytestmark = requires_mounts


@pytest.fixture
def victim(place: str) -> Path:
    """Give a directory with a precious file, closed to everybody, on the same file system."""
    victim = Path(place, "victim")
    (victim / "below").mkdir(parents=True)
    (victim / "precious").write_text("precious")
    (victim / "below" / "precious").write_text("precious")
    victim.chmod(0o500)
    return victim


@pytest.fixture
def root(place: str) -> Path:
    """Give a root with one directory, at a path that the system writes with escapes."""
    root = Path(place, "the \\ root")
    (root / "KEY-1" / "a" / "b").mkdir(parents=True)
    root.chmod(0o700)
    return root


@pytest.mark.parametrize("point", [".", "a", "a/b"])
async def test_what_is_mounted_in_a_directory_is_left_alone(
    transport: Transport, root: Path, victim: Path, point: str
) -> None:
    """The mount is named, nothing below it changes, and without it all can be removed."""
    target = root / "KEY-1" / point

    with bound(victim, target):
        with pytest.raises(TransportError) as caught:
            await transport.files.remove_directory(str(root), "KEY-1")
        mode = victim.stat().st_mode & 0o777

    assert os.path.realpath(target) in str(caught.value)
    assert mode == 0o500
    assert {p.name for p in victim.iterdir()} == {"precious", "below"}
    assert (victim / "below" / "precious").read_text() == "precious"
    assert await transport.files.remove_directory(str(root), "KEY-1")


async def test_a_file_that_is_mounted_over_is_left_alone(
    transport: Transport, root: Path, victim: Path
) -> None:
    """A mount over a single file is one as well; its name may hold any character."""
    target = root / "KEY-1" / "a" / "sec ret\n\\040"
    target.touch()

    with bound(victim / "precious", target), pytest.raises(TransportError, match="sec ret"):
        await transport.files.remove_directory(str(root), "KEY-1")

    assert (victim / "precious").read_text() == "precious"
    assert await transport.files.remove_directory(str(root), "KEY-1")


async def test_a_mount_beside_a_directory_does_not_matter(
    transport: Transport, root: Path, victim: Path
) -> None:
    """Neither one whose name begins alike, nor that the root itself is mounted."""
    (root / "KEY-10").mkdir()

    with bound(root, root), bound(victim, root / "KEY-10"):
        removed = await transport.files.remove_directory(str(root), "KEY-1")

    assert removed
    assert not (root / "KEY-1").exists()
    assert (victim / "precious").exists()
