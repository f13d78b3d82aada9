"""The wall of a run: where it cannot be had, no agent is started without it."""

from __future__ import annotations

import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sortie.model import ErrorKind, Failed, TransportError
from sortie.resources import Resource, Shortage
from sortie.transports.walls import SandboxedTransport
from sortie.worker import RunContext
from tests.worker.rig import Rig

NO_WALL = "bubblewrap cannot make a sandbox here"


class NoWall(SandboxedTransport):
    """A wall that cannot be had, for a reason."""

    reason: Exception | None = None

    async def check(self) -> None:
        """Raise TransportError."""
        await trio.lowlevel.checkpoint()
        raise TransportError(NO_WALL) from self.reason


class WalledRig(Rig):
    """A rig whose runs have a wall."""

    reason: Exception | None = None

    def context(self) -> RunContext:
        wall = NoWall(self.transport)
        wall.reason = self.reason
        return replace(super().context(), wall=wall)


async def test_without_its_wall_no_agent_is_started(clock: MockClock) -> None:
    """The issue is held as one whose agent is missing: trying again does not help."""
    rig = WalledRig()

    report = await rig.work()

    assert report.end == Failed(kind=ErrorKind.AGENT_NOT_FOUND, message=NO_WALL)
    assert report.turns == 0
    assert not [line for line in rig.journal if line.startswith("session")]
    rig.assert_nothing_open()


async def test_a_shortage_is_none_of_the_wall(clock: MockClock) -> None:
    """It passes, so the issue is tried again."""
    rig = WalledRig()
    rig.reason = Shortage(Resource.MEMORY, "this machine has no memory left")

    report = await rig.work()

    assert isinstance(report.end, Failed)
    assert report.end.kind is not ErrorKind.AGENT_NOT_FOUND
