"""What a run has used, summed up from what its agent tells."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from sortie.model import NOTHING, Spending
from sortie.model.turns import Usage

_TOKENS = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens")
_AMOUNTS = (*_TOKENS, "credits", "cost", "context_share")
_TOKENS_LIMIT = 2**53
_DOLLARS = "USD"

_Amount = TypeVar("_Amount", int, float)


class Rates(Protocol):
    """What tokens cost."""

    def cost_usd(self, model: str | None, used: Spending) -> float | None:
        """Return what these tokens of a model cost, None where its rates are not known."""
        ...


class UsageMeter:
    """Sums up one turn.

    A cost that the agent tells counts alone: it stands for all the tokens of its turn, whichever
    is told first. Without one, it is estimated for the tokens whose rates are known.
    """

    def __init__(self, rates: Rates) -> None:
        self._rates = rates
        self._amounts = NOTHING
        self._told_usd: float | None = None

    @property
    def spent(self) -> Spending:
        """What the turn has used so far."""
        if self._told_usd is None:
            return self._amounts
        return replace(self._amounts, cost_usd=self._told_usd, estimated_usd=0.0, unpriced_tokens=0)

    def add(self, more: Usage) -> None:
        """Add an increment; a cost in another currency than dollars does not count."""
        if more.cost is not None and more.currency in (None, _DOLLARS):
            self._told_usd = (self._told_usd or 0.0) + more.cost
        amounts = Spending(**{name: getattr(more, name) for name in _TOKENS}, credits=more.credits)
        if amounts.tokens is not None:
            cost = self._rates.cost_usd(more.model, amounts)
            unpriced = amounts.tokens if cost is None and amounts.tokens else None
            amounts = replace(amounts, cost_usd=cost, estimated_usd=cost, unpriced_tokens=unpriced)
        self._amounts += amounts


class RunUsage:
    """Sums up the turns of a run; ``increments`` are those of its session. ``before`` is what turns
    in another daemon have used."""

    def __init__(self, rates: Rates, before: Spending = NOTHING) -> None:
        self.increments = UsageIncrements()
        self._rates = rates
        self._before = before
        self._turn = UsageMeter(rates)

    @property
    def spent(self) -> Spending:
        """What the run has used so far."""
        return self._before + self._turn.spent

    @contextmanager
    def other_session(self) -> Iterator[None]:
        """Sum up the turns of another session while the block is open."""
        own, self.increments = self.increments, UsageIncrements()
        try:
            yield
        finally:
            self.increments = own

    def begin_turn(self) -> UsageMeter:
        """Return the meter of the next turn."""
        self._before = self.spent
        self._turn = UsageMeter(self._rates)
        return self._turn


class UsageIncrements:
    """Makes increments of what an agent tells in a session, whichever way it counts.

    A total that is less than the one before began anew: all of it counts.
    """

    def __init__(self) -> None:
        self._totals: dict[str, Any] = {}

    def of(self, usage: Usage) -> Usage:
        """Return what was used since the last call.

        Raises ValueError and TypeError for what is no amount, or no name of a model or currency.
        """
        _check(usage)
        if not usage.cumulative:
            return usage
        model = usage.model
        return replace(
            usage,
            cumulative=False,
            **{name: self._rise(f"{name} of {model}", getattr(usage, name)) for name in _TOKENS},
            credits=self._rise("credits", usage.credits),
            cost=self._rise(f"cost in {usage.currency}", usage.cost),
        )

    def _rise(self, what: str, total: _Amount | None) -> _Amount | None:
        if total is None:
            return None
        before: _Amount = self._totals.get(what, 0)
        self._totals[what] = total
        return total - before if total >= before else total


def _check(usage: Usage) -> None:
    for name in ("model", "currency"):
        if not isinstance(getattr(usage, name), str | None):
            raise TypeError(f"a {name} is a text")
    for name in _AMOUNTS:
        value = getattr(usage, name)
        if value is None:
            continue
        kind = int if name in _TOKENS else (int, float)
        if not isinstance(value, kind) or isinstance(value, bool) or not math.isfinite(value):
            raise ValueError(f"{value!r} is no amount of {name}")
        if not 0 <= value <= (1 if name == "context_share" else _TOKENS_LIMIT):
            raise ValueError(f"{value!r} cannot be an amount of {name}")
