"""What agents tell to have used, summed up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.config.token_rates import TokenRate, TokenRates
from sortie.model.turns import Usage
from sortie.worker.usage import RunUsage, UsageIncrements, UsageMeter

RATE = TokenRate(input=1.0, output=10.0, cached=0.1)
RATES = TokenRates({"m": RATE})


def summed(*told: Usage) -> UsageMeter:
    """Return what a session has used that told this."""
    increments, meter = UsageIncrements(), UsageMeter(RATES)
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

    assert (meter.spent.tokens, meter.spent.credits) == (16, 0.75)


@given(st.lists(st.integers(0, 1000)))
def test_totals_and_increments_come_to_the_same(steps: list[int]) -> None:
    """An agent that tells its total so far has used what one has that tells each step."""
    totals = [sum(steps[: end + 1]) for end in range(len(steps))]

    each = summed(*(Usage(input_tokens=step) for step in steps))
    total = summed(*(Usage(input_tokens=total, cumulative=True) for total in totals))

    assert each.spent.tokens == total.spent.tokens == (sum(steps) if steps else None)


def test_a_total_that_begins_anew_counts_whole() -> None:
    """An agent that was started again in the same session counts from 0."""
    meter = summed(*(Usage(credits=total, cumulative=True) for total in (1.0, 3.0, 0.5, 0.75)))

    assert meter.spent.credits == 3.75


def test_tokens_are_told_apart_by_model() -> None:
    """A total of one model says nothing about another."""
    meter = summed(
        *(
            Usage(input_tokens=total, model=model, cumulative=True)
            for total, model in ((10, "big"), (3, "small"), (15, "big"), (4, "small"))
        )
    )

    assert meter.spent.tokens == 19


def test_tokens_of_a_known_model_are_estimated() -> None:
    """Without a told cost the rates of the model count, and are said to be an estimate."""
    meter = summed(Usage(input_tokens=1_000_000, cached_tokens=500_000, output_tokens=0, model="m"))

    assert (meter.spent.cost_usd, meter.spent.estimated_usd) == (0.55, 0.55)


def test_tokens_of_unknown_rates_have_no_cost() -> None:
    """What is not known is None and never $0, and how much of it there is is told."""
    unknown = Usage(input_tokens=5, output_tokens=2, model="another")

    alone = summed(unknown).spent
    mixed = summed(unknown, Usage(output_tokens=100_000, model="m"), unknown).spent

    assert (alone.cost_usd, alone.unpriced_tokens) == (None, 7)
    assert (mixed.cost_usd, mixed.unpriced_tokens) == (1.0, 14)


@pytest.mark.parametrize("first", ["tokens", "cost"])
def test_a_told_cost_replaces_the_estimate(first: str) -> None:
    """The agent's own cost of a turn stands for all its tokens, whichever is told first."""
    told = [
        Usage(output_tokens=1_000_000, model="m"),
        Usage(cost=3.0, currency="USD"),
        Usage(output_tokens=5, model="another"),
    ]

    meter = summed(*(told if first == "tokens" else reversed(told)))

    spent = meter.spent
    assert (spent.cost_usd, spent.estimated_usd, spent.unpriced_tokens) == (3.0, 0.0, 0)
    assert spent.tokens == 1_000_005


def test_a_cost_in_another_currency_is_none_in_dollars() -> None:
    """Nobody knows the rate of exchange, so the tokens are estimated."""
    meter = summed(Usage(cost=3.0, currency="EUR"), Usage(output_tokens=100_000, model="m"))

    assert (meter.spent.cost_usd, meter.spent.estimated_usd) == (1.0, 1.0)


def test_turns_of_a_run_are_judged_one_by_one() -> None:
    """A turn whose cost was told and one whose cost is estimated add up."""
    run = RunUsage(RATES)

    run.begin_turn().add(Usage(cost=2.0, output_tokens=7, model="m"))
    second = run.begin_turn()
    second.add(Usage(output_tokens=100_000, model="m"))

    assert second.spent.cost_usd == 1.0
    assert (run.spent.tokens, run.spent.cost_usd, run.spent.estimated_usd) == (100_007, 3.0, 1.0)


def test_a_second_session_counts_beside_the_first() -> None:
    """Its totals begin anew, and those of the first go on afterwards."""
    run = RunUsage(RATES)

    def use(tokens: int) -> None:
        told = Usage(output_tokens=tokens, cumulative=True)
        run.begin_turn().add(run.increments.of(told))

    use(100)
    with run.other_session():
        use(7)
        use(10)
    use(150)

    assert run.spent.tokens == 160
