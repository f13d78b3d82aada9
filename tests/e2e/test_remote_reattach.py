"""Runs on hosts that outlive their links, with the whole daemon."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from tests.e2e.conftest import Start
from tests.e2e.place import PATIENCE, Place
from tests.e2e.remote import Fleet
from tests.transports.ssh.sshd import Sshd, requires_sshd

pytestmark = requires_sshd

REATTACH = {"ssh_reattach": True, "ssh_reattach_ms": 120_000}


def prepare(
    fleet: Fleet, hooks: dict[str, object] | None = None, **agent: object
) -> tuple[Sshd, Path]:
    """Start a host; return it with the directory in which supervisors have their files."""
    (host,) = fleet.add("one")
    files = host.home / "tmp"
    files.mkdir()
    host.options["SetEnv"] = f"{host.options['SetEnv']} TMPDIR={files}"
    host.stop()
    host.start()
    agent = {"command": "sortie-kiro-sim", "max_turns": 1, **agent}
    fleet.write_workflow(worker=REATTACH, agent=agent, hooks=hooks or {})
    return host, files


async def test_a_run_whose_link_is_cut_is_handed_off_by_its_first_attempt(
    place: Place, start: Start, fleet: Fleet
) -> None:
    """The log says that the link was lost and is there again; the agent was started once."""
    host, files = prepare(fleet)
    place.add_issue("CUT", "delay=3")

    async with start() as daemon:
        await daemon.line("turn.started", issue="CUT")
        with trio.fail_after(PATIENCE):
            while not fleet.agents("start"):
                await trio.sleep(0.05)
        host.kill_links()
        lost = await daemon.line("host.link_lost", host="one")
        restored = await daemon.line("host.link_restored", host="one")
        await daemon.line("issue.moved", lifecycle="handoff", issue="CUT")
    rows = await place.history()

    assert lost["level"] == "warning"
    assert lost["seconds"] == 120.0
    assert restored["run"] == lost["run"]
    assert [(row["issue"], row["status"], row["attempt"]) for row in rows] == [
        ("CUT", "succeeded", 0)
    ]
    assert len(fleet.agents("start")) == 1
    assert os.listdir(files) == []


@pytest.mark.full
async def test_a_host_that_is_away_for_longer_than_agents_may_be_silent_costs_no_attempt(
    place: Place, start: Start, fleet: Fleet
) -> None:
    """The agent goes on there, and what it did is handed off when the host is back."""
    host, files = prepare(fleet, stall_timeout_ms=20_000)
    place.add_issue("AWAY", "delay=30")

    async with start() as daemon:
        await daemon.line("turn.started", issue="AWAY")
        with trio.fail_after(PATIENCE):
            while not fleet.agents("start"):
                await trio.sleep(0.05)
        host.crash()
        await daemon.line("host.link_lost", host="one")
        await trio.sleep(45.0)
        host.start()
        restored = await daemon.line("host.link_restored", host="one")
        await daemon.line("issue.moved", lifecycle="handoff", issue="AWAY")
    rows = await place.history()

    assert restored["seconds"] > 40.0
    assert [(row["issue"], row["status"], row["attempt"]) for row in rows] == [
        ("AWAY", "succeeded", 0)
    ]
    assert len(fleet.agents("start")) == 1
    assert os.listdir(files) == []


@pytest.mark.full
async def test_a_hook_whose_limit_passes_while_its_host_is_away_costs_no_attempt(
    place: Place, start: Start, fleet: Fleet
) -> None:
    """It goes on there, and that it has ended well is heard when the host is back."""
    begun = place.root / "begun"
    hook = f"touch {begun}; sleep 8"
    host, files = prepare(fleet, hooks={"before_run": hook, "timeout_ms": 10_000})
    place.add_issue("AWAY", "delay=0")

    async with start() as daemon:
        with trio.fail_after(PATIENCE):
            while not begun.exists():
                await trio.sleep(0.05)
        host.crash()
        await daemon.line("host.link_lost", host="one")
        await trio.sleep(15.0)
        host.start()
        ended = await daemon.line("hook.completed", hook="before_run")
        await daemon.line("issue.moved", lifecycle="handoff", issue="AWAY")
    rows = await place.history()

    assert ended["seconds"] > 10.0
    assert (ended["result"], ended["status"]) == ("ok", "exit 0")
    assert [(row["issue"], row["status"], row["attempt"]) for row in rows] == [
        ("AWAY", "succeeded", 0)
    ]
    assert os.listdir(files) == []
