"""A change of WORKFLOW.md is noticed, however it is made."""

from __future__ import annotations

import shutil
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import trio

from sortie.resources import Resource, Shortage, run_in_thread
from sortie.workflow import watcher
from sortie.workflow.watcher import watch


class Changes:
    """Waits for notifications; those that came before an action do not count for it."""

    def __init__(self) -> None:
        self.count = 0
        self._told = trio.Event()

    def notify(self) -> None:
        """Count a notification."""
        self.count += 1
        self._told.set()

    async def after(self, action: Callable[[], object]) -> None:
        """Do something and wait until it was noticed and all is quiet again."""
        self._told = trio.Event()
        action()
        with trio.fail_after(60):
            await self._told.wait()
        await self.quiet()

    async def quiet(self) -> None:
        """Wait until nothing was noticed for a while: editors cause several events."""
        while True:
            count = self.count
            await trio.sleep(0.5)
            if count == self.count:
                return


@asynccontextmanager
async def watched(path: Path) -> AsyncIterator[Changes]:
    """Watch a file until the block ends; it begins when the watch has."""
    changes = Changes()
    async with trio.open_nursery() as nursery:
        await changes.after(lambda: nursery.start_soon(watch, lambda: (path,), changes.notify))
        yield changes
        nursery.cancel_scope.cancel()


def replace_by_rename(path: Path, text: str) -> None:
    """Save a file as careful editors do."""
    fresh = path.with_name(f".{path.name}.tmp")
    fresh.write_text(text)
    fresh.rename(path)


async def test_every_way_to_change_a_file_is_noticed(tmp_path: Path) -> None:
    """Written in place, replaced, removed, made anew, made unreadable: each is noticed."""
    path = tmp_path / "WORKFLOW.md"
    path.write_text("a")

    async with watched(path) as changes:
        await changes.after(lambda: path.write_text("b"))
        await changes.after(lambda: replace_by_rename(path, "c"))
        await changes.after(path.unlink)
        await changes.after(lambda: path.write_text("d"))
        await changes.after(lambda: path.chmod(0))


async def test_a_mounted_configuration_is_noticed(tmp_path: Path) -> None:
    """Changing the link through which the file is reached changes the file."""
    for version in ("one", "two"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "WORKFLOW.md").write_text(version)
    data, path = tmp_path / "..data", tmp_path / "WORKFLOW.md"
    data.symlink_to("one")
    path.symlink_to("..data/WORKFLOW.md")

    def swap() -> None:
        (tmp_path / "..tmp").symlink_to("two")
        (tmp_path / "..tmp").rename(data)

    async with watched(path) as changes:
        await changes.after(swap)
        await changes.after(lambda: (tmp_path / "two" / "WORKFLOW.md").write_text("new"))


async def test_a_directory_may_go_and_come_back(tmp_path: Path) -> None:
    """Neither its going nor its absence ends the watch, and a file in a new one is noticed."""
    directory = tmp_path / "d"
    directory.mkdir()
    path = directory / "WORKFLOW.md"
    path.write_text("a")

    def come_back() -> None:
        directory.mkdir()
        path.write_text("b")

    async with watched(path) as changes:
        await changes.after(lambda: shutil.rmtree(directory))
        await changes.after(come_back)
        await changes.after(lambda: path.write_text("c"))


async def test_a_shortage_of_threads_is_survived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no thread to look with, it is tried again."""
    refused = trio.Event()

    async def refuse_once(*args: Any, **options: Any) -> Any:
        if not refused.is_set():
            refused.set()
            raise Shortage(Resource.PROCESSES, "no thread")
        return await run_in_thread(*args, **options)

    monkeypatch.setattr(watcher, "run_in_thread", refuse_once)
    path = tmp_path / "WORKFLOW.md"
    path.write_text("a")

    async with watched(path) as changes:
        await changes.after(lambda: replace_by_rename(path, "b"))
        await changes.after(path.unlink)

    assert refused.is_set()


def looking() -> bool:
    """Tell whether a thread waits until it has to look again."""
    for frame in sys._current_frames().values():
        calls: FrameType | None = frame
        while calls is not None:
            if calls.f_code is watcher._next_stamp.__code__:
                return True
            calls = calls.f_back
    return False


async def test_its_thread_ends_with_it(tmp_path: Path) -> None:
    """A watch that is cancelled leaves no thread behind that goes on looking."""
    path = tmp_path / "WORKFLOW.md"

    with trio.fail_after(60):
        async with watched(path):
            while not looking():
                await trio.sleep(0.05)
        while looking():
            await trio.sleep(0.05)
