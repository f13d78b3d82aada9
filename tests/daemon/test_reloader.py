"""WORKFLOW.md while the daemon runs, with a real file on the real clock."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from sortie.config.settings import Settings
from sortie.config.trust import TrustSettings
from sortie.daemon import reloader
from sortie.daemon.options import RunOptions
from sortie.daemon.reloader import Reloader, use_settings
from sortie.daemon.tracker import states_of
from sortie.daemon.workflow_file import load_workflow
from sortie.facts import Fact, WorkflowReloaded
from sortie.model import AgentError, ErrorKind
from sortie.resources import Resource, Shortage
from sortie.scheduler import Policy
from sortie.trackers import TrackerStates
from sortie.web.state import WorkflowView
from sortie.workflow.loader import Workflow

LIMIT = 30
TEXT = """\
---
tracker:
  kind: file
  active_states: [{states}]
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


class WatchedFile:
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

    def save(
        self,
        *,
        turns: object = 5,
        prompt: str = "Work.",
        root: str | None = None,
        states: str = "Todo",
    ) -> None:
        """Write the file as an editor does: anew, and renamed into its place."""
        text = TEXT.format(turns=turns, prompt=prompt, root=root or self.root, states=states)
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
def watched_file(tmp_path: Path) -> WatchedFile:
    return WatchedFile(tmp_path)


@asynccontextmanager
async def watched(watched_file: WatchedFile) -> AsyncIterator[None]:
    """Watch while the block lasts, and bound it."""
    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watched_file.reloader.run)
            yield
            nursery.cancel_scope.cancel()


async def test_a_change_before_the_watch_is_seen(watched_file: WatchedFile) -> None:
    """What was saved after the daemon read the file and before it watches is not lost."""
    watched_file.save(turns=7)

    async with watched(watched_file):
        await watched_file.reloaded(1)

    assert [w.settings.agent.max_turns for w in watched_file.applied] == [7]


async def test_a_valid_change_is_applied(watched_file: WatchedFile) -> None:
    """New settings and prompt are handed on, and told without errors."""
    async with watched(watched_file):
        watched_file.save(turns=7, prompt="Work harder.")
        told = await watched_file.reloaded(1)

    (workflow,) = watched_file.applied
    assert told == WorkflowReloaded()
    assert (workflow.settings.agent.max_turns, workflow.prompt.source.strip()) == (
        7,
        "Work harder.",
    )
    assert watched_file.reloader.workflow is workflow
    assert watched_file.reloader.view() == WorkflowView(path=str(watched_file.path), valid=True)


async def test_a_change_of_an_included_file_is_applied(watched_file: WatchedFile) -> None:
    """A file that comes after the workflow names it mends that; a later change counts, too."""
    part = watched_file.path.with_name("part.md")

    async with watched(watched_file):
        watched_file.save(prompt='Work. {% include "part.md" %}')
        missing = await watched_file.reloaded(1)
        part.write_text("Well.")
        await watched_file.reloaded(2)
        part.write_text("Better, and more of it.")
        await watched_file.reloaded(3)

    assert missing.errors
    parts = [dict(workflow.prompt.parts)["part.md"].source for workflow in watched_file.applied]
    assert parts == ["Well.", "Better, and more of it."]


async def test_a_broken_file_changes_nothing(watched_file: WatchedFile) -> None:
    """Its errors are told and shown, the last good settings stay, and a mended file is applied."""
    async with watched(watched_file):
        watched_file.save(turns="many")
        broken = await watched_file.reloaded(1)
        shown, applied = watched_file.reloader.view(), list(watched_file.applied)
        kept = watched_file.reloader.workflow.settings.agent.max_turns
        watched_file.save(turns=5)
        mended = await watched_file.reloaded(2)

    (error,) = broken.errors
    assert "agent.max_turns" in error
    assert error.startswith(f"{watched_file.path}:12:")
    assert shown == WorkflowView(path=str(watched_file.path), valid=False, errors=broken.errors)
    assert (applied, kept) == ([], 5)
    assert mended == WorkflowReloaded()
    assert len(watched_file.applied) == 1
    assert watched_file.reloader.view().valid


async def test_a_save_without_a_change_is_no_news(watched_file: WatchedFile) -> None:
    """The same content is neither applied nor told; a forced reload is both."""
    async with watched(watched_file):
        watched_file.save()
        watched_file.save(turns=6)
        await watched_file.reloaded(1)
        watched_file.save(turns=6)
        watched_file.reloader.force()
        await watched_file.reloaded(2)
        watched_file.save(turns=8)
        await watched_file.reloaded(3)

    assert [w.settings.agent.max_turns for w in watched_file.applied] == [6, 6, 8]


