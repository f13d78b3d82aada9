"""Days of pull requests under watch: every seed is one, and a failing one can be lived again."""

from __future__ import annotations

from collections import Counter

import pytest

from sortie.model import HoldReason, Trigger
from tests.sim.test_scheduler_days import WATCHED
from tests.sim.watched.days import live_through

DAYS = 1000
OFTEN = 16
"""How many of the days a run without --full lives."""
CHUNK = 8
REACHED: Counter[str] = Counter()


@pytest.mark.parametrize(
    "first",
    [pytest.param(n, marks=() if n < OFTEN else pytest.mark.full) for n in range(0, DAYS, CHUNK)],
)
def test_days_keep_the_promises(first: int) -> None:
    """No reaction twice for one cause, no merge of what was not judged or is not green and
    approved, no run beyond the limits, no word of a stranger obeyed; and every watch ends."""
    for seed in range(first, first + CHUNK):
        day = live_through(seed)
        assert day.wrong == [], f"seed {seed}"
        REACHED.update(day.reached)

    assert REACHED["ReactionPlanned"]
    assert REACHED["MergePullRequest"]


@pytest.mark.parametrize("seed", [1874, 1918])
def test_a_day_that_was_wrong_once_is_right(seed: int) -> None:
    """What was closed and opened again was answered a second time."""
    assert live_through(seed).wrong == []


@pytest.mark.full
def test_the_days_reach_everything() -> None:
    """No rule goes untried: every kind of cause, errand, result and record comes up."""
    causes = {"check", "review", "note", "comment", "conflicts", "label"}
    kinds = {word for word in WATCHED if not isinstance(word, HoldReason | Trigger)}

    assert (causes | kinds) - REACHED.keys() == set()
