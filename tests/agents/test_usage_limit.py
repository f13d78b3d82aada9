"""Which texts name a usage limit, and when it ends, in each form in which agents say it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.agents.usage_limit import from_seconds, names_a_limit, reset_time

NOW = datetime(2026, 11, 22, 22, 22, 4, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "resets_at"),
    [
        # As the real program words it, for the times that it was given.
        ("You've hit your 5-hour limit · resets 11:22pm (UTC)", datetime(2026, 11, 22, 23, 22)),
        (
            "You've hit your weekly limit · resets Nov 23, 11:22pm (America/New_York)",
            datetime(2026, 11, 24, 4, 22),
        ),
        (
            "You've hit your weekly limit · resets Nov 24, 9:52am (Asia/Kolkata)",
            datetime(2026, 11, 24, 4, 22),
        ),
        (
            "You've hit your weekly limit · resets Jan 1, 2027, 5:22pm (America/New_York)",
            datetime(2027, 1, 1, 22, 22),
        ),
        (
            "API Error: 400 You have reached your specified API usage limits. You will regain"
            " access on 2026-12-01 at 00:00 UTC.",
            datetime(2026, 12, 1),
        ),
        # As older versions and other limits word it.
        ("Claude AI usage limit reached|1795389721", datetime(2026, 11, 22, 23, 22, 1)),
        ("Claude AI usage limit reached|1795389721000", datetime(2026, 11, 22, 23, 22, 1)),
        ("5-hour limit reached ∙ resets 3pm (Europe/Berlin)", datetime(2026, 11, 23, 14)),
        ("limit · resets at 12am (UTC)", datetime(2026, 11, 23)),
        ("limit · resets 12pm (UTC)", datetime(2026, 11, 23, 12)),
        ("limit · resets Nov 22 at 9pm (UTC)", datetime(2026, 11, 22, 21)),
        ("limit · resets Jan 3, 9pm (UTC)", datetime(2027, 1, 3, 21)),
        # As agents that speak ACP word it.
        (
            "You have exhausted your capacity on this model. Your quota will reset after 2h5m30s.",
            datetime(2026, 11, 23, 0, 27, 34),
        ),
        (
            "You've hit your usage limit. Upgrade to Pro or try again in 1 day 2 hours 3 minutes.",
            datetime(2026, 11, 24, 0, 25, 4),
        ),
        ("Monthly limit reached; resets at 2026-12-01T00:00:00Z", datetime(2026, 12, 1)),
        ("Weekly limit reached, resets 2026-11-25 08:00 +02:00", datetime(2026, 11, 25, 6)),
    ],
)
def test_the_time_that_a_text_names(text: str, resets_at: datetime) -> None:
    """In UTC, whatever zone it was said in; a day without a year is the next one."""
    assert reset_time(text, NOW) == resets_at.replace(tzinfo=UTC)
    elsewhere = NOW.astimezone(timezone(timedelta(hours=-7)))
    assert reset_time(text, elsewhere) == resets_at.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "Credit balance is too low",
        "5-hour limit reached ∙ resets 3pm",
        "limit · resets 13pm (UTC)",
        "limit · resets 0am (UTC)",
        "limit · resets 3:75pm (UTC)",
        "limit · resets Feb 30, 3pm (UTC)",
        "limit · resets Foo 3, 3pm (UTC)",
        "limit · resets 3pm (Nowhere/Land)",
        "limit · resets 3pm (Europe)",
        "limit · resets 3pm (etc/../passwd)",
        "You will regain access on 2026-13-01 at 00:00 UTC.",
        "limit reached|999999999999999",
        "usage limit reached, try again in 999999 days 999999 days 999999 d 999999 d",
        "it resets nothing",
    ],
)
def test_what_names_no_time(text: str) -> None:
    """Without a zone, or with what no calendar has, nobody knows."""
    assert reset_time(text, NOW) is None


@given(st.text(), st.sampled_from(["", "limit reached|", "resets ", "resets Nov 3, "]))
def test_no_text_is_too_strange(text: str, begins: str) -> None:
    """Whatever it is, it names a time with a zone or none."""
    found = reset_time(f"{begins}{text}", NOW)

    assert found is None or found.utcoffset() is not None


@pytest.mark.parametrize("value", [None, "1795389721", True, 0, -5, 1e300, float("nan"), []])
def test_what_is_no_number_of_seconds(value: object) -> None:
    """Nothing is made up of it."""
    assert from_seconds(value) is None


def test_which_texts_are_about_a_limit() -> None:
    """The sentences of the program; an error of another kind is none."""
    limits = (
        "You have exhausted your capacity on this model.",
        "Quota exceeded for your plan",
        "You are out of credits",
        "Monthly limit reached; resets at 2026-12-01T00:00:00Z",
        "You've hit your 5-hour limit · resets 3pm (UTC)",
        "You've hit your weekly limit",
        "Claude AI usage limit reached|1795389721",
        "You have reached your specified API usage limits.",
        "Credit balance is too low",
    )
    others = (
        "API Error: Repeated 529 Overloaded errors.",
        "Reached maximum number of turns (2)",
        "exceeded retry limit, last status: 429 Too Many Requests",
        "Rate limit exceeded, slow down",
        "prompt is too long: over the limit of 200000 tokens",
        "the time limit of the tool was reached",
    )

    assert [text for text in limits if not names_a_limit(text)] == []
    assert [text for text in others if names_a_limit(text)] == []
