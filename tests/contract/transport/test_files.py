"""Small files: written, read and removed without following a link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio
import trio.testing

from sortie.model import TransportError
from sortie.transports import Transport


async def test_a_file_is_written_read_and_removed(transport: Transport, place: str) -> None:
    """A small file goes round, with the directories above it; what is absent is None."""
    absent = await transport.files.read_file(place, ".sortie/status", 10)
    await transport.files.remove_file(place, ".sortie/status")
    await transport.files.write_file(place, ".sortie/status", b"blocked\n")
    await transport.files.write_file(place, ".sortie/status", b"review\n")

    assert absent is None
    assert await transport.files.read_file(place, ".sortie/status", 100) == b"review\n"
    assert await transport.files.read_file(place, ".sortie/status", 3) == b"rev"
    assert os.listdir(f"{place}/.sortie") == ["status"]
    await transport.files.remove_file(place, ".sortie/status")
    assert await transport.files.read_file(place, ".sortie/status", 100) is None


async def test_no_link_is_followed_to_a_file(transport: Transport, place: str) -> None:
    """A link at the end or on the way is an error to read, and never written through."""
    outside = Path(place, "outside")
    outside.mkdir()
    Path(outside, "secret").write_text("secret")
    inside = Path(place, "inside")
    inside.mkdir()
    Path(inside, "file").symlink_to(outside / "secret")
    Path(inside, "folder").symlink_to(outside)
    Path(place, "itself").symlink_to(inside)

    for directory, name in (
        (inside, "file"),
        (inside, "folder/secret"),
        (place + "/itself", "file"),
    ):
        with pytest.raises(TransportError):
            await transport.files.read_file(str(directory), name, 10)
    with pytest.raises(TransportError):
        await transport.files.write_file(str(inside), "folder/secret", b"mine")
    with pytest.raises(TransportError):
        await transport.files.remove_file(str(inside), "folder/secret")
    await transport.files.write_file(str(inside), "file", b"mine")

    assert Path(outside, "secret").read_text() == "secret"
    assert Path(inside, "file").read_bytes() == b"mine"
    assert not Path(inside, "file").is_symlink()


async def test_what_is_no_regular_file_is_not_read(transport: Transport, place: str) -> None:
    """A FIFO, a directory, a socket or a device is refused at once, and can be removed."""
    os.mkfifo(Path(place, "fifo"))
    Path(place, "folder").mkdir()

    with trio.fail_after(60):
        for name in ("fifo", "folder"):
            with pytest.raises(TransportError, match=name):
                await transport.files.read_file(place, name, 10)
        with pytest.raises(TransportError):
            await transport.files.read_file("/dev", "zero", 10)
        await transport.files.remove_file(place, "fifo")
        with pytest.raises(TransportError):
            await transport.files.remove_file(place, "folder")
        with pytest.raises(TransportError):
            await transport.files.write_file(place, "folder", b"x")

    assert os.listdir(place) == ["folder"]


async def test_a_file_of_a_directory_inside_is_read(transport: Transport, place: str) -> None:
    """As any file is; below a directory that is elsewhere, a link or gone, nothing is read."""
    root, outside = Path(place, "root"), Path(place, "outside")
    for directory in (root / "a", root / "empty", outside):
        directory.mkdir(parents=True)
    (root / "a" / "file").write_text("inside")
    (outside / "file").write_text("outside")
    (root / "link").symlink_to(outside)
    (root / "way").symlink_to(place)

    async def read(directory: Path) -> bytes | None:
        return await transport.files.read_file_inside(str(root), str(directory), "file", 4)

    assert await read(root / "a") == b"insi"
    assert await read(root / "empty") is None
    for elsewhere in (outside, root, root / "link", root / "way" / "outside", root / "gone"):
        with pytest.raises(TransportError):
            await read(elsewhere)
