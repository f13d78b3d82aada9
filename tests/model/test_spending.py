"""Amounts: sums, differences, and how they are told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.model import NOTHING, Spending
from sortie.model.spending import cost_text, told_amounts

amounts = st.builds(
    Spending,
    input_tokens=st.none() | st.integers(0, 100),
    output_tokens=st.none() | st.integers(0, 100),
    credits=st.none() | st.integers(0, 100),
)


@given(amounts, amounts)
def test_what_is_added_can_be_told_again(before: Spending, more: Spending) -> None:
    """The difference to what was known brings every known amount there, and nothing is unknown
    that was known."""
    after = before + more

    assert before + (after - before) == after
    assert (NOTHING + before, before + NOTHING) == (before, before)
    assert before + (NOTHING - before) == before


@pytest.mark.parametrize(
    ("spent", "told"),
    [
        (NOTHING, []),
        (Spending(credits=0.0), ["0 credits"]),
        (Spending(credits=0.1 + 0.2), ["0.3 credits"]),
        (Spending(credits=12345.678), ["12,345.68 credits"]),
        (Spending(input_tokens=12000, output_tokens=345), ["12,345 tokens"]),
        (Spending(cost_usd=0.0), ["$0.00"]),
        (Spending(cost_usd=0.0042, estimated_usd=0.0), ["$0.0042"]),
        (Spending(cost_usd=1.5, estimated_usd=1.5), ["$1.50 (estimated)"]),
    ],
)
def test_known_amounts_are_told(spent: Spending, told: list[str]) -> None:
    """Unknown ones are left out, and no small one looks like nothing."""
    assert told_amounts(spent) == told


def test_a_cost_says_what_is_doubtful_about_it() -> None:
    """What is estimated, and that some tokens have no price."""
    spent = Spending(cost_usd=1234.5, estimated_usd=0.5, unpriced_tokens=7)

    assert cost_text(spent) == "at least $1,234.50 ($0.50 of it estimated)"


def test_programs_are_told_amounts_without_noise() -> None:
    """What adding floating-point numbers leaves behind their sixth decimal is taken off."""
    spent = Spending(credits=1.0000000000000002, cost_usd=2.2e-19, output_tokens=7)

    assert spent.rounded() == Spending(credits=1.0, cost_usd=0.0, output_tokens=7)
