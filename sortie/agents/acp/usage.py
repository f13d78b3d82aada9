"""Tokens, cost, credits and context share, which each agent reports in its own dialect; pure.

Where an agent's numbers do not give the turn's usage, it is unknown: None, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Any

from sortie.json_rpc import values
from sortie.model.turns import Usage


class TokenCount(Enum):
    """What the numbers in the answer to a prompt stand for."""

    TURN = auto()
    PROCESS = auto()  # the sum since the process began
    QUOTA = auto()  # the turn, and in a place of its own
    LAST_CALL = auto()  # one call of many: nothing that could be added up


DIALECTS = {
    "OpenCode": TokenCount.LAST_CALL,
    "gemini-cli": TokenCount.QUOTA,
    "Copilot": TokenCount.PROCESS,
    "@agentclientprotocol/claude-agent-acp": TokenCount.TURN,
    "@agentclientprotocol/codex-acp": TokenCount.TURN,
}
"""By the name that an agent gives itself; what others count is not known."""

Cost = tuple[str, float]
"""A currency and the sum of a whole conversation, earlier processes of it included."""

NO_COST: Cost = ("", 0.0)
"""What a conversation has cost that has just begun."""


class UsageReader:
    """The usage of one process of an agent.

    ``cost`` is the last reported cost of the whole conversation, earlier processes included; None
    where it is unknown, and then the next report is only a starting point. ``model`` is the
    session's, used where the turn names none. ``answered`` is the model of the last turn, which
    may be a fallback.
    """

    def __init__(self, agent: str) -> None:
        self.cost: Cost | None = None
        self.model: str | None = None
        self.answered: str | None = None
        self._dialect = DIALECTS.get(agent)
        self._process = (0, 0, 0, 0)
        self._credits: float | None = None

    def update(self, body: Mapping[str, Any]) -> Usage | None:
        """Take a ``usage_update`` and return what it adds."""
        used, size = values.count(body, "used"), values.count(body, "size")
        share = min(used / size, 1.0) if used is not None and size else None
        amount, currency = (
            values.amount(body, "cost", "amount"),
            values.text(body, "cost", "currency"),
        )
        more = None
        if amount is not None and currency is not None:
            more = self._cost_since(currency, amount)
        if share is None and more is None:
            return None
        return Usage(
            cost=more, currency=currency if more is not None else None, context_share=share
        )

    def extension(self, body: Mapping[str, Any]) -> Usage | None:
        """Take one of Kiro's extensions; its credits count at the turn's end."""
        metered = [*values.items(body, "meteringUsage"), *values.items(body, "promptTurnSummaries")]
        spent = [
            amount
            for each in metered
            if values.text(each, "unit") in ("credit", "credits")
            and (amount := values.amount(each, "value" if "value" in each else "usage")) is not None
        ]
        if spent:
            self._credits = sum(spent)
        percent = values.amount(body, "contextUsagePercentage")
        return None if percent is None else Usage(context_share=min(percent / 100, 1.0))

    @property
    def knows_credits(self) -> bool:
        """Whether the turn's credits are known."""
        return self._credits is not None

    def credits(self) -> list[Usage]:
        """Return the turn's credits where they are known, once."""
        spent, self._credits = self._credits, None
        return [] if spent is None else [Usage(credits=spent)]

    def turn(self, result: Mapping[str, Any]) -> list[Usage]:
        """Take the answer to a prompt and return the turn's tokens, for each named model."""
        models = values.items(result, "_meta", "quota", "model_usage")
        named = [name for each in models if (name := values.text(each, "model"))]
        model = named[0] if len(named) == 1 else None if named else self.model
        self.answered = _busiest(models)
        told = values.mapping(result, "usage")
        match self._dialect:
            case TokenCount.TURN:
                return _usage(model, *_tokens(told))
            case TokenCount.PROCESS:
                return self._since_the_last(model, _tokens(told))
            case TokenCount.QUOTA:
                each = [_quota(values.text(one, "model"), one) for one in models]
                whole = _quota(model, values.mapping(result, "_meta", "quota"))
                return [usage for usages in each for usage in usages] or whole
            case _:
                return []

    def _since_the_last(self, model: str | None, tokens: tuple[int | None, ...]) -> list[Usage]:
        if tokens[0] is None or tokens[1] is None:
            return []
        now = tuple(count or 0 for count in tokens)
        began_anew = now[0] < self._process[0] or now[1] < self._process[1]
        before = (0, 0, 0, 0) if began_anew else self._process
        self._process = (now[0], now[1], now[2], now[3])
        more = [max(a - b, 0) for a, b in zip(now, before, strict=True)]
        cached = [None if known is None else m for known, m in zip(tokens, more, strict=True)]
        return _usage(model, *cached)

    def _cost_since(self, currency: str, amount: float) -> float | None:
        before, self.cost = self.cost, (currency, amount)
        if before is None:
            return None
        is_more = before[0] == currency and amount >= before[1]
        return amount - before[1] if is_more else amount


def _busiest(models: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the model that has written most of a turn: others do odd jobs beside it."""
    written = [
        (values.count(each, "token_count", "output_tokens") or 0, name)
        for each in models
        if (name := values.text(each, "model"))
    ]
    return max(written, key=lambda one: one[0])[1] if written else None


def _tokens(usage: Mapping[str, Any]) -> tuple[int | None, int | None, int | None, int | None]:
    """Return input, output, cached and written; the input holds the other two.

    Whether an agent's input does is told by its total.
    """
    names = ("inputTokens", "outputTokens", "cachedReadTokens", "cachedWriteTokens")
    given, output, cached, written = (values.count(usage, name) for name in names)
    total, aside = values.count(usage, "totalTokens"), (cached or 0) + (written or 0)
    if given is not None and output is not None and total == given + output + aside:
        given += aside
    return given, output, cached, written


def _quota(model: str | None, told: Mapping[str, Any]) -> list[Usage]:
    """Return the tokens in a place of Gemini's; 0 and 0 are a turn that was cut."""
    counts = values.mapping(told, "token_count")
    tokens = values.count(counts, "input_tokens"), values.count(counts, "output_tokens")
    return _usage(model, *tokens, None, None) if any(tokens) else []


def _usage(
    model: str | None,
    given: int | None,
    output: int | None,
    cached: int | None,
    written: int | None,
) -> list[Usage]:
    if given is None and output is None:
        return []
    usage = Usage(
        model=model,
        input_tokens=given,
        output_tokens=output,
        cached_tokens=cached,
        cache_write_tokens=written,
    )
    return [usage]


def model_of(session: Mapping[str, Any]) -> str | None:
    """Return the model that a session has, by the answer that opened it."""
    for option in values.items(session, "configOptions"):
        if option.get("category") == "model":
            return values.text(option, "currentValue")
    return values.text(session, "models", "currentModelId")
