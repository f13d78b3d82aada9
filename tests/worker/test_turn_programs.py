"""The programs of turns are on record before they start, and let go of where that is asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sortie.model import HostError, HostTrouble, Streak
from sortie.model.turns_under_way import TurnUnderWay
from sortie.scheduler import Event
from sortie.scheduler import events as ev
from sortie.scheduler.claims import Running
from sortie.scheduler.memory import TakenOver
from sortie.transports import Command, Process
from sortie.worker import Assignment, RunReporter, RunScopes
from sortie.worker.turn_programs import TurnPrograms
from tests.transports.fake import FakeTransport
from tests.worker.rig import RUN, Rig, issue

COMMAND = Command(argv=("agent",), cwd="/root", env={})
TURN = TurnUnderWay(number=1, issue=issue(), daemon="alpha:1", agent="fake", command="'agent'")


class KeptProgram:
    """A program that can be let go."""

    def __init__(self) -> None:
        self.is_let_go = False

    def let_go(self) -> None:
        self.is_let_go = True


class Host(FakeTransport):
    """A host that keeps programs; ``did`` is what was done there, in its order."""

    keeps_programs = True

    def __init__(self) -> None:
        super().__init__()
        self.did: list[str] = []
        self.program = KeptProgram()
        self.is_away = False

    @asynccontextmanager
    async def process(self, command: Command) -> AsyncIterator[Process]:  # type: ignore[override]
        assert command.on_record is not None
        await command.on_record("p-1")
        self.did.append("started")
        yield self.program  # type: ignore[misc]

    async def kept(self, names: Collection[str]) -> Collection[str]:
        return names

    @asynccontextmanager
    async def adopted(self, command: Command, name: str) -> AsyncIterator[Process]:
        if self.is_away:
            raise HostError(HostTrouble.DISRUPTED, "it is gone")
        self.did.append(f"adopted {name}")
        yield self.program  # type: ignore[misc]


class World:
    """The programs of a run on such a host; what is told and committed is noted with the rest."""

    def __init__(self, *, taken_over: bool = False) -> None:
        self.host, self.scopes, rig = Host(), RunScopes(), Rig()
        self.events: list[Event] = []
        job = Assignment(run_id=RUN, issue=issue(), attempt=0, fetched_at=0.0)
        if taken_over:
            job = replace(job, taken_over=_taken())
        context = replace(rig.context(), transport=self.host)
        reporter = RunReporter(
            tell=self.events.append,
            commit=self._commit,
            publish=lambda _fact: None,
            is_active=lambda _issue: True,
        )
        self.programs = TurnPrograms(job, context, reporter, self.scopes)
        self.programs.turn = TURN

    async def _commit(self, event: Event) -> None:
        await trio.lowlevel.checkpoint()
        self.events.append(event)
        self.host.did.append("recorded")


def _taken() -> TakenOver:
    claim = Running(
        issue=issue(),
        run_id=RUN,
        streak=Streak(),
        host="h",
        since=0.0,
        began_in="Todo",
    )
    turn = replace(TURN, program="p-0", memo="memo")
    return TakenOver(claim=claim, turn=turn, workspace="/root/A", seconds=1, turn_seconds=1)


async def test_a_program_is_on_record_before_it_starts(clock: MockClock) -> None:
    """With its name and its memo; and it is not any more once its turn has ended."""
    world = World()

    async with world.programs(COMMAND, "memo"):
        during = world.scopes.can_be_let_go
    await world.programs.turn_ended()

    assert world.host.did == ["recorded", "started"]
    assert world.events == [
        ev.TurnUnderWayKnown(RUN, replace(TURN, program="p-1", memo="memo")),
        ev.TurnUnderWayKnown(RUN, None),
    ]
    assert (during, world.scopes.can_be_let_go) == (True, False)
    assert not world.host.program.is_let_go


async def test_a_program_is_let_go_where_that_is_asked_for(clock: MockClock) -> None:
    """It stays on record, whatever the turn comes to meanwhile."""
    world = World()

    with world.scopes.work:
        async with world.programs(COMMAND, "memo"):
            world.scopes.let_go()
        await world.programs.turn_ended()
    world.scopes.let_go()

    assert world.host.program.is_let_go
    assert len(world.events) == 1


async def test_only_a_program_can_be_let_go(clock: MockClock) -> None:
    """A run without one is not ended by that."""
    world = World()

    world.scopes.let_go()
    with world.scopes.work:
        await trio.lowlevel.checkpoint()

    assert not world.scopes.is_let_go
    assert not world.scopes.work.cancelled_caught


async def test_a_program_that_was_taken_over_is_gone_on_with_once(clock: MockClock) -> None:
    """The next turn starts one of its own; nothing is left to be ended."""
    world = World(taken_over=True)

    async with world.programs(COMMAND, "memo"):
        pass
    await world.programs.turn_ended()
    async with world.programs(COMMAND, "memo"):
        pass
    await world.programs.end_unadopted()

    assert world.host.did == ["adopted p-0", "recorded", "started"]
    assert world.events[0] == ev.TurnUnderWayKnown(RUN, None)
    assert world.host.swept == []


async def test_what_could_not_be_gone_on_with_is_ended(clock: MockClock) -> None:
    """No program of the run outlives it."""
    world = World(taken_over=True)
    world.host.is_away = True

    with pytest.raises(HostError):
        async with world.programs(COMMAND, "memo"):
            pass
    await world.programs.end_unadopted()

    assert world.host.did == []
    assert world.host.swept == [{RUN}]
