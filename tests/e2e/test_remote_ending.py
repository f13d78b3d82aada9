"""What ran on a remote host is gone when it has to be, whatever ended: turn, daemon or link."""

from __future__ import annotations

import shlex
import signal
import sys
import time
from collections.abc import Sequence
from datetime import datetime

import pytest
import trio

from sortie.transports.remote.launch import Bounds
from tests.e2e.conftest import Start
from tests.e2e.place import PATIENCE, PROMPT, Json, Place
from tests.e2e.remote import Fleet, all_ended_at
from tests.e2e.separated import separated
from tests.e2e.stubborn import (
    ALIVE,
    STUBBORN,
    found_alive_before_each_run,
    gone,
    in_short,
    pids_of_a_stubborn_agent,
)
from tests.transports.ssh.sshd import requires_sshd

pytestmark = requires_sshd

GRACE = 1.0
"""Seconds: the grace time of these tests."""

SOONER = Bounds().lease - Bounds().beat + GRACE
"""Seconds from the end of a link to the earliest end of an agent by its lease: one that ends sooner
was not waited for, but ended as the host noticed that the link is gone."""

STUBBORN_FIRST = (
    PROMPT + f"\nsim: {{% if attempt == 0 %}}{STUBBORN}{{% else %}}delay=0{{% endif %}}\n"
)


def stubborn(
    fleet: Fleet,
    place: Place,
    prompt: str = PROMPT,
    hosts: Sequence[str] | None = None,
    isolation: str = "none",
    **agent: object,
) -> None:
    """Write a workflow with a short grace time and a hook that looks who is alive.

    Without namespaces, the pids that agents tell of themselves are those of the host.
    """
    look = [sys.executable, str(ALIVE), str(place.agents_log), str(place.root / "alive")]
    settings: dict[str, object] = {
        "command": "sortie-kiro-sim",
        "max_turns": 1,
        "stop_grace_ms": int(GRACE * 1000),
        "max_retry_backoff_ms": 500,
    }
    hooks = {"before_run": shlex.join(look)}
    fleet.write_workflow(
        prompt, hosts=hosts, agent=settings | agent, hooks=hooks, isolation=isolation
    )


def moment(line: Json) -> float:
    """Return when a line was logged, in Unix seconds."""
    return datetime.fromisoformat(line["time"]).timestamp()


async def test_a_turn_that_times_out_leaves_nothing(
    place: Place, start: Start, fleet: Fleet
) -> None:
    """An agent that ignores SIGTERM and its child in another session are gone in time."""
    fleet.add("one")
    stubborn(fleet, place, STUBBORN_FIRST, turn_timeout_ms=8000)
    place.add_issue("A")

    async with start() as daemon:
        pids = await pids_of_a_stubborn_agent(place)
        ended = await all_ended_at(pids)
        began = moment(await daemon.line("turn.started", issue="A"))
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
    rows = await place.history()

    assert ended - began >= 8.0 + GRACE
    assert in_short(rows) == [(0, "timed_out"), (1, "succeeded")]
    assert found_alive_before_each_run(place) == [[], []]


async def test_the_death_of_the_daemon_ends_what_it_ran(
    place: Place, start: Start, fleet: Fleet
) -> None:
    """After kill -9 nobody tells the host, and the agent with its child is gone in time."""
    fleet.add("one")
    stubborn(fleet, place)
    place.add_issue("A", STUBBORN)

    async with start() as daemon:
        pids = await pids_of_a_stubborn_agent(place)
        killed = time.time()
        daemon.signal(signal.SIGKILL)
        ended = await all_ended_at(pids)
        await daemon.exit_code()

    assert GRACE <= ended - killed < SOONER


@pytest.mark.parametrize("how", ["killed", "stopped"])
async def test_the_end_of_the_daemon_ends_namespaces(
    place: Place, start: Start, fleet: Fleet, how: str
) -> None:
    """An agent that ignores SIGTERM, and its child in another session, end at once when the grace
    time is over; the next start runs the issue again."""
    fleet.add("one")
    stubborn(fleet, place, isolation="pid-namespace")
    place.add_issue("A", STUBBORN)

    async with start() as daemon:
        await pids_of_a_stubborn_agent(place)
        told = await daemon.line("host.isolation", host="one")
        before = fleet.living("one")
        daemon.signal(signal.SIGKILL if how == "killed" else signal.SIGTERM)
        await all_ended_at(before)
        await daemon.exit_code()
        left = fleet.living("one")
    place.add_issue("A", state="In Progress")
    stubborn(fleet, place, isolation="pid-namespace")
    async with start() as daemon:
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
    rows = await place.history()

    assert "PID namespace of its own" in told["detail"]
    assert len(before) >= 2
    assert left == []
    assert rows[-1]["status"] == "succeeded"


@pytest.mark.full
async def test_a_cut_link_ends_what_ran_there(place: Place, start: Start, fleet: Fleet) -> None:
    """Where no packet gets through any more, the agent with its child ends by its lease."""
    with separated(fleet, "far") as link:
        stubborn(fleet, place)
        place.add_issue("A", STUBBORN)

        async with start() as daemon:
            pids = await pids_of_a_stubborn_agent(place)
            link.cut()
            await all_ended_at(pids, within=Bounds().lease + PATIENCE)
            link.mend()
            daemon.signal(signal.SIGTERM)
            code = await daemon.exit_code()

    assert code == 0


