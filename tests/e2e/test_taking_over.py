"""Runs on hosts that go on under another daemon, or in the next life of the same one."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.e2e.conftest import Start
from tests.e2e.daemon import Daemon
from tests.e2e.forged import (
    SETTINGS,
    Forged,
    forge_of,
    kill_at,
    make_bare,
    until_all_are_handed_off,
)
from tests.e2e.place import PATIENCE, PROMPT, Place
from tests.e2e.remote import Fleet
from tests.e2e.test_remote_reattach import REATTACH, prepare
from tests.forges.service import PATH, TOKEN
from tests.transports.ssh.sshd import requires_sshd
from tests.workspaces.git_http import git_server

pytestmark = requires_sshd


async def agents_began(fleet: Fleet, count: int = 1, event: str = "start") -> None:
    """Wait until so many agents have begun, or ended."""
    with trio.fail_after(PATIENCE):
        while len(fleet.agents(event)) < count:
            await trio.sleep(0.05)


async def kill(daemon: Daemon) -> None:
    """End a daemon as a crash does."""
    daemon.signal(signal.SIGKILL)
    await daemon.exit_code()


async def test_after_a_crash_the_run_goes_on(place: Place, start: Start, fleet: Fleet) -> None:
    """With its agent, which is started once, and to the same end."""
    _, files = prepare(fleet)
    place.add_issue("LIVES", "delay=6 credits=0.5")

    async with start() as daemon:
        await daemon.line("turn.started", issue="LIVES")
        await agents_began(fleet)
        await kill(daemon)

    async with start() as daemon:
        taken = await daemon.line("run.taken_over", issue="LIVES")
        completed = await daemon.line("turn.completed", issue="LIVES")
        await daemon.line("issue.moved", lifecycle="handoff", issue="LIVES")
        again = daemon.lines("turn.started")
    (row,) = await place.history()

    assert (taken["turn"], again) == (1, [])
    assert completed["seconds"] >= 6
    assert (row["issue"], row["status"], row["attempt"]) == ("LIVES", "succeeded", 0)
    assert (row["turns"], row["credits"]) == (1, 0.5)
    assert row["taken_over"] == f"from {taken['daemon']} in turn 1"
    assert len(fleet.agents("start")) == 1
    assert os.listdir(files) == []


@pytest.mark.full
async def test_what_ended_without_a_daemon_is_read_by_the_next(
    place: Place, start: Start, fleet: Fleet
) -> None:
    """Its end is kept on the host, and so is what it had to say; the link was cut as well."""
    host, files = prepare(fleet)
    place.add_issue("ENDS", 'delay=3 credits=0.25 say="all is well"')

    async with start() as daemon:
        await daemon.line("turn.started", issue="ENDS")
        await agents_began(fleet)
        host.kill_links()
        await kill(daemon)
    await agents_began(fleet, event="stop")

    async with start() as daemon:
        await daemon.line("run.taken_over", issue="ENDS")
        await daemon.line("issue.moved", lifecycle="handoff", issue="ENDS")
    (row,) = await place.history()

    assert (row["status"], row["turns"], row["credits"]) == ("succeeded", 1, 0.25)
    assert row["answer"] == "all is well"
    assert len(fleet.agents("start")) == 1
    assert os.listdir(files) == []


@pytest.mark.full
async def test_a_run_goes_on_twice_in_a_turn_and_once_in_the_next(
    place: Place, start: Start, fleet: Fleet
) -> None:
    """Turns before count, and none counts twice."""
    _, files = prepare(fleet)
    fleet.write_workflow(worker=REATTACH, agent={"command": "sortie-kiro-sim", "max_turns": 2})
    place.add_issue("LONG", "delay=10 credits=0.5 status=working")

    for turn in (1, 1, 2):
        async with start() as daemon:
            await agents_began(fleet, turn)
            if turn == 2:
                await daemon.line("turn.started", turn=2)
            await trio.sleep(1)
            await kill(daemon)
    async with start() as daemon:
        taken = await daemon.line("run.taken_over", issue="LONG")
        await daemon.line("issue.moved", lifecycle="handoff", issue="LONG")
    (row,) = await place.history()

    assert taken["turn"] == 2
    assert (row["status"], row["turns"], row["credits"]) == ("succeeded", 2, 1.0)
    assert row["taken_over"].count("in turn 1") >= 1
    assert len(fleet.agents("start")) == 2
    assert os.listdir(files) == []


@pytest.mark.full
async def test_an_agent_of_other_settings_is_ended(
    place: Place, start: Start, fleet: Fleet
) -> None:
    """Its issue runs again, with the agent of now."""
    _, files = prepare(fleet)
    place.add_issue("OTHER", "delay=600")

    async with start() as daemon:
        await daemon.line("turn.started", issue="OTHER")
        await agents_began(fleet)
        await kill(daemon)
    before = fleet.living("one")
    command = ["sortie-kiro-sim", "--verbose"]
    fleet.write_workflow(worker=REATTACH, agent={"command": command, "max_turns": 1})
    async with start() as daemon:
        await daemon.line("run.interrupted", issue="OTHER")
        gone = set(fleet.living("one")) & set(before)

    assert before
    assert gone == set()
    assert os.listdir(files) == []


@pytest.fixture
def forged(tmp_path: Path) -> Iterator[Forged]:
    """A forge, with git over HTTP."""
    root = tmp_path / "forge"
    bare = make_bare(root)
    with (
        git_server(root, TOKEN) as remote,
        forge_of("gitea", bare, f"{remote.url}/{PATH}.git") as forged,
    ):
        yield forged


@pytest.mark.full
@pytest.mark.portless
async def test_work_is_delivered_by_a_daemon_that_has_fetched_nothing_yet(
    place: Place, start: Start, fleet: Fleet, forged: Forged
) -> None:
    """It knows the base of the work from the record, as the settings need not name it."""
    fleet.add("one")
    fleet.write_workflow(PROMPT, worker=REATTACH, **SETTINGS | forged.blocks)
    place.add_issue("T-1", "delay=5")

    async with start(FORGE_TOKEN=TOKEN) as daemon:
        await daemon.line("turn.started", issue="T-1")
        await agents_began(fleet)
        await kill(daemon)
    async with start(FORGE_TOKEN=TOKEN) as daemon:
        await daemon.line("run.taken_over", issue="T-1")
        await until_all_are_handed_off(place, ["T-1"])
    (row,) = await place.history()

    forged.require_delivered(["T-1"])
    assert (row["status"], row["attempt"]) == ("succeeded", 0)


@pytest.mark.full
@pytest.mark.portless
async def test_work_is_delivered_once_whenever_the_daemon_dies(
    place: Place, start: Start, fleet: Fleet, forged: Forged
) -> None:
    """Runs go on in their branches, with what was known of them; some are killed in a turn, and
    some while their work is delivered."""
    luck = random.Random(5)
    fleet.add("one")
    fleet.write_workflow(PROMPT, worker=REATTACH, **SETTINGS | forged.blocks)
    names = [f"T-{number}" for number in range(8)]
    for number, name in enumerate(names):
        place.add_issue(name, f"delay={1 + number % 4}")

    taken = 0
    for stage in ("", "finished", "", "proven", "", "pushed", "", "delivered"):
        async with start(FORGE_TOKEN=TOKEN) as daemon:
            await daemon.line("daemon.started")
            if stage:
                await kill_at(daemon, stage, luck)
            else:
                await trio.sleep(luck.uniform(1, 4))
                await kill(daemon)
            taken += len(daemon.lines("run.taken_over"))
    async with start(FORGE_TOKEN=TOKEN) as daemon:
        await daemon.line("daemon.started")
        await until_all_are_handed_off(place, names)
    forged.require_delivered(names)
    rows = await place.history()

    fleet.require_nothing_local()
    assert taken >= 3
    assert not [row for row in rows if row["status"] not in ("succeeded", "interrupted")]
