"""WORKFLOW.md while the daemon runs, with a real file on the real clock."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from sortie.daemon.options import RunOptions
from sortie.daemon.reloader import Reloader
from sortie.daemon.workflow_file import load_workflow
from sortie.telemetry.facts import Fact, WorkflowReloaded
from sortie.web import WorkflowView
from sortie.workflow import Workflow

LIMIT = 30
TEXT = """\
---
tracker:
  kind: file
  active_states: [Todo]
  terminal_states: [Done]
  handoff_state: Review
file:
  path: issues
workspace:
  root: {root}
agent:
  max_turns: {turns}
kiro:
  trust_all_tools: true
---
{prompt}
"""


class Desk:
    """A WORKFLOW.md, the reloader that watches it, and what became of its changes."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "WORKFLOW.md"
        self.root = str(folder / "root")
        (folder / "issues").mkdir()
        self.save()
        self.told: list[WorkflowReloaded] = []
        self.applied: list[Workflow] = []
        self.options = RunOptions(workflow=self.path, environ={"HOME": str(folder)})
        self.reloader = Reloader(
            self.options, load_workflow(self.options), self._publish, self.applied.append
        )
        self._news = trio.Event()

    def save(self, *, turns: object = 5, prompt: str = "Work.", root: str | None = None) -> None:
        """Write the file as an editor does: anew, and renamed into its place."""
        text = TEXT.format(turns=turns, prompt=prompt, root=root or self.root)
        beside = self.path.with_suffix(".tmp")
        beside.write_text(text)
        os.replace(beside, self.path)

    async def reloaded(self, count: int) -> WorkflowReloaded:
        """Wait until so many reloads were told of; return the last."""
        while len(self.told) < count:
            await self._news.wait()
        return self.told[count - 1]

    def _publish(self, fact: Fact) -> None:
        assert isinstance(fact, WorkflowReloaded)
        self.told.append(fact)
        self._news.set()
        self._news = trio.Event()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@asynccontextmanager
async def watched(desk: Desk) -> AsyncIterator[None]:
    """HostHealth while the block lasts, and bound it."""
    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(desk.reloader.run)
            yield
            nursery.cancel_scope.cancel()


async def test_a_change_before_the_watch_is_seen(desk: Desk) -> None:
    """What was saved after the daemon read the file and before it watches is not lost."""
    desk.save(turns=7)

    async with watched(desk):
        await desk.reloaded(1)

    assert [w.settings.agent.max_turns for w in desk.applied] == [7]


async def test_a_valid_change_is_applied(desk: Desk) -> None:
    """New settings and prompt are handed on, and told without errors."""
    async with watched(desk):
        desk.save(turns=7, prompt="Work harder.")
        told = await desk.reloaded(1)

    (workflow,) = desk.applied
    assert told == WorkflowReloaded()
    assert (workflow.settings.agent.max_turns, workflow.prompt.source.strip()) == (
        7,
        "Work harder.",
    )
    assert desk.reloader.workflow is workflow
    assert desk.reloader.view() == WorkflowView(path=str(desk.path), valid=True)


async def test_a_broken_file_changes_nothing(desk: Desk) -> None:
    """Its errors are told and shown, the last good settings stay, and a mended file is applied."""
    async with watched(desk):
        desk.save(turns="many")
        broken = await desk.reloaded(1)
        shown, applied = desk.reloader.view(), list(desk.applied)
        kept = desk.reloader.workflow.settings.agent.max_turns
        desk.save(turns=5)
        mended = await desk.reloaded(2)

    (error,) = broken.errors
    assert "agent.max_turns" in error
    assert error.startswith(f"{desk.path}:12:")
    assert shown == WorkflowView(path=str(desk.path), valid=False, errors=broken.errors)
    assert (applied, kept) == ([], 5)
    assert mended == WorkflowReloaded()
    assert len(desk.applied) == 1
    assert desk.reloader.view().valid


async def test_a_vanished_file_changes_nothing(desk: Desk) -> None:
    """It is an error like any other, and over when the file is back."""
    async with watched(desk):
        desk.path.unlink()
        gone = await desk.reloaded(1)
        desk.save()
        back = await desk.reloaded(2)

    assert len(gone.errors) == 1
    assert str(desk.path) in gone.errors[0]
    assert back == WorkflowReloaded()


async def test_a_save_without_a_change_is_no_news(desk: Desk) -> None:
    """The same content is neither applied nor told; a forced reload is both."""
    async with watched(desk):
        desk.save()
        desk.save(turns=6)
        await desk.reloaded(1)
        desk.save(turns=6)
        desk.reloader.force()
        await desk.reloaded(2)
        desk.save(turns=8)
        await desk.reloaded(3)

    assert [w.settings.agent.max_turns for w in desk.applied] == [6, 6, 8]


async def test_what_needs_a_restart_is_named_and_kept(desk: Desk) -> None:
    """The old root stays in force, however often the file is saved, and each reload says so."""
    before = desk.reloader.workflow.settings.workspace.root

    async with watched(desk):
        desk.save(root=desk.root + "2")
        first = await desk.reloaded(1)
        desk.save(root=desk.root + "2", turns=9)
        second = await desk.reloaded(2)

    assert (first.needs_restart, second.needs_restart) == (("workspace.root",),) * 2
    assert [w.settings.workspace.root for w in desk.applied] == [before, before]
    assert desk.applied[-1].settings.agent.max_turns == 9


async def test_no_file_stops_the_watch(desk: Desk) -> None:
    """Whatever stands in its place is an error, promptly, and the next good file is seen."""
    async with watched(desk):
        for turns, spoil in enumerate(SPOILS, 20):
            spoil(desk.path)
            while desk.reloader.view().valid:
                await desk.reloaded(len(desk.told) + 1)
            if desk.path.is_dir():
                desk.path.rmdir()
            desk.save(turns=turns)
            while not desk.reloader.view().valid:
                await desk.reloaded(len(desk.told) + 1)

    assert [w.settings.agent.max_turns for w in desk.applied] == list(range(20, 25))


def make_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


SPOILS: tuple[Callable[[Path], object], ...] = (
    lambda path: path.write_bytes(b"\xff\xfe\x00"),
    lambda path: path.write_text("---\ntracker: [\n"),
    make_directory,
    make_fifo,
    lambda path: path.write_bytes(b"x" * (5 << 20)),
)
