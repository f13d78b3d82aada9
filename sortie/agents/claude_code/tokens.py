"""What Claude Code has used since its session was entered, counted from all that it tells.

It tells the usage of a message several times: once with each of its content blocks, with the
output tokens of its beginning, and once at its end. A result tells what all requests since the
result before have used, those of subagents among them, of each model for itself; of a turn that is
ended in the middle there is none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sortie.model.turns import Usage

_COUNT_LIMIT = 2**40
_TOTAL_LIMIT = 2**53
_OPEN_MESSAGES = 256
_MODELS = 100

_VARIANT = re.compile(r"\[[^\]]*\]$")  # claude-x[1m] is claude-x with a longer context


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Tokens, none of them counted twice: ``fresh`` input was neither read from a cache nor
    written to one."""

    fresh: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0

    @classmethod
    def of_message(cls, usage: Mapping[str, Any]) -> Counts:
        """Read the usage of a message, or of a whole result."""
        return cls(
            fresh=_count(usage.get("input_tokens")),
            cache_read=_count(usage.get("cache_read_input_tokens")),
            cache_write=_count(usage.get("cache_creation_input_tokens")),
            output=_count(usage.get("output_tokens")),
        )

    @classmethod
    def of_model(cls, usage: Mapping[str, Any]) -> Counts:
        """Read what a result tells of one model."""
        return cls(
            fresh=_count(usage.get("inputTokens")),
            cache_read=_count(usage.get("cacheReadInputTokens")),
            cache_write=_count(usage.get("cacheCreationInputTokens")),
            output=_count(usage.get("outputTokens")),
        )

    @property
    def context(self) -> int:
        """The tokens that a request and its answer took up."""
        return self.fresh + self.cache_read + self.cache_write + self.output

    def __add__(self, other: Counts) -> Counts:
        return self._with(other, lambda one, two: min(one + two, _TOTAL_LIMIT // 4))

    def __sub__(self, other: Counts) -> Counts:
        return self._with(other, lambda one, two: max(one - two, 0))

    def __or__(self, other: Counts) -> Counts:
        return self._with(other, max)

    def _with(self, other: Counts, combine: Any) -> Counts:
        return Counts(
            fresh=combine(self.fresh, other.fresh),
            cache_read=combine(self.cache_read, other.cache_read),
            cache_write=combine(self.cache_write, other.cache_write),
            output=combine(self.output, other.output),
        )


class TokenLedger:
    """Sums by model; what is told of them is cumulative.

    Rule 1: a message counts once, with the most that was ever told of it. Rule 2: a result only
    adds to what was counted, since an error's may tell too little. Rule 3: no sum ever falls.
    """

    def __init__(self) -> None:
        self._settled: dict[str, Counts] = {}
        self._running: dict[str, Counts] = {}
        self._messages: dict[str, tuple[str, Counts]] = {}
        self._cost: float | None = None

    def message(self, message_id: str, model: str, usage: Mapping[str, Any]) -> Usage | None:
        """Take what is told of a message; None where nothing new is."""
        name = self._name(model)
        name, before = self._messages.get(message_id, (name, Counts()))
        now = before | Counts.of_message(usage)
        if now == before:
            return None
        self._messages[message_id] = (name, now)
        if len(self._messages) > _OPEN_MESSAGES:
            del self._messages[next(iter(self._messages))]
        self._running[name] = self._running.get(name, Counts()) + (now - before)
        return self._usage(name)

    def more(self, message_id: str, usage: Mapping[str, Any]) -> Usage | None:
        """Take what is told of a message whose model was told before."""
        known = self._messages.get(message_id)
        return None if known is None else self.message(message_id, known[0], usage)

    def result(
        self, models: Mapping[str, Any] | None, usage: Mapping[str, Any] | None
    ) -> Iterator[Usage]:
        """Take what a result tells: of each model, or where it does not, of all together."""
        if models is not None:
            yield from self._raise_models(models)
        elif usage is not None:
            counted = sum(self._running.values(), Counts())
            missing = Counts.of_message(usage) - counted
            if missing != Counts():
                name = next(reversed(self._running), "")
                self._running[name] = self._running.get(name, Counts()) + missing
                yield self._usage(name)
        self.settle()

    def settle(self) -> None:
        """Close what was counted since the result before."""
        for name, counts in self._running.items():
            self._settled[name] = self._settled.get(name, Counts()) + counts
        self._running.clear()
        self._messages.clear()

    def _raise_models(self, models: Mapping[str, Any]) -> Iterator[Usage]:
        told = {name: usage for name, usage in models.items() if isinstance(usage, Mapping)}
        named = {key: self._counted_as(key, usage) for key, usage in told.items()}
        # A provider may give its models other names in messages than in results.
        unnamed = sum((self._running[n] for n in self._running.keys() - named.values()), Counts())
        costs = [_cost(usage.get("costUSD")) for usage in told.values()]
        sums: dict[str, Counts] = {}  # two names of a result may be one model in the messages
        for key, usage in told.items():
            sums[named[key]] = sums.get(named[key], Counts()) + Counts.of_model(usage)
        for name, counts in sums.items():
            if name not in self._running:
                counts, unnamed = counts - unnamed, unnamed - counts
            before = self._running.get(name, Counts())
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
        total = self._settled.get(name, Counts()) + self._running.get(name, Counts())
        return Usage(
            input_tokens=total.fresh + total.cache_read + total.cache_write,
            output_tokens=total.output,
            cached_tokens=total.cache_read,
            cache_write_tokens=total.cache_write,
            model=name or None,
            cumulative=True,
        )


def _count(value: object) -> int:
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return value if is_count and 0 <= value < _COUNT_LIMIT else 0  # type: ignore[operator, return-value]


def _cost(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and math.isfinite(value) and 0 <= value < 1e9:  # type: ignore[arg-type, operator]
        return float(value)  # type: ignore[arg-type]
    return None
