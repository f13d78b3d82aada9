"""What is made of what answers tell of the requests that are left."""

from __future__ import annotations

import pytest

from sortie.http.budget import (
    BudgetHeaders,
    Budgets,
    Reset,
    Use,
    retry_after,
)

DATE = {"date": "Sun, 22 Nov 2026 10:00:00 GMT"}
NOON = 1795341600  # that time, in seconds


def kind(unit: Reset) -> BudgetHeaders:
    """Return headers with a reset of this unit."""
    return BudgetHeaders(limit="limit", remaining="left", reset="reset", unit=unit)


@pytest.mark.parametrize(
    ("unit", "text"),
    [
        (Reset.EPOCH_SECONDS, f"{NOON + 90}"),
        (Reset.EPOCH_MILLISECONDS, f"{(NOON + 90) * 1000}"),
        (Reset.ISO, "2026-11-22T10:01:30Z"),
        (Reset.ISO, "2026-11-22T12:01:30+02:00"),
        (Reset.SECONDS, "90"),
    ],
)
def test_a_reset_is_told_in_many_ways(unit: Reset, text: str) -> None:
    """By the server's clock, or from now; ours is not asked."""
    budgets = Budgets([kind(unit)])

    budgets.heard({**DATE, "limit": "100", "left": "0", "reset": text}, now=1000.0)

    assert budgets.wait_before(Use.WRITE, None, 1000.0) == 90.0
    assert budgets.wait_before(Use.WRITE, None, 1080.0) == 10.0
    assert budgets.wait_before(Use.WRITE, None, 1090.5) == 0.0


@pytest.mark.parametrize("text", ["", "soon", "nan", "1e999", "-5", "99999999999999999999"])
def test_a_reset_without_sense_keeps_nobody_waiting(text: str) -> None:
    """For longer than an hour, or at all where it cannot be read."""
    for unit in Reset:
        budgets = Budgets([kind(unit)])
        budgets.heard({**DATE, "limit": "100", "left": "0", "reset": text}, now=0.0)

        assert budgets.wait_before(Use.WRITE, None, 0.0) <= 3600.0


def test_what_is_not_told_is_not_guessed() -> None:
    """No header, no budget; nonsense neither."""
    budgets = Budgets([kind(Reset.SECONDS)])

    budgets.heard({}, now=0.0)
    budgets.heard({"left": "many"}, now=0.0)

    assert budgets.known(0.0) == ()
    assert budgets.shown(0.0) == ()


def test_lists_leave_a_reserve() -> None:
    """A tenth, and at most 200, for re-reads, moves and comments."""
    budgets = Budgets([kind(Reset.SECONDS)])
    waits = {}
    for limit, left in ((5000, 200), (5000, 201), (100, 10), (100, 11), (100, 0)):
        budgets.heard({"limit": f"{limit}", "left": f"{left}", "reset": "60"}, now=0.0)
        waits[limit, left] = [budgets.wait_before(use, None, 0.0) for use in Use]

    assert waits == {
        (5000, 200): [60.0, 0.0, 0.0],
        (5000, 201): [0.0, 0.0, 0.0],
        (100, 10): [60.0, 0.0, 0.0],
        (100, 11): [0.0, 0.0, 0.0],
        (100, 0): [60.0, 60.0, 60.0],
    }


def test_budgets_of_one_credential_are_kept_apart() -> None:
    """A search that is used up keeps nothing else waiting."""
    headers = BudgetHeaders(
        limit="limit", remaining="left", reset="reset", unit=Reset.SECONDS, name_header="of"
    )
    budgets = Budgets([headers])
    budgets.heard({"limit": "30", "left": "0", "reset": "60", "of": "search"}, now=0.0)
    budgets.heard({"limit": "5000", "left": "4000", "reset": "60", "of": "core"}, now=0.0)

    assert [budget.name for budget in budgets.shown(0.0)] == ["core", "search"]
    assert budgets.wait_before(Use.LIST, "core", 0.0) == 0.0
    assert budgets.wait_before(Use.LIST, "search", 0.0) == 60.0


def test_lists_are_stretched_over_the_time_that_is_left() -> None:
    """By what the last one took, whoever else uses the credential."""
    budgets = Budgets([kind(Reset.SECONDS)])
    for left in (420, 410, 400):  # three requests of ours; others made the rest
        budgets.heard({"limit": "5000", "left": f"{left}", "reset": "1800"}, now=0.0, use=Use.LIST)
    budgets.list_ended()

    assert budgets.list_pause(0.0) == 1800 / 66  # (400 - 200) // 3 lists
    assert budgets.list_pause(1801.0) == 0.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        ("0", 1.0),
        ("-1", 1.0),
        ("1e9", 3600.0),
        ("Sun, 22 Nov 2026 10:02:00 GMT", 120.0),
        ("Sun, 22 Nov 2026 09:00:00 GMT", 1.0),
        ("", None),
        ("soon", None),
        ("nan", None),
    ],
)
def test_a_wait_is_seconds_or_a_date(text: str, seconds: float | None) -> None:
    """The date is compared with that of the same answer."""
    assert retry_after({**DATE, "retry-after": text}) == seconds
