"""Numbers for people: each amount is written in one way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.model.numbers import (
    counted,
    credits_text,
    dollars_text,
    number_text,
    span,
    tokens_text,
    took,
)

NOISE = 1 - 0.9 - 0.1  # -2.8e-17


@pytest.mark.parametrize(
    ("amount", "written"),
    [
        (0, "0"),
        (0.0, "0"),
        (NOISE, "0"),
        (1.0000000000000002, "1"),
        (0.1 + 0.2, "0.3"),
        (0.0123, "0.0123"),
        (0.00001, "<0.0001"),
        (0.99999, "1"),
        (3.14159, "3.14"),
        (1.5, "1.5"),
        (12345, "12,345"),
        (12345.678, "12,345.68"),
        (1e15, "1,000,000,000,000,000"),
    ],
)
def test_a_number_has_the_decimals_that_matter(amount: float, written: str) -> None:
    """Two, or four below 1; no exponent, and no small one looks like nothing."""
    assert number_text(amount) == written


@pytest.mark.parametrize(
    ("amount", "written"),
    [
        (0, "$0.00"),
        (2.2e-19, "$0.00"),
        (-2.2e-19, "$0.00"),
        (0.00001, "<$0.0001"),
        (0.0042, "$0.0042"),
        (0.05, "$0.05"),
        (0.255, "$0.255"),
        (0.5, "$0.50"),
        (0.99999, "$1.00"),
        (12.5, "$12.50"),
        (1234.567, "$1,234.57"),
    ],
)
def test_money_is_told_to_the_cent(amount: float, written: str) -> None:
    """What is less than a dollar more exactly; what is left of an addition is nothing."""
    assert dollars_text(amount) == written


def test_amounts_have_their_units() -> None:
    """In the plural, but for one."""
    assert [credits_text(amount) for amount in (1.0000000000000002, 0.25)] == [
        "1 credit",
        "0.25 credits",
    ]
    assert [tokens_text(amount) for amount in (1, 12345.0)] == ["1 token", "12,345 tokens"]
    assert [counted(count, "run") for count in (0, 1, 1200)] == ["0 runs", "1 run", "1,200 runs"]


@given(st.floats(0, 1e12))
def test_no_amount_is_written_with_an_exponent(amount: float) -> None:
    """Whatever it is."""
    assert "e" not in number_text(amount) + dollars_text(amount)


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (-1, "0.0s"),
        (0.04, "0.0s"),
        (0.55, "0.6s"),
        (59.94, "59.9s"),
        (59.96, "1m00s"),
        (75, "1m15s"),
    ],
)
def test_what_is_over_took_so_long(seconds: float, written: str) -> None:
    """To a tenth of a second below a minute."""
    assert took(seconds) == written


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (-5, "0s"),
        (0.9, "0s"),
        (59.9, "59s"),
        (60, "1m00s"),
        (3599, "59m59s"),
        (3600, "1h00m"),
        (86_399, "23h59m"),
        (86_400, "1d00h"),
        (1_000_000, "11d13h"),
    ],
)
def test_a_span_has_two_units_at_most(seconds: float, written: str) -> None:
    """The larger units matter; nothing is ever negative."""
    assert span(seconds) == written
