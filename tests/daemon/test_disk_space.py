"""How much room is left: as of the last look, which hangs for nobody."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
import trio
import trio.testing

from sortie.daemon import disk_space
from sortie.daemon.disk_space import DiskSpace, room_at


def test_room_is_that_of_the_file_system_on_which_a_path_would_be_made(tmp_path: Path) -> None:
    """Free bytes are those for an ordinary user; the path itself need not be there."""
    found = os.statvfs(tmp_path)

    free, size = room_at(str(tmp_path / "not" / "there"))

    assert size == found.f_blocks * found.f_frsize
    assert 0 < free <= size


async def test_asking_is_what_has_it_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is that of the last look; two questions at a time bring one look."""
    looks: list[str] = []

    def room(path: str) -> tuple[float, float]:
        looks.append(path)
        return float(len(looks)), 100.0

    monkeypatch.setattr(disk_space, "room_at", room)
    async with trio.open_nursery() as nursery:
        disks = DiskSpace(nursery, {"database": "/a"})
        nothing, again = disks.known(), disks.known()
        await trio.testing.wait_all_tasks_blocked()
    first = len(looks)
    async with trio.open_nursery() as nursery:
        disks = DiskSpace(nursery, {"database": "/a"})
        await disks.look()
        known = disks.known()

    assert (nothing, again, first) == ({}, {}, 1)
    assert known == {"database": (2.0, 100.0)}
    assert len(looks) == 3


async def test_a_disk_that_hangs_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no value, others have; and it never takes more than one thread."""
    go_on, threads = threading.Event(), []

    def room(path: str) -> tuple[float, float]:
        if path == "/hangs":
            threads.append(path)
            go_on.wait(20)
        return 1.0, 2.0

    monkeypatch.setattr(disk_space, "room_at", room)
    monkeypatch.setattr(disk_space, "LOOK_LIMIT", 0.1)
    try:
        async with trio.open_nursery() as nursery:
            disks = DiskSpace(nursery, {"database": "/well", "workspaces": "/hangs"})
            await disks.look()
            await disks.look()
            nursery.cancel_scope.cancel()
            known = disks.known()
    finally:
        go_on.set()

    assert known == {"database": (1.0, 2.0)}
    assert threads == ["/hangs"]
