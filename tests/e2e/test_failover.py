"""A leader that is killed, stopped or cut off, and the daemon that takes its workflow over."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator

import pytest
import trio

from tests.e2e.failovers import BLOWS, SLOTS, Candidate, a_pair
from tests.e2e.place import Place
from tests.e2e.remote import Fleet
from tests.e2e.witnessing import witnessed
from tests.store.postgres_server import PostgresServer, postgres_running
from tests.transports.ssh.sshd import requires_sshd

SEEDS = int(os.environ.get("SORTIE_FAILOVER_SEEDS", "3"))
"""Games to play with --full; each has six failovers, whose seconds it prints."""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server with durable commits."""
    with postgres_running(fsync="on") as running:
        yield running


async def test_a_stopped_leader_is_followed_and_never_wakes(
    place: Place, server: PostgresServer
) -> None:
    """Its watchdog ends it, so that no issue has two agents, and its successor begins anew."""
    async with a_pair(place, server) as pair:
        former = await pair.led()
        await pair.worked_on(SLOTS)
        following = await pair.strike("stopped")
        await pair.worked_on(2 * SLOTS)
        acquired = await following.daemon.line("lease.acquired")
        interrupted = following.daemon.lines("run.interrupted")
        seen = await following.daemon.state()

    assert pair.troubles() == []
    assert acquired["former"].endswith(f":{former.pid}")
    assert len(interrupted) == SLOTS
    assert [row[2] for row in pair.leaderships()] == ["expired", "released"]
    assert seen["lease"]["is_here"]
    assert seen["lease"]["token"] == acquired["token"]
    assert [one["ended_by"] for one in seen["lease"]["last"]] == [None, "expired"]
    leads = {one["name"]: one["leads"] for one in seen["daemons"]}
    assert leads[acquired["former"]] == []
    assert leads[seen["lease"]["leader"]] == [seen["lease"]["workflow"]]


async def test_a_leader_whose_disk_is_full_lets_another_one_lead(
    place: Place, server: PostgresServer
) -> None:
    """It gives the workflow back, stands by, and stands for it again once there is room."""
    async with a_pair(place, server) as pair:
        former = await pair.led()
        await pair.worked_on(SLOTS)
        await pair.strike("full")
        lost = await former.daemon.line("lease.lost")
        await former.daemon.line("lease.waiting")
        await pair.worked_on(2 * SLOTS)

    assert pair.troubles() == []
    assert "No space left on device" in lost["reason"]
    assert pair.leaderships()[0][2] == "unfit"


async def agents_began(place: Place, runs: int) -> None:
    """Wait until the agents of so many runs have begun."""
    with trio.fail_after(120.0):
        while True:
            begun = [one for one in witnessed(place, "start") if one["program"] == "agent"]
            if len({one["run_id"] for one in begun}) >= runs:
                return
            await trio.sleep(0.1)


@requires_sshd
@pytest.mark.full
@pytest.mark.parametrize("blow", ["stopped", "cut off", "killed"])
async def test_a_leader_is_followed_on_a_host(
    place: Place, server: PostgresServer, blow: str
) -> None:
    """The links of the former one stand, or its host has not noticed that they are gone: its agents
    end before those of the next one begin."""
    fleet = Fleet(place)
    (host,) = fleet.add("one")
    try:
        blocks = fleet.blocks(worker={"ssh_reattach": False})
        async with a_pair(place, server, **blocks) as pair:
            former = await pair.led()
            await agents_began(place, SLOTS)
            following = await pair.strike(blow)
            await agents_began(place, 2 * SLOTS)
            acquired = await following.daemon.line("lease.acquired")
            reaped = following.daemon.lines("run.interrupted")
    finally:
        left = host.close()

    assert pair.troubles() == []
    assert acquired["former"].endswith(f":{former.pid}")
    assert len(reaped) == SLOTS
    assert left == []


@requires_sshd
@pytest.mark.full
@pytest.mark.parametrize("blow", ["stopped", "cut off", "killed", "killed, links cut", "drained"])
async def test_runs_on_a_host_go_on_under_the_next_leader(
    place: Place, server: PostgresServer, blow: str
) -> None:
    """With their agents, of which none is started twice or ended, and without a hook."""
    fleet = Fleet(place)
    (host,) = fleet.add("one")
    try:
        blocks = fleet.blocks(worker={"ssh_reattach": True})
        async with a_pair(place, server, **blocks) as pair:
            former = await pair.led()
            await agents_began(place, SLOTS)
            living = set(fleet.living("one"))
            if blow.endswith("cut"):
                host.kill_links()
            if blow == "drained":
                await drain(former)
                following = await pair.led(but=former.pid)
            else:
                following = await pair.strike(blow.partition(",")[0])
            taken = await following.daemon.line("run.taken_over", nth=SLOTS)
            answered = await following.daemon.line("state.restored")
            hooks = [one for one in witnessed(place, "start") if one["program"] != "agent"]
            begun = [one for one in witnessed(place, "start") if one["program"] == "agent"]
            still = living & set(fleet.living("one"))
    finally:
        left = host.close()

    assert pair.troubles() == []
    assert (answered["taken_over"], answered["interrupted"]) == (SLOTS, 0)
    assert taken["daemon"].endswith(f":{former.pid}")
    assert len(begun) == SLOTS
    assert {one["program"] for one in hooks} <= {"after_create", "before_run"}
    assert still == living
    assert left == []


async def drain(candidate: Candidate) -> None:
    """Have a daemon hand its workflow over, and wait until it has."""
    environ = {name: value for name, value in candidate.daemon.environ.items() if value}
    ran = await candidate.place.sortie("drain", "--wait", "60", **environ)  # type: ignore[arg-type]
    assert ran.code == 0, ran


@pytest.mark.full
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_failovers_in_a_row(place: Place, server: PostgresServer, seed: int) -> None:
    """Whatever befalls a leader, no issue has two agents, and tokens only grow."""
    chance = random.Random(seed)
    async with a_pair(place, server) as pair:
        await pair.led()
        for number in range(6):
            await pair.worked_on((number + 1) * SLOTS)
            await pair.strike(chance.choice(BLOWS))
            while len(pair.candidates) < 2:
                await pair.join(f"more-{number}")

    assert pair.troubles() == []
    assert pair.tokens == sorted(pair.tokens)
    seconds = zip((blow.partition(" ")[2] for blow in pair.blows), pair.took, strict=True)
    sys.stdout.writelines(f"took {blow}: {took:.1f}\n" for blow, took in seconds)
