"""What the tokens of a model cost, to estimate the cost of what an agent tells in tokens alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated

from pydantic import BaseModel, ConfigDict

from sortie.config.values import amount
from sortie.model import Spending

ANY_MODEL = "*"
"""The name of the rates for models that have none of their own."""

_PER = 1_000_000
_DATED = re.compile(r"[-@](?:\d{8}|latest)$")
_REVISION = re.compile(r"-v\d+(?::\d+)?$")
_CONTEXT = re.compile(r"\[[^]]*\]$")


class TokenRate(BaseModel):
    """US dollars for a million tokens of one model; what is read from or written to a cache costs
    as much as other input where nothing is said."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    input: Annotated[float, amount()]
    output: Annotated[float, amount()]
    cached: Annotated[float, amount()] | None = None
    cache_write: Annotated[float, amount()] | None = None

    def cost_usd(self, used: Spending) -> float:
        """Return what tokens cost; unknown amounts of input count as none."""
        cached, written = used.cached_tokens or 0, used.cache_write_tokens or 0
        fresh = max(0, (used.input_tokens or 0) - cached - written)
        rate_cached = self.input if self.cached is None else self.cached
        rate_written = self.input if self.cache_write is None else self.cache_write
        sums = fresh * self.input + cached * rate_cached + written * rate_written
        return (sums + (used.output_tokens or 0) * self.output) / _PER


def _rate(input_: float, output: float, cached: float, cache_write: float | None) -> TokenRate:
    return TokenRate.model_construct(
        input=input_, output=output, cached=cached, cache_write=cache_write
    )


_FABLE_5 = _rate(10, 50, 1, 12.5)
_OPUS = _rate(5, 25, 0.5, 6.25)
_OPUS_4 = _rate(15, 75, 1.5, 18.75)
_SONNET = _rate(3, 15, 0.3, 3.75)
_GPT_5 = _rate(1.25, 10, 0.125, None)
_GPT_5_2 = _rate(1.75, 14, 0.175, None)

RATES: Mapping[str, TokenRate] = {
    "claude-fable-5.1": _rate(10, 50, 0.25, 12.5),
    "claude-fable-5": _FABLE_5,
    "claude-opus-5.5": _rate(4, 20, 0.2, 5),
    "claude-opus-5": _OPUS,
    "claude-opus-4.8": _OPUS,
    "claude-opus-4.7": _OPUS,
    "claude-opus-4.6": _OPUS,
    "claude-opus-4.5": _OPUS,
    "claude-opus-4.1": _OPUS_4,
    "claude-opus-4": _OPUS_4,
    "claude-sonnet-5.5": _rate(2, 10, 0.1, 2.5),
    "claude-sonnet-5": _rate(2, 10, 0.2, 2.5),
    "claude-sonnet-4.6": _SONNET,
    "claude-sonnet-4.5": _SONNET,
    "claude-sonnet-4": _SONNET,
    "claude-haiku-4.5": _rate(1, 5, 0.1, 1.25),
    "gpt-5": _GPT_5,
    "gpt-5-codex": _GPT_5,
    "gpt-5.1-codex": _GPT_5,
    "gpt-5.1-codex-max": _GPT_5,
    "gpt-5.2": _GPT_5_2,
    "gpt-5.2-codex": _GPT_5_2,
    "gpt-5.3-codex": _GPT_5_2,
}
"""Rates as their vendors published them by November 2026; a model whose price depends on the length
of each prompt is not among them."""


class TokenRates:
    """The rates of a workflow file before the published ones."""

    def __init__(self, written: Mapping[str, TokenRate]) -> None:
        self._written = {_key(name): rate for name, rate in written.items()}

    def of(self, model: str | None) -> TokenRate | None:
        """Return a model's rates, None where they are not known."""
        known = None
        if model is not None:
            key = _key(model)
            known = self._written.get(key) or _published().get(key)
        return known or self._written.get(ANY_MODEL)

    def cost_usd(self, model: str | None, used: Spending) -> float | None:
        """Return what tokens of a model cost, None where its rates are not known."""
        rate = self.of(model)
        return None if rate is None else rate.cost_usd(used)


@cache
def _published() -> Mapping[str, TokenRate]:
    """Return the published rates by keys; once, as each run has rates of its own."""
    return {_key(name): rate for name, rate in RATES.items()}


def _key(model: str) -> str:
    """Return the name of a model as it is compared: without provider, date, revision and size of
    context, in which the names that agents tell differ."""
    name = _CONTEXT.sub("", model.strip().casefold().rpartition("/")[2])
    name = _REVISION.sub("", name.rpartition("anthropic.")[2])
    return _DATED.sub("", name).replace(".", "-")
