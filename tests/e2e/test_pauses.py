"""A daemon that is stopped and goes on, and one that cannot go on."""

from __future__ import annotations

import signal
import subprocess
import sys

import psutil
import trio

from sortie.resources.watchdog import EXIT_STUCK
from tests.e2e.conftest import Start
from tests.e2e.place import PATIENCE, Place
from tests.ports import free_port

PAUSE = 14.0

BROKEN = """
import sys
from sortie.cli import main
from sortie.orchestrator.journal import Journal
from sortie.resources import watchdog

watchdog.LAST_SECONDS = 2.0
watchdog.Watchdog.leave_within.__defaults__ = (2.0,)
write = Journal.write

async def breaking(journal, nursery):
    if any(type(item).__name__ == "RecordTurn" for item in journal._waiting):
        raise MemoryError("there is no more")
    return await write(journal, nursery)

Journal.write = breaking
sys.exit(main())
"""
"""A daemon whose loop breaks when the first turn is to be recorded."""


async def test_a_stopped_daemon_finds_no_fault_with_its_agents(place: Place, start: Start) -> None:
    """What an agent did while the daemon was stopped is read before a limit is judged."""
    place.add_issue("quick", "delay=0.5")
    place.write_workflow(agent={"stall_timeout_ms": 10_000, "turn_timeout_ms": 12_000})
    async with start() as daemon:
        with trio.fail_after(PATIENCE):
            while not place.agents():
                await trio.sleep(0.02)
        agent = psutil.Process(place.first_agent())
        daemon.signal(signal.SIGSTOP)
        await trio.sleep(PAUSE)  # longer than both limits
        with trio.fail_after(PATIENCE):
            while agent.is_running() and agent.status() != psutil.STATUS_ZOMBIE:
                await trio.sleep(0.02)
        daemon.signal(signal.SIGCONT)
        finished = await daemon.line("run.finished")
        told = await daemon.line("daemon.was_paused")

    assert finished["status"] == "succeeded"
    assert told["seconds"] > PAUSE / 2


async def test_an_agent_that_stays_silent_after_a_pause_is_still_found_out(
    place: Place, start: Start
) -> None:
    """A pause only puts the limit off."""
    place.add_issue("silent", "hang=1")
    place.write_workflow(agent={"stall_timeout_ms": 10_000})
    async with start() as daemon:
        with trio.fail_after(PATIENCE):
            while not place.agents():
                await trio.sleep(0.02)
        daemon.signal(signal.SIGSTOP)
        await trio.sleep(PAUSE)
        daemon.signal(signal.SIGCONT)
        finished = await daemon.line("run.finished")

    assert finished["status"] == "stalled"


async def test_a_daemon_that_breaks_is_gone_in_time(place: Place) -> None:
    """A hook that does not end holds up nobody: it says why, where it stands, and leaves."""
    place.add_issue("a")
    place.write_workflow(hooks={"after_run": "sleep 60", "timeout_ms": 60_000})
    command = [sys.executable, "-c", BROKEN, "run", "--port", str(free_port())]

    with trio.fail_after(PATIENCE):
        done = await trio.run_process(
            [*command, "--log-format", "json"],
            cwd=place.root,
            env=place.environ({}),
            capture_stderr=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    place.kill_processes()

    said = done.stderr.decode()
    assert done.returncode == EXIT_STUCK
    assert '"daemon.crashed"' in said
    assert "there is no more" in said
    assert "could not end in time" in said