async def test_what_needs_a_restart_is_named_and_kept(watched_file: WatchedFile) -> None:
    """The old root stays in force, however often the file is saved, and each reload says so."""
    before = watched_file.reloader.workflow.settings.workspace.root

    async with watched(watched_file):
        watched_file.save(root=watched_file.root + "2")
        first = await watched_file.reloaded(1)
        watched_file.save(root=watched_file.root + "2", turns=9)
        second = await watched_file.reloaded(2)

    assert (first.needs_restart, second.needs_restart) == (("workspace.root",),) * 2
    assert [w.settings.workspace.root for w in watched_file.applied] == [before, before]
    assert watched_file.applied[-1].settings.agent.max_turns == 9


async def test_no_file_stops_the_watch(watched_file: WatchedFile) -> None:
    """Whatever stands in its place is an error, promptly, and the next good file is seen."""
    async with watched(watched_file):
        for turns, spoil in enumerate(SPOILS, 20):
            spoil(watched_file.path)
            while watched_file.reloader.view().valid:
                await watched_file.reloaded(len(watched_file.told) + 1)
            if watched_file.path.is_dir():
                watched_file.path.rmdir()
            watched_file.save(turns=turns)
            while not watched_file.reloader.view().valid:
                await watched_file.reloaded(len(watched_file.told) + 1)

    assert [w.settings.agent.max_turns for w in watched_file.applied] == list(range(20, 25))


class Refusing:
    """A part that takes other settings, or refuses those with ``turns`` turns."""

    def __init__(self, workflow: Workflow, refused: int | None = None) -> None:
        self.settings = workflow.settings
        self.refused = refused
        self.states = states_of(workflow.settings)

    def configure(self, states: TrackerStates) -> None:
        """See GuardedTracker."""
        self.states = states

    def trust(self, settings: TrustSettings) -> None:
        """See GuardedTracker."""

    def use(self, workflow: Workflow) -> None:
        """See RunContexts."""
        if workflow.settings.agent.max_turns == self.refused:
            raise AgentError(ErrorKind.AGENT_NOT_FOUND, "no such agent")
        self.settings = workflow.settings

    def apply(self, settings: Settings, _policy: Policy) -> None:
        """See Orchestrator."""
        self.settings = settings


async def test_a_change_that_is_refused_changes_nothing(watched_file: WatchedFile) -> None:
    """Where one part cannot take other settings, all keep the last good ones, the error is shown,
    and the next good file is taken by all."""
    before = watched_file.reloader.workflow
    tracker, orchestrator = Refusing(before), Refusing(before)
    contexts = Refusing(before, refused=6)
    parts: Any = (tracker, contexts, orchestrator)
    watched_file.reloader = Reloader(
        watched_file.options,
        before,
        watched_file._publish,
        lambda workflow: use_settings(workflow, *parts),
    )

    async with watched(watched_file):
        watched_file.save(turns=6, states="Todo, Doing")
        refused = await watched_file.reloaded(1)
        shown = watched_file.reloader.view()
        kept = [part.settings for part in (tracker, contexts, orchestrator)]
        kept_states, kept_workflow = tracker.states, watched_file.reloader.workflow
        watched_file.save(turns=7, states="Todo, Doing")
        await watched_file.reloaded(2)

    assert refused.errors == shown.errors == ("no such agent",)
    assert kept == [before.settings] * 3
    assert kept_states == states_of(before.settings)
    assert kept_workflow is before
    assert watched_file.reloader.view().valid
    assert [contexts.settings.agent.max_turns, orchestrator.settings.agent.max_turns] == [7, 7]
    assert tracker.states.active == ("Todo", "Doing")


async def test_a_reload_that_was_asked_for_is_made_after_a_shortage(
    watched_file: WatchedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no thread can be had, it is only later, although the file is as it was."""
    refused = 0

    async def run(work: Any, *args: Any) -> Any:
        nonlocal refused
        await trio.lowlevel.checkpoint()
        if watched_file.applied and refused < 2:
            refused += 1
            raise Shortage(Resource.PROCESSES, "no thread")
        return work(*args)

    monkeypatch.setattr(reloader, "run_in_thread", run)
    monkeypatch.setattr(reloader, "LONGEST_PAUSE", 0.01)
    async with watched(watched_file):
        watched_file.reloader.force()
        await watched_file.reloaded(1)
        watched_file.reloader.force()
        await watched_file.reloaded(2)

    assert refused == 2


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
