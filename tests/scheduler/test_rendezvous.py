"""Who should lead which workflow: by weight, and so that few workflows move."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sortie.scheduler.rendezvous import preferred, score
from tests.properties import examples

WORKFLOWS = [f"sortie_{number}" for number in range(3000)]
SCORE = 0.47390097652184593
CANDIDATES = st.dictionaries(st.text(max_size=8), st.floats(0.01, 100), max_size=6)


def choices(candidates: dict[str, float]) -> dict[str, str | None]:
    """Return the leader of each workflow."""
    return {workflow: preferred(candidates, workflow) for workflow in WORKFLOWS}


def test_without_candidates_there_is_no_choice() -> None:
    """Nothing is preferred where nothing can lead."""
    assert preferred({}, "sortie") is None


@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (1.0, 2.0, 5.0), (0.5, 0.25, 0.25)])
def test_each_daemon_leads_its_share(weights: tuple[float, ...]) -> None:
    """Of many workflows a daemon leads as many as its part of all weights."""
    candidates = dict(zip("abc", weights, strict=True))

    led = Counter(choices(candidates).values())

    for daemon, weight in candidates.items():
        share = weight / sum(weights)
        assert led[daemon] / len(WORKFLOWS) == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("weight", [0.5, 1.0, 4.0])
def test_a_daemon_that_joins_only_takes(weight: float) -> None:
    """What moves when a daemon joins moves to it, and comes back when it leaves."""
    before = choices({"a": 1.0, "b": 2.0, "c": 1.0})
    joined = choices({"a": 1.0, "b": 2.0, "c": 1.0, "d": weight})

    moved = {workflow for workflow in WORKFLOWS if before[workflow] != joined[workflow]}

    assert {joined[workflow] for workflow in moved} == {"d"}
    assert len(moved) / len(WORKFLOWS) == pytest.approx(weight / (4 + weight), abs=0.03)


def test_a_daemon_that_gets_heavier_loses_nothing() -> None:
    """A greater weight only draws workflows to its daemon."""
    before, after = choices({"a": 1.0, "b": 1.0}), choices({"a": 3.0, "b": 1.0})

    assert all(after[workflow] == "a" for workflow in WORKFLOWS if before[workflow] == "a")
    assert after != before


@given(CANDIDATES, st.text(max_size=12))
@settings(max_examples=examples(20, 200))
def test_the_choice_is_a_candidate_whatever_the_order(
    candidates: dict[str, float], workflow: str
) -> None:
    """Every daemon comes to the same choice, in whatever order it read the rows."""
    chosen = preferred(candidates, workflow)

    assert chosen == preferred(dict(reversed(candidates.items())), workflow)
    assert chosen in candidates if candidates else chosen is None


def test_the_choice_stays_the_same_over_versions() -> None:
    """Daemons of different versions must agree: these values are a contract."""
    assert score("sortie", "a", 1.0) == pytest.approx(SCORE)
    assert score("sortie", "a", 2.5) == pytest.approx(2.5 * SCORE)
    assert score("ab", "c", 1.0) != score("a", "bc", 1.0)
