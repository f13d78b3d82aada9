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
CHUNK = 20
REACHED: Counter[object] = Counter()
SAID: set[str] = set()
LIVED: set[int] = set()
UNREACHABLE = {
    HoldReason.ADAPTER_SETTINGS,  # one adapter alone gives it, for what only it can know
    RunStatus.RUNNING,  # not an exit
}
THE_LOOPS_OWN = {"RecordComment", "ForgetComment"}  # no decisions of the scheduler's


@pytest.mark.parametrize("first", range(0, DAYS, CHUNK))
def test_days_keep_the_invariants(first: int) -> None:
    """Whatever trackers, agents, people and machines do, the invariants hold all day."""
    for seed in range(first, first + CHUNK):
        try:
            world = live_through(seed)
        except BaseException as exc:
            exc.add_note(f"replay with: python -m tests.sim.replay {seed}")
            raise
        REACHED.update(world.reached)
        SAID.update(world.said)
        LIVED.add(seed)

    assert unexpected(SAID) == []
    assert REACHED["StartWorker"]


def test_the_days_reach_everything() -> None:
    """Every kind of decision, stop, hold, trigger and status was reached: no rule went untried."""
    if len(LIVED) < DAYS:
        pytest.skip("needs all days of this module in the same process")
    kinds = {kind.__name__ for kind in (*get_args(Effect), *get_args(Note), *get_args(Record))}
    words = {*StopReason, *HoldReason, *Trigger, *RunStatus} - UNREACHABLE

    missing = (kinds | words) - THE_LOOPS_OWN - REACHED.keys()

    assert missing == set()


def test_the_days_say_everything() -> None:
    """Every sentence that people are told came up, word for word."""
    if len(LIVED) < DAYS:
        pytest.skip("needs all days of this module in the same process")

    assert unsaid(SAID) == []