async def test_what_a_killed_daemon_left_is_gone_before_the_issue_runs_again(
    place: Place, start: Start, fleet: Fleet
) -> None:
    """The host would wait long for the agent to go; the next start ends it, at the same attempt."""
    fleet.add("one")
    stubborn(fleet, place, stop_grace_ms=20_000)
    place.add_issue("A", STUBBORN)

    async with start() as daemon:
        pids = await pids_of_a_stubborn_agent(place)
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
    left = not gone(pids)
    place.add_issue("A", state="In Progress")
    stubborn(fleet, place)
    async with start() as daemon:
        reaped = await daemon.line("orphans.reaped", where="host")
        again = await daemon.line("run.started", issue="A")
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
    rows = await place.history()

    assert left
    assert reaped["count"] >= len(pids)
    assert (again["attempt"], again["host"]) == (0, "one")
    assert in_short(rows) == [(0, "interrupted"), (0, "succeeded")]
    assert found_alive_before_each_run(place) == [[], []]


async def test_a_host_that_cannot_be_asked_is_swept_before_its_next_use(
    place: Place, start: Start, fleet: Fleet
) -> None:
    """At a restart without it the issue waits for its lease; another's run there comes after the
    sweep, when the host is back."""
    (host,) = fleet.add("one")
    stubborn(fleet, place, stop_grace_ms=20_000)
    place.add_issue("A", STUBBORN)

    async with start() as daemon:
        pids = await pids_of_a_stubborn_agent(place)
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
    host.crash()
    stubborn(fleet, place)
    async with start() as daemon:
        unknown = await daemon.line("orphans.left", where="host")
        restored = await daemon.line("daemon.started")
        (waiting,) = (await daemon.state())["waiting"]
        left = not gone(pids)
        host.start()
        place.add_issue("B")
        await daemon.line("issue.moved", issue="B", lifecycle="handoff")
        reaped = daemon.lines("orphans.reaped", where="host")
    rows = await place.history()

    assert left
    assert "host one" in unknown["error"]
    assert (waiting["issue_identifier"], waiting["attempt"]) == ("A", 0)
    due = datetime.fromisoformat(waiting["due_at"]).timestamp()
    assert due - moment(restored) > Bounds().lease
    assert sum(line["count"] for line in reaped) >= len(pids)
    assert [(row["issue"], row["status"]) for row in rows] == [
        ("A", "interrupted"),
        ("B", "succeeded"),
    ]
    assert found_alive_before_each_run(place) == [[], []]


async def test_who_leaves_while_a_host_is_silent_does_not_wait_for_it(
    place: Place, start: Start, fleet: Fleet
) -> None:
    """A start that finds a host frozen can be broken off; the next one asks again."""
    (host,) = fleet.add("one")
    place.add_issue("A", "delay=600")
    async with start() as daemon:
        with trio.fail_after(PATIENCE):
            while not fleet.agents("start"):
                await trio.sleep(0.02)
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
    host.freeze()
    async with start() as daemon:
        await daemon.line("orphans.sought", host="one", runs=1)
        daemon.signal(signal.SIGTERM)
        code = await daemon.exit_code(within=20)
    host.thaw()
    place.add_issue("A", state="In Progress")
    async with start() as daemon:
        await daemon.line("state.restored", interrupted=1)
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
    rows = await place.history()

    assert code == 0
    assert in_short(rows) == [(0, "interrupted"), (0, "succeeded")]


@pytest.mark.full
async def test_issues_of_hosts_that_died_run_again_after_the_lease(
    place: Place, start: Start, fleet: Fleet
) -> None:
    """One waits for its workspace and runs there again; the other, whose host was taken out of
    the list, begins anew; neither before what it had left must have ended."""
    back, lost = fleet.add("back", "lost")
    stubborn(fleet, place, f"{PROMPT}\nsim: {STUBBORN}\n")
    place.add_issue("A")
    place.add_issue("B")

    async with start() as daemon:
        with trio.fail_after(PATIENCE):
            while len(children := place.agents("child")) < 2:
                await trio.sleep(0.02)
        runs = (await daemon.state())["running"]
        on = {run["host"]: run["issue_identifier"] for run in runs}
        died = time.time()
        back.crash()
        lost.crash()
        ended = await all_ended_at(line[pid] for line in children for pid in ("pid", "child_pid"))
        for name in fleet.hosts:
            await daemon.line("host.rested", host=name)
        down = await daemon.metrics()
        fleet.add("well")
        stubborn(fleet, place, hosts=["back", "well"])
        back.start()
        again = {
            name: await daemon.line("run.started", issue=on[name], nth=2, within=90)
            for name in ("back", "lost")
        }
        for name in on.values():
            await daemon.line("issue.moved", issue=name, lifecycle="handoff")
        up = await daemon.metrics()
    rows = await place.history()

    assert ended - died < SOONER
    assert [down.total("sortie_ssh_host_up", host=name) for name in ("back", "lost")] == [0, 0]
    assert up.total("sortie_ssh_host_up", host="back") == 1
    assert again["back"]["host"] == "back"
    for line in again.values():
        assert line["attempt"] == 0  # a cut is not the agent's failure
        assert moment(line) - died >= Bounds().lease + GRACE + 5.0
    assert {(row["attempt"], row["status"]) for row in rows} == {(0, "failed"), (0, "succeeded")}
    assert {row["error_kind"] for row in rows if row["status"] == "failed"} == {"port_exit"}
    # The other issue's new agent may well be alive: both leases end at the same moment.
    left = {line[pid] for line in children for pid in ("pid", "child_pid")}
    assert [left & set(alive) for alive in found_alive_before_each_run(place)[2:]] == [set()] * 2
