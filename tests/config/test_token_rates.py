"""What tokens cost, and by which names models are found."""

from __future__ import annotations

import pytest

from sortie.config.token_rates import RATES, TokenRate, TokenRates
from sortie.model import Spending

MILLION = Spending(input_tokens=1_000_000, output_tokens=1_000_000)


@pytest.mark.parametrize(
    ("told", "known"),
    [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4.5"),
        ("claude-sonnet-4.5", "claude-sonnet-4.5"),
        ("Claude-Opus-5-5[1m]", "claude-opus-5.5"),
        ("anthropic/claude-opus-4.1", "claude-opus-4.1"),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4"),
        ("claude-opus-4@20250514", "claude-opus-4"),
        ("openai/gpt-5.1-codex", "gpt-5.1-codex"),
    ],
)
def test_a_model_is_found_by_the_names_that_agents_tell(told: str, known: str) -> None:
    """Provider, date, revision and size of context make no other model."""
    assert TokenRates({}).of(told) == RATES[known]


@pytest.mark.parametrize("told", ["claude-opus-6", "claude-opus-4-9", "claude", "", None])
def test_an_unknown_model_has_no_rates(told: str | None) -> None:
    """A model that looks like another one may cost something else."""
    assert TokenRates({}).of(told) is None
    assert TokenRates({}).cost_usd(told, MILLION) is None


def test_written_rates_win() -> None:
    """A user's rates replace the published ones, and ``*`` is for whatever has none."""
    mine, other = TokenRate(input=1, output=2), TokenRate(input=3, output=4)
    rates = TokenRates({"claude-sonnet-4-5": mine, "*": other})

    assert rates.of("claude-sonnet-4-5-20250929") == mine
    assert (rates.of("unheard-of"), rates.of(None)) == (other, other)
    assert rates.of("claude-opus-4-5") == RATES["claude-opus-4.5"]


def test_each_kind_of_token_has_its_price() -> None:
    """Input holds what was read from and written to the cache."""
    rate = TokenRate(input=10, output=100, cached=1, cache_write=20)
    used = Spending(
        input_tokens=1_000_000,
        cached_tokens=500_000,
        cache_write_tokens=100_000,
        output_tokens=10_000,
    )

    assert rate.cost_usd(used) == 4 + 0.5 + 2 + 1
    assert TokenRate(input=10, output=100).cost_usd(used) == 11
