"""What agents tell to have used, summed up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sortie.model.turns import Usage
from sortie.worker.usage import UsageIncrements, UsageMeter


def summed(*told: Usage) -> UsageMeter:
    """Return what a session has used that told this."""
    increments, meter = UsageIncrements(), UsageMeter()
    for usage in told:
        meter.add(increments.of(usage))
    return meter


def test_increments_are_added() -> None:
    """Input and output are the tokens; cached ones are input already."""
    meter = summed(
        Usage(input_tokens=10, output_tokens=5, cached_tokens=8, credits=0.25),
        Usage(output_tokens=1),
        Usage(credits=0.5),
    )

    assert (meter.tokens, meter.credits) == (16, 0.75)


def test_unknown_is_none() -> None:
    """Nothing told is nothing known, and 0 is 0."""
    assert (summed().tokens, summed(Usage(cached_tokens=3)).tokens) == (None, None)
    assert (summed(Usage(credits=0.0)).credits, summed(Usage(input_tokens=0)).tokens) == (0.0, 0)


@given(st.lists(st.integers(0, 1000)))
def test_totals_and_increments_come_to_the_same(steps: list[int]) -> None:
    """An agent that tells its total so far has used what one has that tells each step."""
    totals = [sum(steps[: end + 1]) for end in range(len(steps))]

    each = summed(*(Usage(input_tokens=step) for step in steps))
    total = summed(*(Usage(input_tokens=total, cumulative=True) for total in totals))

    assert each.tokens == total.tokens == (sum(steps) if steps else None)


def test_a_total_that_begins_anew_counts_whole() -> None:
    """An agent that was started again in the same session counts from 0."""
    meter = summed(*(Usage(credits=total, cumulative=True) for total in (1.0, 3.0, 0.5, 0.75)))

    assert meter.credits == 3.75


def test_tokens_are_told_apart_by_model() -> None:
    """A total of one model says nothing about another."""
    meter = summed(
        *(
            Usage(input_tokens=total, model=model, cumulative=True)
            for total, model in ((10, "big"), (3, "small"), (15, "big"), (4, "small"))
        )
    )

    assert meter.tokens == 19


def test_costs_are_told_apart_by_currency() -> None:
    """A total in one currency says nothing about another."""
    increments = UsageIncrements()

    costs = [
        increments.of(Usage(cost=cost, currency=currency, cumulative=True)).cost
        for cost, currency in ((1.0, "USD"), (5.0, "EUR"), (1.5, "USD"), (5.0, "EUR"))
    ]

    assert costs == [1.0, 5.0, 0.5, 0.0]
