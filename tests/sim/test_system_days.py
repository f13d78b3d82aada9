"""Days of the whole system: real loop, worker, recovery and store; every seed replays exactly."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import Counter
from itertools import islice
from typing import get_args

import pytest

from sortie.model import ErrorKind, Finish, HoldReason, RunStatus, StopReason, Trigger, TurnOutcome
from sortie.scheduler import Effect, Event, Note, Record
from sortie.scheduler.events import (
    AnswerSent,
    DayBegan,
    HostReached,
    HostTroubled,
    StartsSuspended,
    TimePassed,
    UsageLimitMet,
    UsageLimitPassed,
)
from sortie.scheduler.records import ForgetLimit, RecordDay, RecordLimit, RecordSessions
from sortie.telemetry import facts
from tests.sim.system.crashing import every_crash
from tests.sim.system.run import Day, Plan, live_through, plan_of

DAYS = 60
CHUNK = 3
FULL = pytest.mark.full
MORE_DAYS = 60
"""Days that are lived where the others, by chance, do not reach everything."""
CRASHED_DAYS = (3,)
STRETCHES = 15
"""An odd number: each of them has crashes right before commits and right after."""
REACHED: Counter[object] = Counter()
LIVED: set[int] = set()
UNREACHABLE: set[object] = {
    HoldReason.ADAPTER_SETTINGS,  # one adapter alone gives it, for what only it can know
    RunStatus.RUNNING,  # not an exit
    TimePassed,  # not worth a line of the trace
    # Kinds of failure that only an adapter, a template or a handshake of the real ones has.
    ErrorKind.TEMPLATE_ERROR,
    ErrorKind.TRACKER_ERROR,
    # What agents use, and what limits that, is a matter of the scheduler's own days.
    StopReason.BUDGET,
    HoldReason.USAGE_BUDGET_EXHAUSTED,
    ErrorKind.USAGE_LIMIT,
    Trigger.USAGE_LIMIT,
    facts.AgentLimited,
    facts.AgentLimitEnded,
    facts.BudgetRunsLow,
    DayBegan,
    facts.BudgetSpent,
    UsageLimitMet,
    UsageLimitPassed,
    ForgetLimit,
    RecordLimit,
    RecordSessions,
    RecordDay,
    # All runs are on one machine here; the scheduler's own days have hosts.
    HostTroubled,
    HostReached,
    facts.HostPaused,
    facts.HostGivenUp,
    facts.HostBack,
    AnswerSent,  # here people answer on tickets; in the scheduler's own days operators do
    StartsSuspended,  # no other daemon is there to take the workflow over
}
"""What no day can reach."""

FACTS = {
    facts.AdapterCrashed,
    facts.OrphansReaped,
    facts.RunRecovered,
    facts.SessionRefused,
    facts.StatusFileRead,
    facts.StoreFailed,
    facts.StoreRecovered,
    facts.WorkspaceKept,
    facts.WorkspaceRemoved,
}


def assert_well(day: Day) -> None:
    """Fail where a promise was broken."""
    wrongs = "\n".join(map(str, day.trace.wrongs[:5]))
    assert not wrongs, f"{wrongs}\nreplay with: python -m tests.sim --replay {day.plan}"


def live(seed: int) -> None:
    """Live a day, and note what it reached."""
    day = live_through(Plan(seed))
    REACHED.update(day.trace.reached)
    LIVED.add(seed)
    assert_well(day)


def _every(step: int, values: range) -> list[object]:
    """Leave all but every so manieth one to those who ask for all."""
    return [pytest.param(v, marks=FULL if i % step else ()) for i, v in enumerate(values)]


@pytest.mark.parametrize("first", _every(10, range(0, DAYS, CHUNK)))
def test_days_keep_every_promise(first: int) -> None:
    """Whatever trackers, agents, people, machines, disks and clocks do, the invariants hold."""
    for seed in range(first, first + CHUNK):
        live(seed)


@pytest.mark.parametrize("stretch", _every(STRETCHES, range(STRETCHES)))
@pytest.mark.parametrize("seed", CRASHED_DAYS)
def test_a_crash_at_any_persistence_point_breaks_no_promise(seed: int, stretch: int) -> None:
    """Killed right before or after any commit, the daemon goes on and all ends well."""
    for plan in islice(every_crash(Plan(seed, short=True)), stretch, None, STRETCHES):
        assert_well(live_through(plan))


@FULL
@pytest.mark.timeout(900)
def test_the_days_reach_everything() -> None:
    """Every kind of event, decision, record, stop, hold and status is reached."""
    kinds: set[object] = {*get_args(Effect), *get_args(Note), *get_args(Record), *get_args(Event)}
    words = {*StopReason, *HoldReason, *Trigger, *RunStatus, *TurnOutcome, *ErrorKind, *Finish}
    wanted = (kinds | words | FACTS) - UNREACHABLE

    for seed in range(DAYS + MORE_DAYS):
        if seed >= DAYS and wanted <= REACHED.keys():
            break
        if seed not in LIVED:
            live(seed)

    assert wanted - REACHED.keys() == set()


def test_a_seed_replays_exactly() -> None:
    """Two processes that hash differently see the same day, to the last line."""
    script = "from tests.sim.test_system_days import digest; print(digest('11'))"

    seen = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": hashing},
            check=True,
            capture_output=True,
        ).stdout
        for hashing in ("1", "2")
    }

    assert len(seen) == 1


def test_a_crash_changes_nothing_before_it() -> None:
    """A day with a crash is the same day until then: its commits can be counted beforehand."""
    plain, crashed = live_through(Plan(3, short=True)), live_through(plan_of("3:short:after:9"))

    at = next(i for i, line in enumerate(crashed.trace.lines) if "after:9" in line.text)

    assert at > 0
    assert crashed.trace.lines[:at] == plain.trace.lines[:at]


def digest(text: str) -> str:
    """Return a day's trace as a short text."""
    lines = "\n".join(map(str, live_through(plan_of(text)).trace.lines))
    return hashlib.sha256(lines.encode()).hexdigest()
