"""What a run has used, summed up from what its agent tells."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, TypeVar

from sortie.model.turns import Usage

_TOKENS = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens")
_NUMBERS = (*_TOKENS, "credits", "cost", "context_share")
_TOKENS_LIMIT = 2**53

_Amount = TypeVar("_Amount", int, float)


class UsageMeter:
    """Sums over the turns of a run, or over one turn; None is unknown, never 0."""

    def __init__(self) -> None:
        self.credits: float | None = None
        self.tokens: int | None = None

    def add(self, more: Usage) -> None:
        """Add an increment; cached tokens are input already."""
        if more.credits is not None:
            self.credits = (self.credits or 0.0) + more.credits
        for tokens in (more.input_tokens, more.output_tokens):
            if tokens is not None:
                self.tokens = (self.tokens or 0) + tokens


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
    for name in _NUMBERS:
        value = getattr(usage, name)
        if value is None:
            continue
        kind = int if name in _TOKENS else (int, float)
        if not isinstance(value, kind) or isinstance(value, bool) or not math.isfinite(value):
            raise ValueError(f"{value!r} is no amount of {name}")
        if not 0 <= value <= (1 if name == "context_share" else _TOKENS_LIMIT):
            raise ValueError(f"{value!r} cannot be an amount of {name}")
