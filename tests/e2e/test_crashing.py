"""Daemons that are killed while they work, and what the next ones make of it."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import time
from datetime import UTC, datetime

import pytest
import trio

from tests.e2e.conftest import Start
from tests.e2e.crash_plans import draw
from tests.e2e.crashing import crash
from tests.e2e.place import Place
from tests.e2e.stubborn import (
    SEARCHING,
    STOP_STUBBORN,
    STUBBORN,
    gone,
    in_short,
    pids_of_a_stubborn_agent,
)
from tests.e2e.ways_of_ending import HERE, OTHER_WAYS
from tests.e2e.witnessing import let_witness, witnessed

SEED = os.environ.get("SORTIE_CRASH_SEED")
"""The seed to play; without it the short game has one of its own, the long one the clock's."""


EVERY_WAY = pytest.mark.parametrize(
    "before",
    [
        HERE,
        *(
            pytest.param(*way.values, marks=[*way.marks, pytest.mark.full], id=way.id)
            for way in OTHER_WAYS
        ),
    ],
)


@EVERY_WAY
@pytest.mark.timeout(900)
async def test_a_few_kills_lose_nothing_and_run_nothing_twice(
    place: Place, nursery: trio.Nursery, before: tuple[str, ...]
) -> None:
    """Killed at five moments, with eight issues: no run overlaps, none is lost, all end well."""
    seed = int(SEED or 3)

    wrong, line = await crash(place, nursery, draw(seed, issues=8, kills=5), before)

    sys.stdout.write(f"SORTIE_CRASH_SEED={seed}: {line}\n")
    assert wrong == [], f"SORTIE_CRASH_SEED={seed}: {line}"


@EVERY_WAY
@pytest.mark.full
@pytest.mark.timeout(900)
async def test_fifty_kills_lose_nothing_and_run_nothing_twice(
    place: Place, nursery: trio.Nursery, before: tuple[str, ...]
) -> None:
    """The same with fifty kills in a row and thirty issues, at moments that are new each time."""
    seed = int(SEED or time.time_ns() // 1_000_000 % 1_000_000)

    wrong, line = await crash(place, nursery, draw(seed, issues=30, kills=50), before)

    sys.stdout.write(f"SORTIE_CRASH_SEED={seed}: {line}\n")
    assert wrong == [], f"SORTIE_CRASH_SEED={seed}: {line}"


async def test_the_next_run_finds_nothing_of_a_killed_daemons_agent(
    place: Place, start: Start
) -> None:
    """After ``kill -9`` in a turn, the next run's hook and agent find agent and child gone."""
    let_witness(place, {"stop_grace_ms": 300}, slots=1, seconds=0.0)
    place.add_issue("A", STUBBORN)

    async with start(**SEARCHING) as daemon:
        pids = await pids_of_a_stubborn_agent(place)
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
    orphaned = not gone(pids)
    async with start(**SEARCHING, **STOP_STUBBORN) as daemon:
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
    rows = await place.history()

    assert orphaned
    assert in_short(rows) == [(0, "interrupted"), (0, "succeeded")]
    turns = witnessed(place, "turn")
    assert [(turn["run_id"], turn["earlier"]) for turn in turns] == [
        (row["run_id"], []) for row in rows
    ]
    assert witnessed(place, "trouble") == []


async def holder(place: Place) -> tuple[str, int, datetime]:
    """Have a further daemon refused; return the host, pid and start that it names."""
    ran = await place.sortie("run", "--port", "0", within=15)
    named = re.search(r"host (\S+), pid (\d+), since (\S+)\)", ran.err)
    assert (ran.code, named is not None) == (1, True), ran.err
    assert named is not None
    return named[1], int(named[2]), datetime.fromisoformat(named[3])


async def test_a_living_daemon_is_named_and_a_killed_one_is_in_nobodys_way(
    place: Place, start: Start
) -> None:
    """After ``kill -9`` a new one starts at once, whatever agents live on, and is named instead."""
    place.add_issue("A", STUBBORN)
    named, alive, spans = [], [], []

    for environ in (SEARCHING, SEARCHING | STOP_STUBBORN):
        before = datetime.now(UTC).replace(microsecond=0)
        async with start(**environ) as daemon:
            await daemon.line("daemon.started")
            spans.append((before, datetime.now(UTC)))
            alive.append((socket.gethostname(), daemon.process.pid))
            named.append(await holder(place))
            if environ == SEARCHING:
                pids = await pids_of_a_stubborn_agent(place)
                daemon.signal(signal.SIGKILL)
                await daemon.exit_code()
                assert not gone(pids)

    assert [(host, pid) for host, pid, _ in named] == alive
    assert all(
        first <= since <= last for (first, last), (_, _, since) in zip(spans, named, strict=True)
    )


def seconds_between(first: str, second: str) -> float:
    """Return how far apart two times are."""
    between = datetime.fromisoformat(second) - datetime.fromisoformat(first)
    return abs(between.total_seconds())


async def test_waits_and_holds_outlive_a_killed_daemon(place: Place, start: Start) -> None:
    """After ``kill -9`` a retry is due when it was due, and what was held is held since then."""
    place.add_issue("A", "exit=1")
    place.add_issue("B", "status=blocked")

    async with start() as daemon:
        await daemon.line("retry.scheduled", issue="A")
        await daemon.line("issue.held", issue="B")
        before = await daemon.state()
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
    async with start() as daemon:
        after = await daemon.state()

    for state in (before, after):
        [wait], [hold] = state["waiting"], state["held"]
        assert (wait["issue_identifier"], wait["kind"], wait["attempt"]) == ("A", "retry", 1)
        assert (hold["issue_identifier"], hold["reason"]) == ("B", "agent_blocked")
    # The first retry waits for 10 s, so one that came back without its time would be due by now.
    assert seconds_between(before["waiting"][0]["due_at"], after["waiting"][0]["due_at"]) < 1.0
    assert seconds_between(before["held"][0]["since"], after["held"][0]["since"]) < 1.0
