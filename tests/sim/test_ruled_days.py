"""Days with rules and stages: who decides stays so, shares are kept, and stages hand on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from sortie.orchestrator.recall import recall
from sortie.scheduler import gates, stages
from sortie.scheduler.memory import Memory
from sortie.scheduler.state import SchedulerState
from tests.sim import ruled
from tests.sim.ruled import live_through

Plant = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize(
    ("seed", "hours"),
    [
        *((seed, 3.0) for seed in range(2)),
        *(pytest.param(seed, 24.0, marks=pytest.mark.full) for seed in range(2, 40)),
    ],
)
def test_days_keep_the_rules(seed: int, hours: float) -> None:
    """Whatever is edited, reloaded and killed."""
    day = live_through(seed, hours)

    assert sum(team.started for team in day.teams.values()) > 0


@pytest.mark.full
def test_the_days_reach_everything() -> None:
    """Each rule runs, stages follow each other, and guaranteed slots are wanted."""
    reached: Counter[str] = Counter()
    for seed in range(100, 116):
        reached += live_through(seed, 4.0).reached

    rules = {f"rule {name}" for name in ("", "urgent", *ruled.LABELS, *ruled.STAGES)}
    assert rules | {"a stage follows", "a guaranteed slot of a rule", "_reload"} <= reached.keys()


def _choose_anew(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SchedulerState, "keep_rule", lambda *_: None)


def _forget_in_a_crash(patch: pytest.MonkeyPatch) -> None:
    def forgetful(*args: object, **kwargs: object) -> tuple[Memory, object]:
        memory, records = recall(*args, **kwargs)  # type: ignore[arg-type]
        memory.rules.clear()
        return memory, records

    patch.setattr("tests.sim.ruled.recall", forgetful)


def _without(name: str) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        room = tuple(
            (gate, (lambda *_: None) if gate == name else look) for gate, look in gates.ROOM
        )
        for module in ("gates", "dispatch", "demand"):
            patch.setattr(f"sortie.scheduler.{module}.ROOM", room)

    return plant


def _reserve_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gates, "_free_for", lambda _issue, view: view.slots - view.load.total)


def _hand_on_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(stages, "end_run", lambda *_: None)
    patch.setattr("sortie.scheduler.exits.end_run", lambda *_: None)


MISTAKES: dict[str, Plant] = {
    "the rule is chosen anew for each run": _choose_anew,
    "a crash forgets the rules": _forget_in_a_crash,
    "a rule has no limit": _without("rule slot"),
    "guaranteed slots are given away": _reserve_nothing,
    "a stage hands on nothing": _hand_on_nothing,
}


@pytest.mark.full
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_caught(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulation that finds nothing proves nothing: each planted mistake breaks a day."""
    MISTAKES[mistake](monkeypatch)

    for seed in range(40):
        try:
            live_through(seed, 4.0)
        except AssertionError:
            return
    raise AssertionError(f"{mistake} was not noticed")
