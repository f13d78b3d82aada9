"""How many requests a credential has left, as its answers tell, and what that allows.

A provider counts requests for an account, whoever makes them: other daemons and agents may use the
same one. So nothing is counted here; the last answer is believed. Its times are the server's, and
become ours by the ``Date`` of the same answer.

Rule 1: lists are what is given up first, so that what is left suffices for handoffs and comments.
Rule 2: nothing is asked of a budget that is known to be empty until it is filled again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import Enum, auto

from msgspec import Struct
from msgspec.structs import replace

from sortie.model import RateBudget, TrackerError, TrackerErrorKind

RESERVE = 0.1
"""The part of a budget's limit that lists leave to re-reads, handoffs and comments."""

LONGEST_RESERVE = 200
"""Requests that are kept back at most; a large budget needs no larger reserve."""

LONGEST_RESET = 3600.0
SHORTEST_WAIT = 1.0
_DEFAULT_WAIT = 60.0


class Use(Enum):
    """What a request is for: lists are put off first when a budget gets short."""

    LIST = auto()
    READ = auto()
    WRITE = auto()


class Reset(Enum):
    """How a header says when a budget is full again."""

    EPOCH_SECONDS = auto()
    EPOCH_MILLISECONDS = auto()
    ISO = auto()
    SECONDS = auto()  # from now


class BudgetHeaders(Struct, frozen=True, kw_only=True):
    """The names of the headers (lower case) by which a provider tells of one budget.

    ``name_header`` says which of several the answer belongs to, where the provider has that;
    ``name`` is its name otherwise.
    """

    limit: str
    remaining: str
    reset: str | None = None
    unit: Reset = Reset.EPOCH_SECONDS
    name: str = "requests"
    name_header: str | None = None


def server_time(headers: Mapping[str, str]) -> datetime | None:
    """Return the time at the server when it answered; None where it does not say it rightly."""
    try:
        found = parsedate_to_datetime(headers["date"])
    except (KeyError, ValueError, TypeError, IndexError):
        return None
    return found if found.tzinfo is not None else None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return for how many seconds ``Retry-After`` wants us to wait, 1..3600; None: it is not there.

    It may be a number or a date, which is one of the server's clock.
    """
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = _until(text, headers)
    return _clamped(seconds) if math.isfinite(seconds) else None


def _until(text: str, headers: Mapping[str, str]) -> float:
    now = server_time(headers)
    then = server_time({"date": text})
    return math.nan if now is None or then is None else (then - now).total_seconds()


def _clamped(seconds: float) -> float:
    return min(max(seconds, SHORTEST_WAIT), LONGEST_RESET)


class Left(Struct, frozen=True, kw_only=True):
    """What is left of a budget; ``resets_at`` is in trio's time. None: the answer did not say."""

    name: str
    remaining: int
    limit: int | None
    resets_at: float | None


