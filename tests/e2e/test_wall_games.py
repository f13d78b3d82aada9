"""Agents behind each wall while parts of it are struck: no two at once, nothing lost or left."""

from __future__ import annotations

import sys

import pytest
import trio

from tests.e2e.place import Place
from tests.e2e.wall_games import play
from tests.skewed_clock import requires_skewed_clock
from tests.transports.containers import requires_containers
from tests.transports.endings import requires_namespaces
from tests.transports.sandboxes import requires_bubblewrap
from tests.transports.ssh.sshd import requires_sshd

MARKS = {
    "bubblewrap": [requires_bubblewrap],
    # Others kill containers and their daemons too; here it takes twenty seconds of processor time.
    "container": [requires_containers, pytest.mark.full],
    "host": [requires_sshd],
    "contained host": [requires_sshd, requires_namespaces, requires_containers, pytest.mark.full],
    "pods": [],
    "sandboxes": [pytest.mark.full],
}
QUICK = {
    "bubblewrap": ["bwrap", "daemon"],
    "container": ["shell"],
    "host": ["links"],
    "contained host": ["shell", "links"],
    "pods": ["links", "server away"],
    "sandboxes": ["sandbox deleted", "controller away while its pod is deleted"],
}


async def require_well(
    place: Place, nursery: trio.Nursery, wall: str, blows: list[str] | None = None
) -> None:
    """Play blows, or all of a wall; fail where anything is wrong."""
    wrong, line = await play(place, nursery, wall, blows or ())
    sys.stdout.write(f"{line}\n")
    assert wrong == [], line


@pytest.mark.timeout(900)
@pytest.mark.parametrize("wall", [pytest.param(wall, marks=MARKS[wall]) for wall in QUICK])
async def test_a_few_blows_lose_nothing_and_run_nothing_twice(
    place: Place, nursery: trio.Nursery, wall: str
) -> None:
    """Each issue is done by exactly one run, with its work there, and nothing is left."""
    await require_well(place, nursery, wall, QUICK[wall])


@requires_skewed_clock
@pytest.mark.timeout(900)
async def test_clocks_that_jump_hold_up_nothing(place: Place, nursery: trio.Nursery) -> None:
    """Neither the daemon's, which is behind the times it has recorded, nor the API server's."""
    blows = [
        "daemon killed, clock forwards",
        "server's clock backwards",
        "daemon's clock backwards",
    ]
    await require_well(place, nursery, "pods", blows)


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("wall", [pytest.param(wall, marks=MARKS[wall]) for wall in QUICK])
async def test_all_blows_lose_nothing_and_run_nothing_twice(
    place: Place, nursery: trio.Nursery, wall: str
) -> None:
    """The same with all that can be struck behind a wall, one after another."""
    await require_well(place, nursery, wall)
