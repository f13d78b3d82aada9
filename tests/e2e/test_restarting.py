"""What a daemon makes of what an earlier one left, or of one that still runs."""

from __future__ import annotations

import signal

import pytest

from tests.e2e.conftest import Start
from tests.e2e.place import STUBBORN_HOOK, Place, Ran
from tests.e2e.stubborn import (
    SEARCHING,
    STOP_STUBBORN,
    found_alive_before_each_run,
    gone,
    in_short,
    pids_of_a_stubborn_agent,
    stubborn_second_attempt,
)
from tests.e2e.ways_of_ending import requires_a_mount


async def test_a_killed_daemon_leaves_nothing_to_the_next_run(place: Place, start: Start) -> None:
    """After ``kill -9`` the next start ends the agent and its child before the issue runs again."""
    stubborn_second_attempt(place)

    async with start(**SEARCHING) as daemon:
        pids = await pids_of_a_stubborn_agent(place)
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
    orphaned = not gone(pids)
    async with start(**SEARCHING, **STOP_STUBBORN) as daemon:
        again = await daemon.line("run.started", issue="A")
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
        reaped = daemon.lines("orphans.reaped", where="local")
    rows = await place.history()

    assert orphaned
    assert again["attempt"] == 1
    assert [line["count"] for line in reaped] == [2]
    assert in_short(rows) == [(0, "failed"), (1, "interrupted"), (1, "succeeded")]
    assert found_alive_before_each_run(place) == [[], [], []]


@pytest.mark.full
async def test_two_kills_in_a_row_count_as_a_failure(place: Place, start: Start) -> None:
    """An issue whose runs the daemon does not survive is not run for ever at the same attempt."""
    place.add_issue("A", "hang=1")

    for _ in range(2):
        async with start() as daemon:
            await daemon.line("turn.started", issue="A")
            daemon.signal(signal.SIGKILL)
            await daemon.exit_code()
    async with start() as daemon:
        plan = (await daemon.state())["waiting"]
    rows = await place.history()

    assert in_short(rows) == [(0, "interrupted"), (0, "interrupted")]
    assert [(w["issue_identifier"], w["attempt"]) for w in plan] == [("A", 1)]


@requires_a_mount
async def test_sigterm_while_it_clears_up_after_the_last_life(
    place: Place, start_without_cgroups: Start
) -> None:
    """A daemon that is still ending what was left running ends that, and then with 0."""
    place.write_workflow(
        agent={"command": "sortie-kiro-sim", "max_turns": 1, "stop_grace_ms": 2000},
        hooks={"before_run": STUBBORN_HOOK},
    )
    place.add_issue("A")

    async with start_without_cgroups() as daemon:
        await place.until_there("ready")
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
    async with start_without_cgroups() as daemon:
        await place.until_there("asked")
        daemon.signal(signal.SIGTERM)
        code = await daemon.exit_code()
    rows = await place.history()

    assert code == 0
    assert in_short(rows) == [(0, "interrupted")]


async def refused(place: Place, **environ: str) -> Ran:
    """Start a second daemon, which must not start, and return what it left."""
    return await place.sortie("run", "--port", "0", within=15, **environ)


async def test_a_second_daemon_is_refused(place: Place, start: Start) -> None:
    """On the same database or workspace root it names the holder and exits 1; the first goes on."""
    async with start() as daemon:
        await daemon.line("daemon.started")
        same_root = await refused(place, SORTIE_DB_PATH=str(place.root / "other.db"))
        same_database = await refused(place, SORTIE_WORKSPACE_ROOT=str(place.root / "other"))
        state = await daemon.state()

    assert state["status"] == "running"
    for ran in (same_root, same_database):
        assert ran.code == 1
        assert ran.err.startswith("sortie: ")
        assert str(daemon.process.pid) in ran.err
        assert len(ran.err.splitlines()) == 1
