"""Removing the workspace of a finished issue, seen from the worker's side."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from sortie.model import (
    LOCAL,
    HostError,
    HostTrouble,
    KnownWorkspace,
    TransportError,
    WorkspaceError,
)
from sortie.telemetry import facts
from sortie.worker.cleanup import remove_workspace, require_saved
from tests.transports.fake import Does
from tests.worker.rig import ROOT, Rig


def known(rig: Rig, root: str = ROOT) -> KnownWorkspace:
    return KnownWorkspace(issue_id=rig.issue.id, identifier="A", host=LOCAL, path=f"{root}/A")


async def test_a_workspace_goes_with_all_it_holds(clock: MockClock) -> None:
    """before_remove sees what is there; then nothing is."""
    rig = Rig(hooks={"before_remove": Does()})
    await rig.work()
    await rig.transport.files.write_file(f"{ROOT}/A", "notes/one", b"1")

    await remove_workspace(rig.context(), rig.issue, known(rig), rig.facts.append)

    (hook,) = rig.transport.ran
    assert (hook.cwd, hook.env["SORTIE_WORKSPACE"]) == (f"{ROOT}/A", f"{ROOT}/A")
    assert [path for path in rig.transport.files.contents if path.startswith(f"{ROOT}/A/")] == []
    assert f"{ROOT}/A" not in rig.transport.files.directories


async def test_a_workspace_that_is_gone_is_fine(clock: MockClock) -> None:
    """No hook runs for what is not there, and nothing is raised."""
    rig = Rig(hooks={"before_remove": Does()})

    await remove_workspace(rig.context(), rig.issue, known(rig), rig.facts.append)

    assert rig.transport.ran == []


async def test_a_workspace_below_an_earlier_root_is_removed_there(clock: MockClock) -> None:
    """The recorded path counts, not the root of today's settings."""
    rig = Rig()
    await rig.work()
    await rig.transport.files.make_directory("/old", "A")

    await remove_workspace(rig.context(), rig.issue, known(rig, "/old"), rig.facts.append)

    assert "/old/A" not in rig.transport.files.directories
    assert f"{ROOT}/A" in rig.transport.files.directories


async def test_what_stays_is_an_error(clock: MockClock) -> None:
    """The transport's words are passed on, after the hook has run."""
    rig = Rig(hooks={"before_remove": Does(status=1)})
    await rig.work()
    rig.transport.faults["remove_directory"] = TransportError("busy")

    with pytest.raises(WorkspaceError, match="busy"):
        await remove_workspace(rig.context(), rig.issue, known(rig), rig.facts.append)

    hooks = [fact.result for fact in rig.of(facts.HookCompleted)]
    assert hooks == ["failed"]


async def test_a_removal_that_has_begun_is_gone_on_with(clock: MockClock) -> None:
    """What is left holds neither work to be looked for nor anything for a hook to see."""
    rig = Rig(hooks={"before_remove": Does()})
    await rig.work()
    rig.transport.faults["remove_directory"] = TransportError("busy")
    with pytest.raises(WorkspaceError, match="busy"):
        await remove_workspace(rig.context(), rig.issue, known(rig), rig.facts.append)
    del rig.transport.faults["remove_directory"]
    rig.transport.ran.clear()

    await require_saved(rig.context(), rig.issue, known(rig))
    await remove_workspace(rig.context(), rig.issue, known(rig), rig.facts.append)

    assert rig.transport.ran == []
    assert f"{ROOT}/A" not in rig.transport.files.directories


async def test_a_host_that_cannot_be_asked_keeps_its_workspace(clock: MockClock) -> None:
    """before_remove would be passed over, and with it what it saves from the workspace."""
    rig = Rig(hooks={"before_remove": Does()})
    await rig.work()
    rig.transport.faults["contained"] = HostError(HostTrouble.DROPPED, "lost the link")

    with pytest.raises(WorkspaceError, match="lost the link"):
        await remove_workspace(rig.context(), rig.issue, known(rig), rig.facts.append)

    assert rig.transport.ran == []
    assert f"{ROOT}/A" in rig.transport.files.directories
