"""What a run may take, by what runs of the same rule and agent took: medians, and of how many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median

from msgspec import Struct

from sortie.scheduler import Policy
from sortie.store import HistoryRow


class Estimate(Struct, frozen=True, kw_only=True):
    """Medians of ``runs`` runs; each is None where no run told it. ``of`` says of which runs."""

    runs: int
    of: str
    seconds: float | None
    cost_usd: float | None
    credits: float | None
    tokens: float | None


def estimator(rows: Iterable[HistoryRow]) -> Callable[[Policy], Estimate | None]:
    """Return what estimates a run by its policy; None where no such run is in history."""
    ended = [row for row in rows if row.finished_at is not None]
    known: dict[tuple[str | None, str], Estimate | None] = {}

    def estimate(policy: Policy) -> Estimate | None:
        for rule, of in ((policy.rule, f"rule {policy.rule or 'default'}"), (None, "all rules")):
            key = rule, policy.agent
            if key not in known:
                like = [row for row in ended if row.agent == key[1] and rule in (None, row.rule)]
                known[key] = _medians(like, f"{of}, agent {policy.agent}")
            if known[key] is not None:
                return known[key]
        return None

    return estimate


def _medians(rows: Sequence[HistoryRow], of: str) -> Estimate | None:
    if not rows:
        return None
    times = ((row.finished_at - row.started_at) for row in rows if row.finished_at is not None)
    return Estimate(
        runs=len(rows),
        of=of,
        seconds=_median(time.total_seconds() for time in times),
        cost_usd=_median(row.spent.cost_usd for row in rows),
        credits=_median(row.spent.credits for row in rows),
        tokens=_median(row.tokens if row.tokens is not None else row.spent.tokens for row in rows),
    )


def _median(amounts: Iterable[float | None]) -> float | None:
    told = [amount for amount in amounts if amount is not None]
    return median(told) if told else None
