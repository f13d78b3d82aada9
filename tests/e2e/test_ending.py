"""How daemons end, in good order or not."""

from __future__ import annotations

import signal

import pytest
import trio

from tests.e2e.conftest import Start
from tests.e2e.place import PATIENCE, Place
from tests.e2e.stubborn import (
    STOP_STUBBORN,
    STUBBORN,
    found_alive_before_each_run,
    gone,
    in_short,
    pids_of_a_stubborn_agent,
    stubborn_second_attempt,
)


async def test_sigterm_drains_and_the_next_start_continues(place: Place, start: Start) -> None:
    """An agent that ignores SIGTERM is gone with its child, and its attempt is made again."""
    stubborn_second_attempt(place)

    async with start() as daemon:
        pids = await pids_of_a_stubborn_agent(place)
        began = trio.current_time()
        daemon.signal(signal.SIGTERM)
        code = await daemon.exit_code()
        took = trio.current_time() - began
    was_gone = gone(pids)
    async with start(**STOP_STUBBORN) as daemon:
        again = await daemon.line("run.started", issue="A")
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
    rows = await place.history()

    assert (code, was_gone) == (0, True)
    assert took < 30
    assert again["attempt"] == 1
    assert in_short(rows) == [(0, "failed"), (1, "interrupted"), (1, "succeeded")]
    assert found_alive_before_each_run(place) == [[], [], []]


@pytest.mark.parametrize(
    "second",
    [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.full)],
    ids=["SIGTERM", "SIGINT"],
)
async def test_a_second_signal_leaves_at_once(
    place: Place, start: Start, second: signal.Signals
) -> None:
    """Neither a long grace time nor a long hook holds it up, and nothing is left."""
    stubborn_second_attempt(place, stop_grace_ms=20_000)

    async with start() as daemon:
        pids = await pids_of_a_stubborn_agent(place)
        daemon.signal(signal.SIGTERM)
        await daemon.line("run.stopping", issue="A", reason="shutdown")
        began = trio.current_time()
        daemon.signal(second)
        code = await daemon.exit_code()
        took = trio.current_time() - began
    was_gone = gone(pids)
    async with start(**STOP_STUBBORN) as daemon:
        again = await daemon.line("run.started", issue="A")
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
    rows = await place.history()

    assert (code, was_gone) == (130, True)
    assert took < 18  # the grace time is 20
    assert again["attempt"] == 1
    assert in_short(rows) == [(0, "failed"), (1, "interrupted"), (1, "succeeded")]


async def test_a_signal_to_a_daemon_that_has_ended_changes_nothing(
    place: Place, start: Start
) -> None:
    """While the interpreter ends, a second signal does not make another exit code of it."""
    place.write_workflow()

    async with start() as daemon:
        await daemon.line("daemon.started")
        daemon.signal(signal.SIGTERM)
        await daemon.line("daemon.stopped")
        daemon.signal(signal.SIGTERM)
        code = await daemon.exit_code(within=10)

    assert code in {0, 130}  # 130 where it came before all was closed


async def test_a_long_hook_does_not_survive_a_second_signal(place: Place, start: Start) -> None:
    """An ``after_run`` hook in its own sleep is cut, and its child with it."""
    place.write_workflow(hooks={"after_run": "setsid sleep 600 & sleep 600"})
    place.add_issue("A")

    async with start() as daemon:
        await daemon.line("turn.completed", issue="A")
        with trio.fail_after(PATIENCE):
            while place.programs().count("sleep") < 2:
                await trio.sleep(0.02)
        daemon.signal(signal.SIGTERM)
        await daemon.line("daemon.stopping")
        daemon.signal(signal.SIGTERM)
        code = await daemon.exit_code(within=10)

    assert code == 130


PHASES = {
    "after_create": """
touch made-by-$SORTIE_RUN_ID
if [ $SORTIE_ISSUE_IDENTIFIER = CREATE ] && [ ! -e ../../go ]; then
  touch ../../creating; setsid sleep 600 & sleep 600
fi
""",
    "before_run": """
if [ $SORTIE_ISSUE_IDENTIFIER = PREPARE ] && [ ! -e ../../go ]; then
  touch ../../preparing; setsid sleep 600 & sleep 600
fi
""",
}
"""Hooks that stay for ever, each for one issue, until there is a file ``go``."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["SIGTERM", "SIGKILL"])
async def test_a_run_can_be_cut_in_every_phase_before_its_turn(
    place: Place, start: Start, number: signal.Signals
) -> None:
    """Hooks and the credential check are ended, and the next start begins each run anew.

    A workspace whose ``after_create`` was cut is made a second time, the others are kept.
    """
    place.write_workflow(hooks=PHASES)
    names = ("CREATE", "PREPARE", "CHECK")
    for name in names:
        place.add_issue(name)

    async with start(KIRO_SIM_WHOAMI_DELAY="600") as daemon:
        for file in ("creating", "preparing", "agents.jsonl"):
            await place.until_there(file)
        daemon.signal(number)
        code = await daemon.exit_code(within=20)
    (place.root / "go").touch()
    async with start() as daemon:
        for name in names:
            await daemon.line("issue.moved", issue=name, lifecycle="handoff")
    rows = await place.history()

    assert code == (0 if number == signal.SIGTERM else -number)
    for name in names:
        own = [row for row in rows if row["issue"] == name]
        assert in_short(own) == [(0, "interrupted"), (0, "succeeded")]
        made_by = own[1] if name == "CREATE" else own[0]
        made = [path.name for path in (place.workspaces / name).glob("made-by-*")]
        assert made == [f"made-by-{made_by['run_id']}"]


@pytest.mark.full
async def test_thirty_seconds_are_enough_for_any_ending(place: Place, start: Start) -> None:
    """The longest grace time and an endless ``after_run`` together do not outlast a supervisor."""
    place.write_workflow(
        agent={"command": "sortie-kiro-sim", "max_turns": 1, "stop_grace_ms": 20_000},
        hooks={"after_run": "trap '' TERM; setsid sleep 600 & sleep 600"},
    )
    place.add_issue("A", STUBBORN)

    async with start() as daemon:
        await pids_of_a_stubborn_agent(place)
        daemon.signal(signal.SIGTERM)
        code = await daemon.exit_code(within=30)
    rows = await place.history()

    assert code == 0
    assert in_short(rows) == [(0, "interrupted")]


async def test_a_log_that_nobody_reads_any_more_stops_nothing(place: Place, start: Start) -> None:
    """With the reader of stderr gone, issues are worked on and SIGTERM ends it well."""
    async with start("--log-level", "debug") as daemon:
        await daemon.ready()
        await daemon.stop_reading()
        place.add_issue("A")
        with trio.fail_after(PATIENCE):
            while place.state_of("A") != "Human Review":
                await trio.sleep(0.02)
