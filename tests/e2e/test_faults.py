"""A daemon whose disk, tracker, workspace root or locks fail under it, and come back."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest
import trio

from tests.e2e.conftest import Start
from tests.e2e.daemon import Daemon, run_command
from tests.e2e.place import PATIENCE, Place
from tests.e2e.stubborn import SEARCHING, gone, in_short
from tests.ports import free_port
from tests.transports.mounts import full_disk as disk_without_room
from tests.transports.mounts import requires_mounts

WAIT_FOR_GO = "touch ../../waits; while [ ! -e ../../go ]; do sleep 0.05; done"
"""A hook during which the test does what it likes."""

needs_prlimit = pytest.mark.skipif(
    not hasattr(resource, "prlimit"), reason="limits of another process cannot be set here"
)


@contextmanager
def full_disk(daemon: Daemon) -> Iterator[None]:
    """Let the daemon write to no file meanwhile; what runs already is not concerned."""
    pid = daemon.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        if psutil.pid_exists(pid):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


async def ask_for(daemon: Daemon, place: Place, path: str) -> httpx.Response:
    """Give the daemon a command, as its operator."""
    known = json.loads((place.root / ".sortie.db.daemon").read_text())
    headers = {"authorization": f"Bearer {known['token']}"}
    async with httpx.AsyncClient(verify=False, trust_env=False, timeout=PATIENCE) as client:
        return await client.post(f"{daemon.url}{path}", headers=headers)


async def until_gone(pids: list[int]) -> None:
    """Wait until these processes are no more."""
    with trio.fail_after(PATIENCE):
        while not gone(pids):
            await trio.sleep(0.05)


@requires_mounts
async def test_a_full_disk_below_the_workspaces_costs_no_attempt(
    place: Place, start: Start
) -> None:
    """Not ready, with the reason; nothing fails for it, and with room everything runs."""
    names = [f"L-{number}" for number in range(4)]
    for name in names:
        place.add_issue(name)

    with disk_without_room(place.root / "disk") as ballast:
        place.write_workflow(
            workspace={"root": str(place.root / "disk" / "workspaces")},
            polling={"interval_ms": 500},
        )
        async with start() as daemon:
            await daemon.ready(503, "No space left")
            begun = place.agents()
            ballast.unlink()
            await daemon.line("issue.moved", lifecycle="handoff", nth=len(names))
            await daemon.ready()
        rows = await place.history()

    assert begun == []
    assert {(row["issue"], row["attempt"]) for row in rows} == {(name, 0) for name in names}


@needs_prlimit
async def test_a_full_disk_stops_dispatch_and_mends_itself(place: Place, start: Start) -> None:
    """Not ready, the gauge at 0 and the reason in the log; nothing starts, the agent lives on; an
    operator's stop ends it at once and is recorded when there is room, without a restart."""
    place.add_issue("A", "hang=1")

    async with start() as daemon:
        await daemon.line("turn.started", issue="A")
        with trio.fail_after(PATIENCE):
            while not place.agents():
                await trio.sleep(0.02)
        agent = place.first_agent()
        with full_disk(daemon):
            place.add_issue("B")  # refused by the workspaces' disk or by the database
            await daemon.ready(503)
            await daemon.line("poll.skipped")
            alive = await daemon.get("/livez")
            agent_lives = not gone([agent])
            began = trio.current_time()
            answer = await ask_for(daemon, place, "/api/v1/issues/A/stop")
            waited = trio.current_time() - began
            await until_gone([agent])
            failed = await daemon.line("store.failed")
            metrics = await daemon.metrics()
            started = daemon.lines("run.started", issue="B")
        await daemon.line("store.recovered")
        held = await daemon.line("issue.held", issue="A", reason="operator")
        await daemon.line("issue.moved", issue="B", lifecycle="handoff")
        await daemon.ready()
        after = await daemon.metrics()
    rows = await place.history()

    assert (alive.status_code, agent_lives, started) == (200, True, [])
    assert (answer.status_code, waited < 9) == (503, True)
    assert "could not be recorded yet" in answer.json()["error"]["message"]
    assert failed["level"] == "error"
    assert metrics.total("sortie_store_writable") == 0
    assert after.total("sortie_store_writable") == 1
    assert held["reason"] == "operator"
    assert in_short(rows) == [(0, "cancelled"), (0, "succeeded")]


@needs_prlimit
async def test_a_kill_on_a_full_disk_loses_nothing(place: Place, start: Start) -> None:
    """The next start, with room again, ends the agent, records the run and finishes the issue; one
    whose start could not be recorded was not started."""
    place.add_issue("A", "hang=1")

    async with start(**SEARCHING) as daemon:
        with trio.fail_after(PATIENCE):
            while not place.agents():
                await trio.sleep(0.02)
        await daemon.line("turn.started", issue="A")
        agent = place.first_agent()
        with full_disk(daemon):
            place.add_issue("B")  # refused by the workspaces' disk or by the database
            await daemon.ready(503)
            started = daemon.lines("run.started", issue="B")
            daemon.signal(signal.SIGKILL)
            await daemon.exit_code()
    orphaned = not gone([agent])
    async with start(**SEARCHING, KIRO_SIM_HANG="0") as daemon:
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
        await daemon.line("issue.moved", issue="B", lifecycle="handoff")
        reaped = daemon.lines("orphans.reaped", where="local")
    rows = await place.history()

    assert orphaned
    assert gone([agent])
    assert started == []
    assert [line["count"] for line in reaped] == [1]
    ran = sorted((row["issue"], row["status"]) for row in rows)
    assert ran == [("A", "interrupted"), ("A", "succeeded"), ("B", "succeeded")]


