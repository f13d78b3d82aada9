"""Days of the scheduler: every seed is one, and a failing one can be replayed."""

from __future__ import annotations

from collections import Counter
from typing import get_args

import pytest

from sortie.model import HoldReason, RunStatus, StopReason, Trigger
from sortie.scheduler import Effect, Note, Record
from tests.sim.days import live_through
from tests.sim.sentences import unexpected, unsaid

DAYS = 200
OFTEN = 40
"""How many of the days a run without --full lives."""
CHUNK = 20
REACHED: Counter[object] = Counter()
SAID: set[str] = set()
LIVED: set[int] = set()
UNREACHABLE = {
    HoldReason.ADAPTER_SETTINGS,  # one adapter alone gives it, for what only it can know
    RunStatus.RUNNING,  # not an exit
}
WATCHED = {
    "LookAtPullRequests",
    "RunErrand",
    "MergePullRequest",
    "RecordWatch",
    "ForgetWatch",
    "WatchBegan",
    "WatchEnded",
    "ReactionPlanned",
    "ReactionEnded",
    "MergeAttempted",
    "ErrandFailed",
    HoldReason.REACTION_EXHAUSTED,
    Trigger.REACTION,
}
"""What the days of watched pull requests reach."""
THE_LOOPS_OWN = {"RecordComment", "ForgetComment"}  # no decisions of the scheduler's


def live(seed: int) -> None:
    """Live a day, and note what it reached."""
    try:
        world = live_through(seed)
    except BaseException as exc:
        exc.add_note(f"replay with: python -m tests.sim.replay {seed}")
        raise
    REACHED.update(world.reached)
    SAID.update(world.said)
    LIVED.add(seed)


@pytest.mark.parametrize(
    "first",
    [pytest.param(n, marks=() if n < OFTEN else pytest.mark.full) for n in range(0, DAYS, CHUNK)],
)
def test_days_keep_the_invariants(first: int) -> None:
    """Whatever trackers, agents, people and machines do, the invariants hold all day."""
    for seed in range(first, first + CHUNK):
        live(seed)

    assert unexpected(SAID) == []
    assert REACHED["StartWorker"]


@pytest.mark.full
def test_the_days_reach_and_say_everything() -> None:
    """Every kind of decision, stop, hold, trigger and status is reached: no rule goes untried.
    Every sentence that people are told comes up, word for word."""
    kinds = {kind.__name__ for kind in (*get_args(Effect), *get_args(Note), *get_args(Record))}
    words = {*StopReason, *HoldReason, *Trigger, *RunStatus} - UNREACHABLE

    for seed in {*range(DAYS)} - LIVED:
        live(seed)

    assert (kinds | words) - THE_LOOPS_OWN - WATCHED - REACHED.keys() == set()
    assert unsaid(SAID) == []
