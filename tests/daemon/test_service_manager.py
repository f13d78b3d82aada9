"""What the service manager is told, over a real socket."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from sortie.daemon.service_manager import PULSE, STATUS_LINE_LIMIT, ServiceManager, ServiceStanding
from sortie.facts import Fact
from sortie.telemetry import Publish, facts
from tests.daemon.service_socket import ServiceSocket

STARTED = facts.DaemonStarted(version="1", python_version="3", workflow="w", agent="a", tracker="t")
EXTENSION = "EXTEND_TIMEOUT_USEC=30000000"


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[ServiceSocket]:
    """The manager's end."""
    found = ServiceSocket.below(tmp_path)
    yield found
    found.close()


def ignore(_: Fact) -> None:
    """Publish to nobody."""


def manager(address: str, publish: Publish = ignore, **more: str) -> ServiceManager:
    environ: Mapping[str, str] = {"NOTIFY_SOCKET": address} | more
    return ServiceManager.of(environ, publish)


async def pulses(
    one: ServiceManager, *standings: ServiceStanding | None, pause: float = PULSE
) -> None:
    """Have it look at each standing once."""
    left = iter(standings)
    with trio.move_on_after(pause * (len(standings) - 0.5)):
        await one.pulse(lambda: next(left))


def test_a_life_is_told(listener: ServiceSocket) -> None:
    """Start, reload and end are told in the words of sd_notify(3), each reload with its time."""
    one = manager(listener.address)

    one(STARTED)
    one.reloading()
    one(facts.WorkflowReloaded())
    one(facts.WorkflowReloaded())  # nobody has asked for this one
    one(facts.DaemonStopping(running=2))

    ready, started, reloading, at, again, stopping, status = listener.lines()
    assert started == "STATUS=started"
    assert (ready, reloading, again, stopping) == (
        "READY=1",
        "RELOADING=1",
        "READY=1",
        "STOPPING=1",
    )
    assert re.fullmatch(r"MONOTONIC_USEC=\d+", at)
    assert status == "STATUS=stopping, running 2"


async def test_a_start_is_given_the_time_it_takes(
    listener: ServiceSocket, autojump_clock: MockClock
) -> None:
    """Each pulse before the start asks for more time, and says once that the daemon starts."""
    await pulses(manager(listener.address), None, None)

    assert listener.lines() == [EXTENSION, "STATUS=starting", EXTENSION]


async def test_signs_of_life_end_with_the_rounds(
    listener: ServiceSocket, autojump_clock: MockClock
) -> None:
    """A daemon whose orchestrator is late gives no sign, while its status is told all the same."""
    one = manager(listener.address, WATCHDOG_USEC="6000000", WATCHDOG_PID=str(os.getpid()))
    well = ServiceStanding(live=True, status="running 1")
    late = ServiceStanding(live=False, status="running 1, late")

    await pulses(one, well, well, late, late, pause=2.0)

    told = ["WATCHDOG=1", "STATUS=running 1", "WATCHDOG=1", "STATUS=running 1, late"]
    assert listener.lines() == told


async def test_a_status_is_one_line(listener: ServiceSocket, autojump_clock: MockClock) -> None:
    """A text from outside makes no assignment of its own, and no status without end."""
    status = f"not ready: asked\nMAINPID=1\r\nREADY=1 {'x' * 9999}"

    await pulses(manager(listener.address), ServiceStanding(live=True, status=status))

    (line,) = listener.lines()
    assert line.startswith("STATUS=not ready: asked MAINPID=1 READY=1 xxx")
    assert len(line) == len("STATUS=") + STATUS_LINE_LIMIT


async def test_what_cannot_be_taken_is_told_later(
    listener: ServiceSocket, autojump_clock: MockClock
) -> None:
    """A manager that is behind holds nothing up, and misses neither start nor status."""
    one = manager(listener.address, WATCHDOG_USEC="15000000")
    standings = [ServiceStanding(live=True, status=f"running {number}") for number in range(2000)]
    await pulses(one, *standings)
    one(STARTED)
    missed = listener.news()
    assert len(missed) < 4000

    await pulses(one, standings[-1])

    told = ["READY=1", "STATUS=started", "WATCHDOG=1", "STATUS=running 1999"]
    assert listener.lines() == told


def test_a_manager_that_is_gone_is_told_of_once(listener: ServiceSocket) -> None:
    """A socket that nobody listens at is one warning, and no failure."""
    told: list[Fact] = []
    one = manager(listener.address, told.append)
    listener.close()

    one(STARTED)
    one(facts.DaemonStopping(running=0))

    gone = facts.ServiceManagerUnreachable(socket=listener.address, error="Connection refused")
    assert told == [gone]