SMALL_DISK = 'mount -t tmpfs -o size=4m sortie-test "$0" && exec "$@"'


@pytest.fixture
def small_disk(place: Place) -> tuple[str, ...]:
    """A command that mounts a small disk at ``disk`` and runs its arguments where it is seen."""
    disk = place.root / "disk"
    disk.mkdir()
    command = ("unshare", "--map-root-user", "--mount", "sh", "-c", SMALL_DISK, str(disk))
    try:
        subprocess.run([*command, "true"], check=True, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no small disk can be mounted: {getattr(error, 'stderr', error)}")
    return command


@pytest.mark.full
async def test_a_disk_without_space_is_named_and_mends_itself(
    place: Place, small_disk: tuple[str, ...], nursery: trio.Nursery
) -> None:
    """A real disk that is full of something else: no run starts until there is space again."""
    port = free_port()
    daemon = Daemon(place, nursery, (*small_disk, *run_command(port=port)), port)
    daemon.environ = {"SORTIE_DB_PATH": str(place.root / "disk" / "sortie.db")}

    async with daemon:
        await daemon.ready()
        seen = Path(f"/proc/{daemon.process.pid}/root{place.root}/disk")
        with open(seen / "ballast", "wb", buffering=0) as ballast, pytest.raises(OSError):
            while True:
                ballast.write(bytes(4096))
        place.add_issue("A")
        await daemon.ready(503, saying="the disk is full")
        await daemon.line("poll.skipped")
        meanwhile = place.state_of("A"), daemon.lines("run.started")
        (seen / "ballast").unlink()
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
        await daemon.ready()

    assert meanwhile == ("Todo", [])


async def test_a_database_that_is_moved_away_stops_dispatch(place: Place, start: Start) -> None:
    """Rows that nobody would find again are not written; back in its place, all goes on."""
    database, aside = place.root / ".sortie.db", place.root / "aside.db"

    async with start() as daemon:
        await daemon.ready()
        database.rename(aside)
        await daemon.ready(503, saying=str(database))
        place.add_issue("A")
        await daemon.line("poll.skipped")
        meanwhile = place.state_of("A")
        aside.rename(database)
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
        await daemon.ready()
    rows = await place.history()

    assert meanwhile == "Todo"
    assert in_short(rows) == [(0, "succeeded")]


async def test_issues_that_are_away_stop_nothing_that_runs(place: Place, start: Start) -> None:
    """While the tracker's directory is gone the run goes on, readiness says why nothing starts,
    and with the directory the run is handed off and the rest begins."""
    place.write_workflow(hooks={"before_run": WAIT_FOR_GO})
    place.add_issue("A")
    aside = place.root / "aside"

    async with start() as daemon:
        await place.until_there("waits")
        place.issues.rename(aside)
        await daemon.ready(503, saying="issues")
        (place.root / "go").touch()
        await daemon.line("turn.completed", issue="A")
        state = await daemon.state()
        aside.rename(place.issues)
        place.add_issue("B")
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
        await daemon.line("issue.moved", issue="B", lifecycle="handoff")
        await daemon.ready()
    rows = await place.history()

    assert [run["issue_identifier"] for run in state["running"]] == ["A"]
    assert in_short(rows) == [(0, "succeeded"), (0, "succeeded")]


async def test_a_root_that_vanishes_under_a_run_is_not_made_anew(
    place: Place, start: Start
) -> None:
    """The run fails and leaves nothing in the root's place, nothing is started, and readiness names
    the root; once it is back, all goes on without a restart."""
    place.write_workflow(hooks={"before_run": WAIT_FOR_GO})
    place.add_issue("A")
    aside = place.root / "aside"

    async with start() as daemon:
        await place.until_there("waits")
        place.workspaces.rename(aside)
        await daemon.ready(503, saying=str(place.workspaces))
        place.add_issue("B")
        (place.root / "go").touch()
        failed = await daemon.line("run.finished", issue="A")
        is_there = place.workspaces.exists()
        started = daemon.lines("run.started", issue="B")
        aside.rename(place.workspaces)
        await daemon.line("issue.moved", issue="B", lifecycle="handoff")
        await daemon.ready()

    assert (failed["status"], is_there, started) == ("failed", False, [])
    assert {agent["cwd"] for agent in place.agents()} >= {str(place.workspaces / "B")}


async def test_of_two_daemons_one_gets_a_root_that_comes_later(place: Place, start: Start) -> None:
    """Both start without a root; the one that makes it works, the other names it and takes over
    when it is gone, also by a kill."""
    place.workspaces.write_text("in the way")

    async with start() as one, start(SORTIE_DB_PATH=str(place.root / "other.db")) as two:
        for daemon in (one, two):
            await daemon.ready(503, saying=str(place.workspaces))
        place.workspaces.unlink()
        holder, other = await first_ready(one, two)
        await other.ready(503, saying=f"pid {holder.process.pid}")
        place.add_issue("A")
        await holder.line("issue.moved", issue="A", lifecycle="handoff")
        started = other.lines("run.started")
        holder.signal(signal.SIGKILL)
        await holder.exit_code()
        await other.ready()
        place.add_issue("B")
        await other.line("issue.moved", issue="B", lifecycle="handoff")

    assert started == []
    assert os.listdir(place.workspaces).count("B") == 1


async def first_ready(one: Daemon, two: Daemon) -> tuple[Daemon, Daemon]:
    """Return which of two daemons is ready first, and the other."""
    with trio.fail_after(PATIENCE):
        while True:
            for ready, other in ((one, two), (two, one)):
                if (await ready.get("/readyz")).status_code == 200:
                    return ready, other
            await trio.sleep(0.05)
