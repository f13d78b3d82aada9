"""The look before a poll: what it finds, and that nothing in it waits for anything else."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import trio

from sortie.daemon.locks import Lock
from sortie.daemon.run_contexts import preflight
from sortie.model import ProgramNotFound, StoreError
from sortie.orchestrator.preflight import READY, Readiness
from sortie.resources import Shortages
from sortie.transports.local import LocalTransport
from sortie.workspaces import Workspaces
from tests.store.inline import MemoryStore
from tests.worker.rig import Rig


class Store(MemoryStore):
    """A store that is met at each check."""

    def __init__(self, meet: Callable[[], Awaitable[object]]) -> None:
        super().__init__()
        self._meet = meet

    async def check(self) -> None:
        await self._meet()
        await super().check()


class Machine(LocalTransport):
    """This machine, which is met when it looks for the agent's program; it has but one."""

    def __init__(self, meet: Callable[[], Awaitable[object]]) -> None:
        super().__init__()
        self._meet = meet
        self.program: str | None = "/bin/agent"

    async def resolve_program(self, name: str, path: str | None = None) -> str:
        await self._meet()
        if self.program is None:
            raise ProgramNotFound(f"there is no {name}")
        return self.program


class Scene:
    """What a preflight looks at, in a directory; ``together`` may be waited for in two parts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "root"
        self.store, self.machine = Store(self.together), Machine(self.together)
        self.parties = 1
        self._here = 0
        self._all_here = trio.Event()

    async def together(self) -> None:
        """Wait until so many parts are here."""
        self._here += 1
        if self._here >= self.parties:
            self._all_here.set()
        await self._all_here.wait()

    async def look(self) -> Readiness:
        workspaces = Workspaces(str(self.root), self.machine)
        context = replace(
            Rig(agent={"kind": "kiro"}).context(), transport=self.machine, workspaces=workspaces
        )
        lock = Lock(str(self.folder / "lock"), "the root", str(self.root))
        try:
            return await preflight(context, self.store, lock, Shortages(lambda _: None))
        finally:
            lock.release()


async def test_the_parts_are_looked_at_at_the_same_time(tmp_path: Path) -> None:
    """Who waits for the disk of the database has found the agent's program meanwhile."""
    scene = Scene(tmp_path)
    scene.parties = 2

    with trio.fail_after(30):
        found = await scene.look()

    assert found == READY
    assert os.listdir(scene.root) == ["@incomplete"]


async def test_what_forbids_most_is_told(tmp_path: Path) -> None:
    """A store that cannot be written goes before a root that cannot be made, and that before an
    agent that is not there."""
    scene, found = Scene(tmp_path), []
    scene.machine.program = None
    scene.root.write_text("no directory")
    scene.store.failing = StoreError("the disk is full")

    found.append(await scene.look())
    scene.store.failing = None
    found.append(await scene.look())
    scene.root.unlink()
    found.append(await scene.look())

    assert found[0] == Readiness(fault="the disk is full")
    assert str(scene.root) in (found[1].fault or "")
    assert (found[2].fault, "was not found" in (found[2].hindrance or "")) == (None, True)
