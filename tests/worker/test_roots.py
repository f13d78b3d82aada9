"""A workspace root that nothing can be written to: no run is to blame for it."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from sortie.model import ErrorKind, Failed, TransportError
from tests.agents.fake import Completes
from tests.transports.fake import Does, FakeTransport
from tests.worker.rig import HOOKS, Rig

FULL = TransportError("could not write @incomplete/@probe: no space left on device")
TOLD = f"nothing can be written to the workspace root: {FULL}"


def on_host(rig: Rig) -> Rig:
    """Have the rig's runs be on a remote host."""
    rig.transport = FakeTransport(HOOKS, host="east")
    return rig


@pytest.mark.parametrize("method", ["write_file", "make_directory"])
async def test_a_host_whose_disk_is_full_is_in_trouble_itself(
    clock: MockClock, method: str
) -> None:
    """Nothing of the run has run there, so the issue may go elsewhere with its attempt."""
    rig = on_host(Rig())
    rig.transport.faults[method] = FULL

    report = await rig.work()

    assert report.end == Failed(kind=ErrorKind.WORKSPACE_ERROR, message=TOLD, unreached=True)
    assert rig.transport.ran == []


async def test_a_hook_that_fails_for_a_full_disk_is_the_hosts_trouble(clock: MockClock) -> None:
    """The hook only shows what every run would meet there."""
    rig = on_host(Rig(hooks={"before_run": Does()}))
    rig.transport.scripts["before_run"] = Does(status=128)
    await rig.work()
    fills = rig.transport.files

    async def fill(_: object) -> None:
        fills.faults["write_file"] = FULL

    rig.on_commit = fill

    report = await rig.work()

    assert report.end == Failed(kind=ErrorKind.WORKSPACE_ERROR, message=TOLD, unreached=True)


async def test_a_full_disk_of_this_machine_is_a_shortage(clock: MockClock) -> None:
    """The run is tried again with its attempt, as with any other shortage."""
    rig = Rig()
    rig.transport.faults["write_file"] = FULL

    report = await rig.work()

    assert report.end == Failed(kind=ErrorKind.WORKSPACE_ERROR, message=TOLD, shortage=True)


async def test_a_hook_that_fails_by_itself_is_the_runs_failure(clock: MockClock) -> None:
    """Where the root can be written to, nothing is wrong with the host."""
    rig = on_host(Rig(hooks={"before_run": Does()}))
    rig.transport.scripts["before_run"] = Does(status=3)

    report = await rig.work()

    assert isinstance(report.end, Failed)
    assert (report.end.kind, report.end.unreached) == (ErrorKind.HOOK_FAILED, False)


async def test_a_file_in_the_place_of_a_workspace_is_the_issues_trouble(clock: MockClock) -> None:
    """Other issues may use the host meanwhile."""
    rig = on_host(Rig())
    rig.transport.files.contents["/root/A"] = b"put there by somebody"

    report = await rig.work()

    assert isinstance(report.end, Failed)
    assert (report.end.kind, report.end.unreached) == (ErrorKind.WORKSPACE_ERROR, False)


async def test_a_disk_that_fills_while_the_agent_works_is_no_look_at_the_root(
    clock: MockClock,
) -> None:
    """What has had a turn fails as it fails: the agent may have filled the disk."""
    rig = on_host(Rig(agent={"max_turns": 2}))

    def fill() -> None:
        rig.transport.faults["write_file"] = FULL
        rig.transport.faults["contained"] = FULL

    rig.agent.scripts["A"] = [Completes(does=fill)]

    report = await rig.work()

    assert report.end == Failed(kind=ErrorKind.WORKSPACE_ERROR, message=str(FULL))
