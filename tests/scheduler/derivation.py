"""What a scheduler's claims and candidates amount to, counted anew as simply as can be."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from sortie.model import Issue, IssueId, WaitKind, state_key
from sortie.scheduler.claim_table import Load
from sortie.scheduler.claims import (
    WORKED,
    Claim,
    Cleaning,
    Departure,
    HandingOff,
    Held,
    Rechecking,
    Running,
    Starting,
    Waiting,
)
from sortie.scheduler.gate_view import view_of
from sortie.scheduler.gates import FITNESS, first_closed
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.timing import OrderKey, order_key


def load_of(claims: Mapping[IssueId, Claim]) -> Load:
    """Count what runs or is about to."""
    states, hosts, rules = Counter[str](), Counter[str](), Counter[str]()
    for claim in claims.values():
        match claim:
            case Rechecking() | Starting():
                taken = {claim.issue.state, claim.bound_for}
            case _ if isinstance(claim, WORKED):
                taken = {claim.issue.state}
            case _:
                continue
        states.update({state_key(state) for state in taken if state is not None})
        hosts[claim.host] += 1
        rules[claim.rule] += 1
    return Load(hosts.total(), states, hosts, rules)


def next_deadline(claims: Mapping[IssueId, Claim]) -> float:
    """Return the first time at which a wait, a clean-up or a turn has to be seen to."""
    return min(map(_deadline, claims.values()), default=math.inf)


def _deadline(claim: Claim) -> float:
    match claim:
        case Waiting(due=False):
            return max(claim.due_at, claim.again_at)
        case Cleaning(busy=False):
            return claim.due_at
        case Running(departure=Departure() as departure):
            return departure.stop_at
        case Held(due_at=float(due_at), overdue=False):
            return due_at
        case _:
            return math.inf


def next_handoff(claims: Mapping[IssueId, Claim]) -> float:
    """Return the first time at which a handoff is tried again."""
    waiting = (c for c in claims.values() if isinstance(c, HandingOff) and c.token is None)
    return min((claim.due_at for claim in waiting), default=math.inf)


def in_order_of_service(issues: list[Issue]) -> list[IssueId]:
    """Return the ids of issues, the first to be served first."""
    return [i.id for i in sorted(issues, key=lambda issue: (order_key(issue), issue.id))]


def _place_of(claim: Waiting, epoch: float) -> tuple[OrderKey, IssueId]:
    age = epoch + claim.due_at if claim.kind is WaitKind.CONTINUATION else None
    return order_key(claim.issue, age), claim.issue.id


def assert_derived(state: SchedulerState) -> None:
    """See that every index says what the claims and candidates say themselves."""
    table, claims = state.claims, dict(state.claims)
    assert all(claim.issue.id == issue_id for issue_id, claim in claims.items())
    assert table.load == load_of(claims)
    for kind in (Held, Cleaning, Rechecking):
        ids = {i for i, c in claims.items() if isinstance(c, kind)}
        assert {c.issue.id for c in table.of_kind(kind)} == ids
    due = [c for c in claims.values() if isinstance(c, Waiting) and c.due]
    places = {claim.issue.id: _place_of(claim, state.epoch) for claim in due}
    assert [(place, claim.issue.id) for place, claim in table.due_in_order()] == [
        (places[i], i) for i in sorted(places, key=places.__getitem__)
    ]
    assert all(claim is claims[claim.issue.id] for _, claim in table.due_in_order())
    assert table.missing == {i: c for i, c in claims.items() if c.missing_since is not None}
    worked = {c.run_id: c for c in claims.values() if isinstance(c, WORKED)}
    assert {claim.run_id: claim for claim in table.worked()} == worked
    assert all(table.worked_by(run_id) is claim for run_id, claim in worked.items())
    assert min(table.deadlines.values(), default=math.inf) == next_deadline(claims)
    assert min(table.handoffs.values(), default=math.inf) == next_handoff(claims)
    assert table.in_order(claims.keys()) == list(claims)
    _assert_queued(state)


def _assert_queued(state: SchedulerState) -> None:
    candidates, view = state.candidates, view_of(state, 0.0)
    unclaimed = [c.issue for i, c in candidates.items() if i not in state.claims]
    open_ones = [candidate.issue for candidate in candidates.open()]
    assert [issue.id for issue in open_ones] == in_order_of_service(open_ones)
    assert {i.id for i in unclaimed} == {i.id for i in open_ones} | candidates.unfit.keys()
    assert len(unclaimed) == len(open_ones) + len(candidates.unfit)
    for issue_id, verdict in candidates.unfit.items():
        assert first_closed(FITNESS, candidates[issue_id].issue, view) == verdict
