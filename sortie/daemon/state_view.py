"""The views of hosts, slots, limits and readiness, made from the scheduler's snapshot; pure."""

from __future__ import annotations

from sortie.daemon.wall_time import wall_time
from sortie.model import LOCAL
from sortie.model.numbers import span
from sortie.scheduler import Snapshot
from sortie.scheduler.claims import HandingOff
from sortie.web.state import HostView, RuleSlotsView, SlotsView, TodayView, UsageLimitView

POLL_LIMIT = 120.0
"""Seconds after which a poll that does not wait for the tracker is taken to hang."""


def host_views(snapshot: Snapshot) -> tuple[HostView, ...]:
    """Return the remote hosts, with their troubles."""
    return tuple(_host(host, snapshot) for host in snapshot.policy.hosts if host != LOCAL)


def _host(host: str, snapshot: Snapshot) -> HostView:
    trouble, policy = snapshot.trouble_of(host), snapshot.policy
    most = policy.max_concurrent_agents if policy.max_per_host is None else policy.max_per_host
    if snapshot.grant is not None:
        most = min(most, snapshot.grant.on(host))
    return HostView(
        host=host,
        up=trouble is None,
        used=snapshot.by_host.get(host, 0),
        slots=most,
        since=None if trouble is None else wall_time(trouble.since),
        rests_until=None if trouble is None else wall_time(trouble.until),
        reason=None if trouble is None else trouble.message,
    )


def host_sentences(snapshot: Snapshot) -> tuple[str, ...]:
    """Return a sentence for each host in trouble: with its trouble."""
    return tuple(
        f"host {host} {'rests' if trouble.backing_off else 'is tried again'}: {trouble.message}"
        for host, trouble in snapshot.troubled.items()
    )


def slots_view(snapshot: Snapshot) -> SlotsView:
    """Return what room there is for runs."""
    policy = snapshot.policy
    by_state = {
        state: max(0, limit - snapshot.by_state.get(state, 0))
        for state, limit in policy.max_by_state.items()
    }
    by_host: dict[str, int] = {}
    if policy.max_per_host is not None:
        by_host = {host: snapshot.free_on(host) for host in policy.hosts}
    return SlotsView(
        total=snapshot.slots,
        free=snapshot.free,
        by_state=by_state,
        by_host=by_host,
        by_rule=rule_slots(snapshot),
    )


def rule_slots(snapshot: Snapshot) -> tuple[RuleSlotsView, ...]:
    """Return the share that each rule has of the slots."""
    return tuple(
        RuleSlotsView(
            rule=rule.name,
            used=snapshot.by_rule.get(rule.name, 0),
            guaranteed=rule.guaranteed,
            limit=rule.max_concurrent_agents,
            burst_to=rule.burst_to,
        )
        for rule in snapshot.policy.rules
    )


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


def stop_sentences(snapshot: Snapshot) -> tuple[str, ...]:
    """Say what keeps runs from being started and is no fault."""
    limit = None if snapshot.limit is None else snapshot.limit.sentence
    if limit is not None and not snapshot.is_limited:
        limit += "; runs of rules with other agents go on"
    return tuple(reason for reason in (limit, snapshot.day_spent) if reason is not None)


def endless_poll(snapshot: Snapshot) -> str | None:
    """Say that a poll does not end: a preflight may hang where the workspace root does."""
    since = snapshot.polling_since
    if since is None or snapshot.now - since < POLL_LIMIT:
        return None
    return (
        f"the poll under way has taken {span(snapshot.now - since)}; is the workspace root there?"
    )


def no_usable_host(snapshot: Snapshot) -> str | None:
    """Say that no host can be used, if so; one that works is enough to be ready."""
    troubles = [snapshot.trouble_of(host) for host in snapshot.policy.hosts]
    messages = [trouble.message for trouble in troubles if trouble is not None]
    if len(messages) < len(troubles) or not messages:
        return None
    return f"every host is in trouble: {'; '.join(dict.fromkeys(messages))}"


def closed_tracker(snapshot: Snapshot) -> str | None:
    """Say that the tracker takes no changes, where that keeps an issue from being handed off."""
    refusals = (c.refusal for c in snapshot.waiting if isinstance(c, HandingOff) and c.refusal)
    return next(refusals, None)


def elapsed(snapshot: Snapshot) -> float:
    """Return for how many seconds the runs under way have taken together."""
    return sum(snapshot.now - claim.since for claim in snapshot.worked)
