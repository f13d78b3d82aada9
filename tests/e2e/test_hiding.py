"""A daemon that is killed while agents run that have hidden from the next one all they could."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from pathlib import Path

import pytest
import trio

from tests.e2e.conftest import Start
from tests.e2e.daemon import Daemon, run_command
from tests.e2e.place import PATIENCE, Place
from tests.e2e.ways_of_ending import OTHER_WAYS
from tests.ports import free_port
from tests.transports.endings import requires_cgroups, requires_namespaces
from tests.transports.former import PROGRAMS, killed_at_last
from tests.transports.leftovers import bearers, is_alive

HIDE = shlex.join([sys.executable, str(PROGRAMS / "hidden.py")])
SIMULATOR = Path(sys.executable).with_name("sortie-kiro-sim")

KEEPS = {"MARKED": "mark", "STAYS": "directory", "GONE": ""}
"""By issue: what its agent does not hide, besides parent, session, environment and name."""


@requires_cgroups
async def test_agents_that_hid_all_they_could_are_found_by_their_cgroups(
    place: Place, start: Start
) -> None:
    """After ``kill -9``, what has neither parent, session, environment, directory and name of its
    agent nor its mark is gone before anything else happens, and nobody is in its issue's way."""
    (place.root / "hidden").mkdir()
    hiding = place.root / "hiding"
    hiding.touch()
    script = (
        f"[ ! -e {hiding} ] || {HIDE} {place.root}/hidden/$$ /sortie- </dev/null >/dev/null 2>&1;"
        f' exec {SIMULATOR} "$@"'
    )
    place.write_workflow(
        agent={"command": ["sh", "-c", script, "sh"], "max_turns": 1, "stop_grace_ms": 300}
    )
    for name in ("A", "B", "C"):
        place.add_issue(name, "hang=1")

    async with start(SORTIE_ISOLATION="none") as daemon:
        with trio.fail_after(PATIENCE):
            while len(place.agents()) < 3 or len(before := living(place.root / "hidden")) < 3:
                await trio.sleep(0.02)
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
    orphaned = living(place.root / "hidden")
    hiding.unlink()
    with killed_at_last(orphaned):
        async with start(KIRO_SIM_HANG="0", SORTIE_ISOLATION="none") as daemon:
            await daemon.line("daemon.started")
            left = living(place.root / "hidden")
            for name in ("A", "B", "C"):
                await daemon.line("issue.moved", issue=name, lifecycle="handoff")

    assert len(before) >= 3
    assert set(orphaned) <= set(before)
    assert len(orphaned) == 3
    assert left == []


@requires_namespaces
async def test_agents_that_hid_all_they_could_die_with_their_daemon(
    place: Place, start: Start
) -> None:
    """After ``kill -9`` nobody is left, though nobody looks for them, and their issues go on."""
    word = f"1000.{os.getpid()}"
    script = (
        f"(trap '' TERM; cd /; ulimit -S -m unlimited; env -i $(command -v setsid) -f sleep {word})"
        f' </dev/null >/dev/null 2>&1; exec {SIMULATOR} "$@"'
    )
    place.write_workflow(agent={"command": ["sh", "-c", script, "sh"], "max_turns": 1})
    for name in ("A", "B", "C"):
        place.add_issue(name, "hang=1")

    async with start() as daemon:
        with trio.fail_after(PATIENCE):
            while len(place.agents()) < 3 or len(bearers(word)) < 3:
                await trio.sleep(0.02)
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
    with trio.fail_after(PATIENCE):
        while bearers(word):
            await trio.sleep(0.02)
    async with start(KIRO_SIM_HANG="0") as daemon:
        for name in ("A", "B", "C"):
            await daemon.line("issue.moved", issue=name, lifecycle="handoff")

    assert bearers(word) == []


@pytest.mark.parametrize("before", OTHER_WAYS[1:])
async def test_without_cgroups_who_hides_is_found_by_mark_or_where_it_lives(
    place: Place, nursery: trio.Nursery, before: tuple[str, ...]
) -> None:
    """After ``kill -9``, what kept the mark is gone before anything else happens. What shed that,
    too, is left: while it lives in a workspace no run begins there, and elsewhere nobody knows."""
    hidden, hiding = place.root / "hidden", place.root / "hiding"
    hidden.mkdir()
    hiding.touch()
    cases = " ".join(f"{name}) keeps={kept};;" for name, kept in KEEPS.items())
    script = (
        f"issue=${{PWD##*/}}; case $issue in {cases} esac;"
        f' [ ! -e {hiding} ] || [ "$1" != chat ]'
        f" || {HIDE} {hidden}/$issue '' $keeps </dev/null >/dev/null 2>&1;"
        f' exec {SIMULATOR} "$@"'
    )
    place.write_workflow(
        agent={"command": ["sh", "-c", script, "sh"], "max_turns": 1, "stop_grace_ms": 300}
    )
    for name in KEEPS:
        place.add_issue(name, "hang=1")

    def daemon_with(**environ: str) -> Daemon:
        port = free_port()
        daemon = Daemon(place, nursery, before + run_command(port=port), port)
        daemon.environ = environ
        return daemon

    async with daemon_with() as daemon:
        with trio.fail_after(PATIENCE):
            while len(place.agents()) < 3 or len(living(hidden)) < 3:
                await trio.sleep(0.02)
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
    pids = {name: int((hidden / name).read_text()) for name in KEEPS}
    orphaned = [name for name, pid in pids.items() if is_alive(pid)]
    hiding.unlink()
    with killed_at_last(list(pids.values())):
        async with daemon_with(KIRO_SIM_HANG="0") as daemon:
            await daemon.line("daemon.started")
            left = [name for name, pid in pids.items() if is_alive(pid)]
            for name in ("MARKED", "GONE"):
                await daemon.line("issue.moved", issue=name, lifecycle="handoff")
            refused = await daemon.line("run.finished", issue="STAYS")
            stayed = [name for name, pid in pids.items() if is_alive(pid)]
            os.kill(pids["STAYS"], signal.SIGKILL)
            again = await place.sortie("retry", "STAYS")
            await daemon.line("issue.moved", issue="STAYS", lifecycle="handoff")

    assert orphaned == list(KEEPS)
    assert left == stayed == ["STAYS", "GONE"]
    assert refused["error_kind"] == "workspace_error"
    assert str(pids["STAYS"]) in refused["error"]
    assert again.code == 0, again.err


def living(directory: Path) -> list[int]:
    """Return those of the pids in a directory's files that have a living process."""
    files = directory.iterdir()
    pids = [int(path.read_text()) for path in files if path.suffix != ".new"]
    return sorted(pid for pid in pids if is_alive(pid))
