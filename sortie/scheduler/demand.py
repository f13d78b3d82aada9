"""How many runs would start now if neither the process nor its hosts were shared with others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from heapq import merge
from operator import itemgetter

from msgspec.structs import replace

from sortie.model import Issue
from sortie.scheduler.candidates import Place
from sortie.scheduler.claim_table import share_of
from sortie.scheduler.claims import Cleaning, Held
from sortie.scheduler.dispatch import group_of
from sortie.scheduler.gate_view import View, view_of
from sortie.scheduler.gates import FITNESS, ROOM, SHARED, first_closed
from sortie.scheduler.grants import SlotGrant, SlotUse
from sortie.scheduler.host_gate import eligible_hosts, free_host
from sortie.scheduler.state import SchedulerState


def slot_use(state: SchedulerState, now: float) -> SlotUse:
    """Return what a scheduler has of the slots that it shares, and what it wants."""
    more, more_by_host = _more(state, replace(view_of(state, now), grant=None))
    load = state.claims.load
    return SlotUse(
        used=load.total,
        by_host=dict(+load.by_host),
        more=more,
        more_by_host=more_by_host,
        grant=state.grant or SlotGrant(),
    )


def _more(state: SchedulerState, view: View) -> tuple[int, dict[str, int]]:
    """Count the issues that a dispatch would choose, in all and for each host that would do."""
    more, by_host = 0, Counter[str]()
    if state.draining or view.now < state.no_dispatch_before:
        return more, by_host
    shut: set[str] = set()
    for issue in _queue(state):
        if view.load.total >= view.slots:
            break
        group = group_of(state, issue)
        if group in shut or first_closed(FITNESS, issue, view) or state.over_budget(issue):
            continue
        room = first_closed(ROOM, issue, view)
        if room is not None and room.gate in SHARED:
            shut.add(group)
        host = free_host(issue, view) if room is None else None
        if host is not None:
            more += 1
            by_host.update(eligible_hosts(issue, state))
            bound_for = state.policy_for(issue).in_progress_state
            view.load.add(share_of(issue, host, bound_for, state.rule_of(issue)))
    return more, by_host


def _queue(state: SchedulerState) -> Iterator[Issue]:
    """Yield due waits and open candidates in the order in which they are served."""
    due: Iterator[tuple[Place, Issue]] = (
        (place, claim.issue) for place, claim in state.claims.due_in_order()
    )
    fresh = ((candidate.place, candidate.issue) for candidate in state.candidates.open())
    return (issue for _, issue in merge(due, fresh, key=itemgetter(0)))


def is_busy(state: SchedulerState, now: float) -> bool:
    """Tell whether anything is under way, or waits for what time or other workflows bring."""
    if state.grant is not None and slot_use(state, now).more:
        return True  # it waits for slots that others have
    return any(
        not isinstance(claim, Held)
        and not (isinstance(claim, Cleaning) and (claim.error or claim.kept))
        for claim in state.claims.values()
    )
