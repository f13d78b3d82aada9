"""The tokens that Claude Code has used since its session was entered.

Claude Code reports the usage of a message several times: with each content block, where the output
tokens are those of its beginning, and once at its end. A result reports, for each model, what all
requests since the last result have used, subagents included. A turn that is ended in the middle has
no result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from sortie.json_rpc import values
from sortie.model.turns import Usage

_TOTAL_LIMIT = 2**53
_OPEN_MESSAGES = 256
_MODELS = 100

_VARIANT = re.compile(r"\[[^\]]*\]$")  # claude-x[1m] is claude-x with a longer context


class TokenCounts(Struct, frozen=True, kw_only=True):
    """Tokens, none of them counted twice: ``fresh`` input was neither read from a cache nor
    written to one."""

    fresh: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0

    @classmethod
    def of_message(cls, usage: Mapping[str, Any]) -> TokenCounts:
        """Read the usage of a message, or of a whole result."""
        return cls(
            fresh=values.count(usage, "input_tokens") or 0,
            cache_read=values.count(usage, "cache_read_input_tokens") or 0,
            cache_write=values.count(usage, "cache_creation_input_tokens") or 0,
            output=values.count(usage, "output_tokens") or 0,
        )

    @classmethod
    def of_model(cls, usage: Mapping[str, Any]) -> TokenCounts:
        """Read a result's usage of one model."""
        return cls(
            fresh=values.count(usage, "inputTokens") or 0,
            cache_read=values.count(usage, "cacheReadInputTokens") or 0,
            cache_write=values.count(usage, "cacheCreationInputTokens") or 0,
            output=values.count(usage, "outputTokens") or 0,
        )

    @property
    def context(self) -> int:
        """The tokens that a request and its answer took up."""
        return self.fresh + self.cache_read + self.cache_write + self.output

    def __add__(self, other: TokenCounts) -> TokenCounts:
        return self._with(other, lambda one, two: min(one + two, _TOTAL_LIMIT // 4))

    def __sub__(self, other: TokenCounts) -> TokenCounts:
        return self._with(other, lambda one, two: max(one - two, 0))

    def __or__(self, other: TokenCounts) -> TokenCounts:
        return self._with(other, max)

    def _with(self, other: TokenCounts, combine: Any) -> TokenCounts:
        return TokenCounts(
            fresh=combine(self.fresh, other.fresh),
            cache_read=combine(self.cache_read, other.cache_read),
            cache_write=combine(self.cache_write, other.cache_write),
            output=combine(self.output, other.output),
        )


class TokenLedger:
    """Sums by model; the reported usage is cumulative.

    Rule 1: a message counts once, with the largest numbers reported for it. Rule 2: a result only
    adds to the sums, because the result of an error may report too little. Rule 3: no sum falls.
    """

    def __init__(self) -> None:
        self._settled: dict[str, TokenCounts] = {}
        self._running: dict[str, TokenCounts] = {}
        self._messages: dict[str, tuple[str, TokenCounts]] = {}
        self._cost: float | None = None

    def message(self, message_id: str, model: str, usage: Mapping[str, Any]) -> Usage | None:
        """Take a message's usage; return None where it adds nothing."""
        name = self._name(model)
        name, before = self._messages.get(message_id, (name, TokenCounts()))
        now = before | TokenCounts.of_message(usage)
        if now == before:
            return None
        self._messages[message_id] = (name, now)
        if len(self._messages) > _OPEN_MESSAGES:
            del self._messages[next(iter(self._messages))]
        self._running[name] = self._running.get(name, TokenCounts()) + (now - before)
        return self._usage(name)

    def more(self, message_id: str, usage: Mapping[str, Any]) -> Usage | None:
        """Take further usage of a message whose model is known."""
        known = self._messages.get(message_id)
        return None if known is None else self.message(message_id, known[0], usage)

    def result(
        self, models: Mapping[str, Any] | None, usage: Mapping[str, Any] | None
    ) -> Iterator[Usage]:
        """Take a result's usage: of each model, or else of all together."""
        if models is not None:
            yield from self._raise_models(models)
        elif usage is not None:
            counted = sum(self._running.values(), TokenCounts())
            missing = TokenCounts.of_message(usage) - counted
            if missing != TokenCounts():
                name = next(reversed(self._running), "")
                self._running[name] = self._running.get(name, TokenCounts()) + missing
                yield self._usage(name)
        self.settle()

    def settle(self) -> None:
        """Close what was counted since the result before."""
        for name, counts in self._running.items():
            self._settled[name] = self._settled.get(name, TokenCounts()) + counts
        self._running.clear()
        self._messages.clear()

    def _raise_models(self, models: Mapping[str, Any]) -> Iterator[Usage]:
        told = {name: usage for name, usage in models.items() if isinstance(usage, Mapping)}
        named = {key: self._counted_as(key, usage) for key, usage in told.items()}
        # A provider may give its models other names in messages than in results.
        unnamed = sum(
            (self._running[n] for n in self._running.keys() - named.values()), TokenCounts()
        )
        costs = [values.amount(usage, "costUSD") for usage in told.values()]
        sums: dict[str, TokenCounts] = {}  # two names of a result may be one model in the messages
        for key, usage in told.items():
            sums[named[key]] = sums.get(named[key], TokenCounts()) + TokenCounts.of_model(usage)
        for name, counts in sums.items():
            if name not in self._running:
                counts, unnamed = counts - unnamed, unnamed - counts
            before = self._running.get(name, TokenCounts())
            self._running[name] = before | counts
            if self._running[name] != before:
                yield self._usage(name)
        known = [cost for cost in costs if cost is not None]
        if known and len(known) == len(costs):
            self._cost = (self._cost or 0.0) + sum(known)
            yield Usage(cost=self._cost, currency="USD", cumulative=True)

    def _counted_as(self, key: str, usage: Mapping[str, Any]) -> str:
        """Return the name under which a result's model was counted before, else its own."""
        aliases = (key, usage.get("canonicalModel"))
        names = [self._name(alias) for alias in aliases if isinstance(alias, str)]
        return next((name for name in names if name in self._running), names[0])

    def _name(self, model: str) -> str:
        name = _VARIANT.sub("", model)
        if len(self._settled) + len(self._running) < _MODELS or name in self._settled:
            return name
        return name if name in self._running else ""

    def _usage(self, name: str) -> Usage:
        total = self._settled.get(name, TokenCounts()) + self._running.get(name, TokenCounts())
        return Usage(
            input_tokens=total.fresh + total.cache_read + total.cache_write,
            output_tokens=total.output,
            cached_tokens=total.cache_read,
            cache_write_tokens=total.cache_write,
            model=name or None,
            cumulative=True,
        )
