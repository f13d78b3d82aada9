"""Days of three workflows in one process: no run too many, what is guaranteed, nobody starves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import pytest

from sortie.scheduler import allocator, demand
from sortie.scheduler.grants import SlotUse
from tests.sim.shared import live_through

SEEDS = 6
Plant = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize(
    ("seed", "hours"),
    [
        *((seed, 4.0) for seed in range(SEEDS)),
        # A workflow starved while hosts lay idle for want of slots.
        pytest.param(8, 9.0, marks=pytest.mark.full),
        *(pytest.param(seed, 24.0, marks=pytest.mark.full) for seed in range(SEEDS, 4 * SEEDS)),
    ],
)
def test_days_keep_the_rules(seed: int, hours: float) -> None:
    """Whatever is wanted, reloaded and killed, there is never a start beyond a limit; guaranteed
    slots are had within one poll; and every workflow goes on within the bound."""
    day = live_through(seed, hours)

    assert sum(team.started for team in day.teams.values()) > 0
    assert max(team.longest_wait for team in day.teams.values()) <= day.bound


@pytest.mark.full
def test_the_days_reach_everything() -> None:
    """Reloads, crashes of one and of all, and slots that are guaranteed come up."""
    reached: Counter[str] = Counter()
    for seed in range(100, 130):
        reached += live_through(seed, 6).reached

    assert {"guaranteed", "_reload", "_crash", "_crash_all", "_demand"} <= reached.keys()


def _raise_at_once(patch: pytest.MonkeyPatch) -> None:
    def moved(self: object, total: int, wanted: dict[str, int], *_: object) -> dict[str, int]:
        return dict(wanted)

    patch.setattr(allocator.Allocator, "_moved", moved)


def _lend_what_is_guaranteed(patch: pytest.MonkeyPatch) -> None:
    def lent(total: int, claims: dict[str, allocator.SlotClaim]) -> dict[str, int]:
        return {name: min(claim.guaranteed, claim.want, total) for name, claim in claims.items()}

    patch.setattr(allocator, "guaranteed_slots", lent)


def _first_come(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(allocator, "_urgency", lambda claim: float(claim.used))


def _by_name(patch: pytest.MonkeyPatch) -> None:
    def shares(total: int, claims: dict[str, allocator.SlotClaim]) -> dict[str, Fraction]:
        left, found = Fraction(total), {}
        for name, claim in claims.items():
            found[name] = min(left, Fraction(claim.want))
            left -= found[name]
        return found

    patch.setattr(allocator, "fair_shares", shares)
    patch.setattr(allocator, "guaranteed_slots", lambda _total, claims: dict.fromkeys(claims, 0))


def _want_nothing_twice(patch: pytest.MonkeyPatch) -> None:
    found = demand.slot_use

    def forgetful(state: object, now: float) -> SlotUse:
        use = found(state, now)  # type: ignore[arg-type]
        return SlotUse(more=use.more, more_by_host=use.more_by_host, grant=use.grant)

    patch.setattr("sortie.scheduler.core.slot_use", forgetful)


MISTAKES: dict[str, Plant] = {
    "a limit is raised before another is down": _raise_at_once,
    "what is guaranteed is lent": _lend_what_is_guaranteed,
    "who has the last slot keeps it": _first_come,
    "the first by name has it all": _by_name,
    "runs under way are not counted": _want_nothing_twice,
}


@pytest.mark.full  # it tries the simulation, which alone can change what it says
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_caught(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulation that finds nothing proves nothing: each planted mistake breaks a day."""
    MISTAKES[mistake](monkeypatch)

    for seed in range(60):
        try:
            live_through(seed, 4)
        except AssertionError:
            return
    raise AssertionError(f"{mistake} was not noticed")
