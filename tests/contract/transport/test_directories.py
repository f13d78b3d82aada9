"""Directories: made and removed inside their root, and who lives in them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sortie.model import TransportError
from sortie.transports import Transport
from tests.contract.transport.launching import Launch, program_of


async def test_who_lives_in_a_directory_is_told(
    transport: Transport, launch: Launch, place: str
) -> None:
    """A process is found by its working directory, in and below the directory only."""
    for name in ("home", "home/room", "homestead"):
        Path(place, name).mkdir()

    async with (
        transport.process(launch("sleep", "1000", cwd=f"{place}/home")) as one,
        transport.process(launch("sleep", "1000", cwd=f"{place}/home/room")) as two,
        transport.process(launch("sleep", "1000", cwd=f"{place}/homestead")),
    ):
        pids = {await program_of(one), await program_of(two)}
        occupied = await transport.occupied(f"{place}/home")
        empty = await transport.occupied(f"{place}/hom")
        where = {pid: os.readlink(f"/proc/{pid}/cwd") for pid in occupied}

    # Beside a program there may be what keeps its namespace and waits for it.
    assert pids <= set(occupied)
    assert {where[pid] for pid in occupied} == {f"{place}/home", f"{place}/home/room"}
    assert list(empty) == []


async def test_a_directory_is_made_once(transport: Transport, place: str) -> None:
    """The root is made for ourselves alone, and its directories are new the first time only."""
    root = f"{place}/deep/root"

    first = await transport.files.make_directory(root, "KEY-1")
    second = await transport.files.make_directory(root + "/", "KEY-1")

    path = os.path.join(os.path.realpath(root), "KEY-1")
    assert (first, second) == ((path, True), (path, False))
    assert [Path(p).stat().st_mode & 0o777 for p in (root, path)] == [0o700, 0o700]
    assert await transport.files.contained(root, path)


async def test_the_real_path_of_a_directory_is_told(transport: Transport, place: str) -> None:
    """Links on the way to the root are resolved."""
    Path(place, "real").mkdir()
    Path(place, "link").symlink_to("real")

    path, _ = await transport.files.make_directory(f"{place}/link/root", "KEY-1")

    assert path == os.path.realpath(f"{place}/real/root/KEY-1")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "/etc", "a\0b", "x" * 300])
async def test_a_name_that_could_escape_is_refused(
    transport: Transport, place: str, name: str
) -> None:
    """No name leads out of the root, to the root itself or to nowhere."""
    with pytest.raises(TransportError):
        await transport.files.make_directory(place, name)
    with pytest.raises(TransportError):
        await transport.files.remove_directory(place, name)
    for method in (
        transport.files.remove_file(place, name),
        transport.files.write_file(place, name, b"x"),
    ):
        if name == "a/b":
            await method
        else:
            with pytest.raises(TransportError):
                await method


async def test_a_root_that_is_a_link_is_refused(transport: Transport, place: str) -> None:
    """A link as the root is neither used nor emptied, with a slash at its end or without."""
    Path(place, "real").mkdir()
    Path(place, "real", "KEY-1").mkdir()
    Path(place, "root").symlink_to("real")

    for root in (f"{place}/root", f"{place}/root/", f"{place}/root/."):
        with pytest.raises(TransportError):
            await transport.files.make_directory(root, "KEY-1")
        with pytest.raises(TransportError):
            await transport.files.remove_directory(root, "KEY-1")

    assert Path(place, "real", "KEY-1").is_dir()


async def test_what_is_no_directory_is_left_alone(transport: Transport, place: str) -> None:
    """A file, a FIFO and a link, even to a directory, are errors and stay."""
    outside = Path(place, "outside")
    outside.mkdir()
    root = Path(place, "root")
    root.mkdir(mode=0o700)
    Path(root, "file").write_text("precious")
    os.mkfifo(Path(root, "fifo"))
    Path(root, "link").symlink_to(outside)
    Path(root, "inside").mkdir()
    Path(root, "inner").symlink_to("inside")
    Path(root, "dangling").symlink_to("nowhere")

    for name in ("file", "fifo", "link", "inner", "dangling"):
        with pytest.raises(TransportError):
            await transport.files.make_directory(str(root), name)
        with pytest.raises(TransportError):
            await transport.files.remove_directory(str(root), name)
        assert not await transport.files.contained(str(root), str(root / name))

    present = {p.name for p in root.iterdir()}
    assert present == {"file", "fifo", "link", "inside", "inner", "dangling"}
    assert outside.is_dir()


async def test_containment_goes_by_real_paths(transport: Transport, place: str) -> None:
    """Only a directory strictly inside the root is contained."""
    for name in ("root/in", "rootless"):
        Path(place, name).mkdir(parents=True)
    Path(place, "root", "out").symlink_to(place)

    verdicts = {
        path: await transport.files.contained(f"{place}/root", f"{place}/{path}")
        for path in ("root/in", "root", "rootless", "root/none", "root/out", "root/in/../..")
    }

    assert verdicts == {
        "root/in": True,
        "root": False,
        "rootless": False,
        "root/none": False,
        "root/out": False,
        "root/in/../..": False,
    }
    assert not await transport.files.contained(f"{place}/none", f"{place}/root/in")


async def test_a_directory_is_removed_with_all_it_holds(transport: Transport, place: str) -> None:
    """Links are removed and not followed; modes and depth do not matter."""
    outside = Path(place, "outside")
    outside.mkdir()
    Path(outside, "precious").touch()
    root = Path(place, "root")
    victim = root / "KEY-1"
    deep = victim
    for _ in range(3):
        deep = deep / "sub"
    deep.mkdir(parents=True)
    Path(deep, "link").symlink_to(outside)
    Path(victim, "up").symlink_to("..")
    os.mkfifo(Path(deep, "fifo"))
    deep.chmod(0o500)
    deep.parent.chmod(0)
    root.chmod(0o700)

    removed = await transport.files.remove_directory(str(root), "KEY-1")
    again = await transport.files.remove_directory(str(root), "KEY-1")
    rootless = await transport.files.remove_directory(f"{place}/none", "KEY-1")

    assert (removed, again, rootless) == (True, False, False)
    assert list(root.iterdir()) == []
    assert Path(outside, "precious").exists()


async def test_a_tree_of_any_depth_is_removed(transport: Transport, place: str) -> None:
    """More than a thousand levels, longer than any path may be, need no more of anything."""
    root = Path(place, "root")
    Path(root, "KEY-1").mkdir(parents=True)
    fd = os.open(root / "KEY-1", os.O_RDONLY)
    for number in range(1100):
        os.mkdir("directory", dir_fd=fd)
        os.mkdir(f"{number}.removed", dir_fd=fd)
        below = os.open("directory", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)

    assert await transport.files.remove_directory(str(root), "KEY-1")

    assert list(root.iterdir()) == []
