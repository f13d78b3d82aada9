"""What agents have used up, as it is added up, recorded and shown."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sortie.model.numbers import credits_text, dollars_text, rounded, tokens_text


class Spending(Struct, frozen=True, kw_only=True):
    """Amounts that agents report, and their cost; None is unknown, and 0 is none at all.

    ``input_tokens`` hold the ``cached_tokens``, read from the provider's cache, and the
    ``cache_write_tokens``. ``cost_usd`` is what agents report, or, for ``estimated_usd`` of it,
    what their tokens cost by the rates of their models. ``unpriced_tokens`` are those of which
    neither is known, so that the true cost is higher. Both are 0 where agents report the whole
    cost.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    credits: float | None = None
    cost_usd: float | None = None
    estimated_usd: float | None = None
    unpriced_tokens: int | None = None

    @property
    def tokens(self) -> int | None:
        """Tokens of input and output together."""
        tokens: int | None = _sum(self.input_tokens, self.output_tokens)
        return tokens

    def rounded(self) -> Spending:
        """Return it for programs: amounts that are added up have six decimals at most."""
        return replace(self, **{name: rounded(getattr(self, name)) for name in _FRACTIONS})

    def __add__(self, more: Spending) -> Spending:
        return Spending(**{n: _sum(getattr(self, n), getattr(more, n)) for n in AMOUNTS})

    def __sub__(self, less: Spending) -> Spending:
        """Return what must be added to ``less``; nothing where it is not known."""
        return Spending(**{n: _rise(getattr(less, n), getattr(self, n)) for n in AMOUNTS})

    def at_least(self, floor: Spending) -> Spending:
        """Return the greater of each amount; what is not known is less than any."""
        pairs = {name: (getattr(self, name), getattr(floor, name)) for name in AMOUNTS}
        return Spending(
            **{
                name: one if other is None or (one is not None and one > other) else other
                for name, (one, other) in pairs.items()
            }
        )


AMOUNTS = Spending.__struct_fields__
"""The names of the amounts."""

_FRACTIONS = ("credits", "cost_usd", "estimated_usd")

NOTHING = Spending()
"""The spending of an agent that reports nothing."""


def _sum(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    return one + other


def _rise(before: Any, after: Any) -> Any:
    return after if before is None or after is None else after - before


def told_amounts(spent: Spending) -> list[str]:
    """Return what is known of what was used, for people: credits, tokens, cost."""
    texts = []
    if spent.credits is not None:
        texts.append(credits_text(spent.credits))
    if spent.tokens is not None:
        texts.append(tokens_text(spent.tokens))
    if spent.cost_usd is not None:
        texts.append(cost_text(spent))
    return texts


def cost_text(spent: Spending) -> str:
    """Return a known cost with what must be said of it: that it is estimated, or not all of it."""
    cost, estimated = spent.cost_usd or 0.0, spent.estimated_usd
    if not estimated:
        doubt = ""
    elif cost - estimated < 1e-9:
        doubt = " (estimated)"
    else:
        doubt = f" ({dollars_text(estimated)} of it estimated)"
    return ("at least " if spent.unpriced_tokens else "") + dollars_text(cost) + doubt