class Budgets:
    """What is known of the budgets of a credential; ``now`` is in trio's time throughout."""

    def __init__(self, kinds: Sequence[BudgetHeaders]) -> None:
        self._kinds = kinds
        self._known: dict[str, Left] = {}
        self._waits = 0  # in a row, without anything the server said about how long
        self._list_cost: dict[str, int] = {}
        self._spent: dict[str, int] = {}

    def heard(self, headers: Mapping[str, str], now: float, use: Use = Use.READ) -> None:
        """Take over what an answer tells."""
        for kind in self._kinds:
            name = kind.name if kind.name_header is None else headers.get(kind.name_header)
            remaining, limit = _number(headers, kind.remaining), _number(headers, kind.limit)
            if name is None or remaining is None:
                continue
            self._known[name] = Left(
                name=name,
                limit=limit,
                remaining=remaining,
                resets_at=None if (left := _reset(kind, headers)) is None else now + left,
            )
            if use is Use.LIST:
                self._spent[name] = self._spent.get(name, 0) + 1

    def answered(self) -> None:
        """Forget how often the tracker has sent us away."""
        self._waits = 0

    def wait_of(self, headers: Mapping[str, str]) -> float:
        """Return for how many seconds a refusal for a limit wants the tracker to be left alone.

        It is what the server says, else the time to the reset of a budget that it says is empty,
        else a minute, which doubles with each such refusal in a row.
        """
        if (said := retry_after(headers)) is not None:
            return said
        for kind in self._kinds:
            left = _reset(kind, headers)
            if _number(headers, kind.remaining) == 0 and left is not None:
                return _clamped(left)
        self._waits += 1
        return _clamped(_DEFAULT_WAIT * 2.0 ** (self._waits - 1))

    def known(self, now: float) -> tuple[Left, ...]:
        """Return the budgets as they are now: one whose reset has passed is full again."""
        return tuple(_refilled(budget, now) for _, budget in sorted(self._known.items()))

    def shown(self, now: float) -> tuple[RateBudget, ...]:
        """Return the same for others, with times by this machine's clock."""
        present = datetime.now(UTC)
        return tuple(
            RateBudget(
                name=left.name,
                remaining=left.remaining,
                limit=left.limit,
                resets_at=None
                if left.resets_at is None
                else present + timedelta(seconds=left.resets_at - now),
            )
            for left in self.known(now)
        )

    def wait_before(self, use: Use, name: str | None, now: float) -> float:
        """Return for how many seconds a request has to wait, 0 where it may be made.

        ``name`` is the budget it is counted in; None: any.
        """
        waits = [
            budget.resets_at - now
            for budget in self.known(now)
            if name in (None, budget.name)
            and budget.resets_at is not None
            and budget.remaining <= (reserve_of(budget) if use is Use.LIST else 0)
        ]
        return _clamped(max(waits)) if waits else 0.0

    def require(self, use: Use, name: str | None, now: float, attempt: str) -> None:
        """Raise TrackerError where a request has to wait; ``attempt`` begins its text."""
        if not (wait := self.wait_before(use, name, now)):
            return
        for_lists = self.wait_before(Use.WRITE, name, now) == 0
        raise TrackerError(
            TrackerErrorKind.UNAVAILABLE,
            f"{attempt} has {'few requests' if for_lists else 'no request'} left",
            retry_after=wait,
            lists_only=for_lists,
        )

    def list_ended(self) -> None:
        """Note that a list is whole: what it took is what the next one is expected to take."""
        self._list_cost, self._spent = self._spent, {}

    def list_pause(self, now: float) -> float:
        """Return the seconds to the next list with which what is left lasts until it is filled."""
        pauses = [0.0]
        for budget in self.known(now):
            cost = self._list_cost.get(budget.name, 0)
            if not cost or budget.resets_at is None or budget.resets_at <= now:
                continue
            lists = max(budget.remaining - reserve_of(budget), 0) // cost
            left = budget.resets_at - now
            pauses.append(left if lists == 0 else left / lists)
        return min(max(pauses), LONGEST_RESET)


def reserve_of(budget: Left) -> int:
    """Return how many requests lists leave over."""
    return 0 if budget.limit is None else min(math.ceil(budget.limit * RESERVE), LONGEST_RESERVE)


def _refilled(budget: Left, now: float) -> Left:
    if budget.resets_at is None or budget.resets_at > now or budget.limit is None:
        return budget
    return replace(budget, remaining=budget.limit, resets_at=None)


def _number(headers: Mapping[str, str], name: str) -> int | None:
    text = headers.get(name, "")
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if math.isfinite(number) else None


def _reset(kind: BudgetHeaders, headers: Mapping[str, str]) -> float | None:
    """Return the seconds to a reset; None where it is not told, or makes no sense."""
    text = headers.get(kind.reset or "", "")
    now = server_time(headers)
    try:
        if kind.unit is Reset.SECONDS:
            left = float(text)
        elif now is None:
            return None
        elif kind.unit is Reset.ISO:
            left = (datetime.fromisoformat(text) - now).total_seconds()
        else:
            scale = 1000.0 if kind.unit is Reset.EPOCH_MILLISECONDS else 1.0
            left = float(text) / scale - now.timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(left, 0.0), LONGEST_RESET) if math.isfinite(left) else None
