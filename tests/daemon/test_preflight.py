"""The look before a poll."""

from __future__ import annotations

import os
from pathlib import Path

import trio
from msgspec.structs import replace

from sortie.daemon.locks import Lock
from sortie.daemon.run_contexts import preflight
from sortie.model import ProgramNotFound, StoreError
from sortie.orchestrator.context import Readiness
from sortie.resources import Shortages
from sortie.transports.local import LocalTransport
from sortie.workspaces import Workspaces
from tests.store.inline import MemoryStore
from tests.worker.rig import Rig


class Machine(LocalTransport):
    """This machine, which has one program, or none."""

    program: str | None = "/bin/agent"

    async def resolve_program(self, name: str, path: str | None = None) -> str:
        await trio.lowlevel.checkpoint()
        if self.program is None:
            raise ProgramNotFound(f"there is no {name}")
        return self.program


class Scene:
    """What a preflight looks at, in a directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "root"
        self.store, self.machine = MemoryStore(), Machine()

    async def look(self) -> Readiness:
        workspaces = Workspaces(str(self.root), self.machine)
        context = replace(
            Rig(agent={"kind": "kiro"}).context(), transport=self.machine, workspaces=workspaces
        )
        lock = Lock(str(self.folder / "lock"), "the root", str(self.root))
        try:
            return await preflight({"": context}, self.store, lock, Shortages(lambda _: None))
        finally:
            lock.release()


async def test_a_machine_that_has_all_is_ready(tmp_path: Path) -> None:
    """The root is made, and nothing in it but the place of unfinished workspaces."""
    scene = Scene(tmp_path)

    found = await scene.look()

    assert found == Readiness()
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
