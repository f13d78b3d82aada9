"""How much an issue, or a day, may use, and how near it is to that; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sortie.dataclass import dataclass
from sortie.model import Spending
from sortie.model.numbers import credits_text, dollars_text, tokens_text

WARNING_SHARE = 0.8
"""The share of a limit from which there is a warning."""

OF_ISSUE = {
    "tokens": "agent.max_tokens",
    "credits": "agent.max_credits",
    "cost_usd": "agent.max_cost_usd",
}
OF_DAY = {"credits": "budget.daily_credits", "cost_usd": "budget.daily_cost_usd"}

_AMOUNT_TEXTS: Mapping[str, Callable[[float], str]] = {
    "tokens": tokens_text,
    "credits": credits_text,
    "cost_usd": dollars_text,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """How much of one limit is used; ``key`` is the setting."""

    key: str
    what: str
    used: float
    limit: float

    @property
    def used_text(self) -> str:
        """What is used, with its unit."""
        return _AMOUNT_TEXTS[self.what](self.used)

    @property
    def limit_text(self) -> str:
        """The limit, with its unit."""
        return _AMOUNT_TEXTS[self.what](self.limit)

    @property
    def sentence(self) -> str:
        """Say of an issue that it has reached the limit."""
        return f"it has used {self.used_text}, and {self.key} allows {self.limit_text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """Limits to what may be used; 0 is none. What is not known exceeds nothing."""

    tokens: int = 0
    credits: float = 0.0
    cost_usd: float = 0.0

    def reached(self, spent: Spending, keys: Mapping[str, str]) -> Used | None:
        """Return the first limit that is reached."""
        return next((u for u in self._used(spent, keys) if u.used >= u.limit), None)

    def warnings(
        self, before: Spending, after: Spending, keys: Mapping[str, str]
    ) -> Iterator[Used]:
        """Yield the limits of which what is used has just passed the share WARNING_SHARE."""
        passed = {u.key for u in self._used(before, keys) if u.used >= WARNING_SHARE * u.limit}
        for used in self._used(after, keys):
            if used.used >= WARNING_SHARE * used.limit and used.key not in passed:
                yield used

    def _used(self, spent: Spending, keys: Mapping[str, str]) -> Iterator[Used]:
        for what, key in keys.items():
            limit, used = getattr(self, what), getattr(spent, what)
            if limit > 0 and used is not None:
                yield Used(key=key, what=what, used=used, limit=limit)


NO_LIMITS = Allowance()
