"""What is shown of today's spending, and of what keeps runs from being started for it."""

from __future__ import annotations

from sortie.daemon.wall_time import wall_time
from sortie.scheduler import Snapshot
from sortie.web.state import TodayView, UsageLimitView


def usage_limit_view(snapshot: Snapshot) -> UsageLimitView | None:
    """Return the usage limit of the agent's account, None where none is known."""
    limit = snapshot.limit
    if limit is None:
        return None
    return UsageLimitView(
        agent=limit.agent,
        message=limit.message,
        since=wall_time(limit.since),
        until=limit.resets_at or wall_time(limit.until),
        resets_at=limit.resets_at,
        reason=limit.sentence,
    )


def today_view(snapshot: Snapshot) -> TodayView:
    """Return what was used today, and what may be."""
    spent, allowed = snapshot.spent_today.rounded(), snapshot.policy.per_day
    return TodayView(
        day=snapshot.day,
        timezone=snapshot.policy.zone,
        tokens=spent.tokens,
        credits=spent.credits,
        cost_usd=spent.cost_usd,
        estimated_usd=spent.estimated_usd,
        daily_credits=allowed.credits or None,
        daily_cost_usd=allowed.cost_usd or None,
        exhausted=snapshot.day_spent,
    )


def stops(snapshot: Snapshot) -> tuple[str, ...]:
    """Say what keeps runs from being started that is no fault."""
    limit = None if snapshot.limit is None else snapshot.limit.sentence
    return tuple(reason for reason in (limit, snapshot.day_spent) if reason is not None)
