"""A remote host that is lost in the middle of a run: what the run makes of it, at each step."""

from __future__ import annotations

import math
from functools import partial

import pytest
import trio
from trio.testing import MockClock

from sortie.model import (
    ErrorKind,
    Failed,
    HostError,
    HostTrouble,
    RunReport,
    TransportError,
)
from tests.agents.fake import Completes, Raises, Silent
from tests.transports.fake import FakeTransport
from tests.worker.rig import HOOKS, RUN, Rig

LOST = HostError(HostTrouble.DROPPED, "lost the link to host east")
SILENT = HostError(HostTrouble.UNREACHABLE, "the shell of host east did not answer")


def failing(rig: Rig, method: str, error: TransportError) -> Rig:
    """Have something fail on the rig's host from the end of a turn on."""

    def lose() -> None:
        rig.transport.faults[method] = error

    rig.agent.scripts["A"] = [Completes(does=lose)]
    return rig


async def test_a_host_lost_between_two_turns_is_retried(clock: MockClock) -> None:
    """The workspace could not be looked at; that is no reason to hold the issue."""
    rig = failing(Rig(agent={"max_turns": 3}), "contained", LOST)

    report = await rig.work()

    assert report.turns == 1
    assert report.end == Failed(kind=ErrorKind.PORT_EXIT, message=str(LOST), adrift=True)


async def test_a_workspace_that_cannot_be_looked_at_between_turns_is_retried(
    clock: MockClock,
) -> None:
    """Neither is a trouble of its directory."""
    rig = failing(Rig(agent={"max_turns": 3}), "contained", TransportError("an I/O error"))

    report = await rig.work()

    assert report.end == Failed(kind=ErrorKind.WORKSPACE_ERROR, message="an I/O error")


@pytest.mark.parametrize(
    ("error", "kind"),
    [(SILENT, ErrorKind.PORT_EXIT), (TransportError("no"), ErrorKind.WORKSPACE_ERROR)],
)
async def test_a_workspace_that_cannot_be_looked_at_before_the_session_is_retried(
    clock: MockClock, error: TransportError, kind: ErrorKind
) -> None:
    """Nothing has run; where it is the host's trouble, the attempt is not the issue's."""
    rig = Rig(hooks={"after_create": HOOKS["after_create"]})
    await rig.work()

    async def lose(_: object) -> None:
        rig.transport.faults["contained"] = error

    rig.on_commit = lose

    report = await rig.work()

    assert report.end == Failed(
        kind=kind, message=str(error), unreached=isinstance(error, HostError)
    )


@pytest.mark.parametrize("reached", [True, False])
async def test_an_issue_is_moved_only_when_its_host_was_reached(
    clock: MockClock, reached: bool
) -> None:
    """Nobody is told that work begins on a host that does not answer."""
    rig = Rig(tracker={"in_progress_state": "Doing"})
    rig.transport = FakeTransport(host="east")
    if not reached:
        rig.transport.faults["contained"] = SILENT

    report = await rig.work()

    assert [move.after for move in rig.tracker.moves] == (["Doing"] if reached else [])
    if not reached:
        assert report.end == Failed(kind=ErrorKind.PORT_EXIT, message=str(SILENT), unreached=True)


async def test_a_word_of_the_agent_that_cannot_be_read_is_not_passed_over(
    clock: MockClock,
) -> None:
    """It may be one that ends the run, so the run is retried instead of handed off."""
    rig = failing(Rig(agent={"max_turns": 1}), "read_file", LOST)

    report = await rig.work()

    assert report.end == Failed(kind=ErrorKind.PORT_EXIT, message=str(LOST), adrift=True)


async def lose_link(rig: Rig, *, at: float, until: float) -> None:
    """Have the link to the run's host be lost for a while."""
    await trio.sleep_until(at)
    rig.transport.lost_links.add(RUN, rig)
    await trio.sleep_until(until)
    rig.transport.lost_links.discard(RUN, rig)


async def work_without_link(rig: Rig, *, at: float, until: float) -> RunReport:
    """Run the worker, whose link is lost for a while from its first turn on."""
    async with trio.open_nursery() as nursery:
        began = trio.current_time()
        nursery.start_soon(partial(lose_link, rig, at=began + at, until=began + until))
        report = await rig.work()
        nursery.cancel_scope.cancel()
    return report


async def test_silence_without_a_link_is_no_stall(clock: MockClock) -> None:
    """It is counted anew when the link is there again, and then the agent has stalled."""
    rig = Rig(agent={"stall_timeout_ms": 20_000})
    rig.agent.scripts["A"] = [Silent()]

    report = await work_without_link(rig, at=15, until=100)

    assert isinstance(report.end, Failed)
    assert report.end.kind is ErrorKind.TURN_STALLED
    assert report.seconds == 120.0


async def test_a_link_that_does_not_come_back_interrupts_the_run(clock: MockClock) -> None:
    """However short the stall timeout is, that is the host's loss and not the agent's."""
    rig = Rig(agent={"stall_timeout_ms": 20_000})
    rig.agent.scripts["A"] = [Raises(error=LOST, after=310)]

    report = await work_without_link(rig, at=10, until=math.inf)

    assert report.end == Failed(kind=ErrorKind.PORT_EXIT, message=str(LOST), adrift=True)
    assert report.seconds == 310.0


async def test_the_turn_timeout_goes_on_without_a_link(clock: MockClock) -> None:
    """A turn ends in any case."""
    rig = Rig(agent={"stall_timeout_ms": 20_000, "turn_timeout_ms": 60_000})
    rig.agent.scripts["A"] = [Silent()]

    report = await work_without_link(rig, at=10, until=math.inf)

    assert isinstance(report.end, Failed)
    assert report.end.kind is ErrorKind.TURN_TIMEOUT
    assert report.seconds == 60.0
