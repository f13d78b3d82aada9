"""The claims by issue id, the load that they make, and the indexes that every round needs.

Rule 1: a claim changes by ``table[issue_id] = claim`` and ``del table[issue_id]`` only; both update
every index.
Rule 2: an index is a function of the claims; the tests compute it anew after each step of the
simulation.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, MutableMapping, ValuesView
from typing import TypeVar, cast

from msgspec import Struct, field

from sortie.model import Issue, IssueId, RunId, WaitKind, state_key
from sortie.scheduler.candidates import CandidateQueue, Place
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
    Stopping,
    Waiting,
    Worked,
)
from sortie.scheduler.timing import order_key

Share = tuple[str, tuple[str, ...], str]
"""What one run occupies: a slot on a host, a slot in each of these states, and one of a rule."""


class Load(Struct):
    """The number of runs: in total, by state, by host and by rule."""

    total: int = 0
    by_state: Counter[str] = field(default_factory=Counter)
    by_host: Counter[str] = field(default_factory=Counter)
    by_rule: Counter[str] = field(default_factory=Counter)

    def add(self, share: Share | None, count: int = 1) -> None:
        """Count one run more, or one less where ``count`` is -1; None occupies nothing."""
        if share is not None:
            host, states, rule = share
            self.total += count
            self.by_host[host] += count
            self.by_rule[rule] += count
            for state in states:
                self.by_state[state] += count

    def copy(self) -> Load:
        """Return an equal load that changes independently."""
        states, hosts, rules = self.by_state.copy(), self.by_host.copy(), self.by_rule.copy()
        return Load(self.total, states, hosts, rules)


def share_of(issue: Issue, host: str, bound_for: str | None, rule: str) -> Share:
    """Return what a run occupies; ``bound_for`` is a second state in which it needs a slot."""
    state = state_key(issue.state)
    if bound_for is None or (other := state_key(bound_for)) == state:
        return host, (state,), rule
    return host, (state, other), rule


def share_of_claim(claim: Claim | None) -> Share | None:
    """Return what a claim occupies; None where it has no worker and is not about to get one."""
    match claim:
        case Rechecking() | Starting():
            return share_of(claim.issue, claim.host, claim.bound_for, claim.rule)
        case Running() | Stopping():
            return share_of(claim.issue, claim.host, None, claim.rule)
        case _:
            return None


class ClaimOrder(Struct, frozen=True):
    """The order of the indexes: of the claims of each kind, and of the runs."""

    kinds: tuple[IssueId, ...]
    runs: tuple[RunId, ...]


_C = TypeVar("_C", bound=Claim)


class ClaimTable(MutableMapping[IssueId, Claim]):
    """At most one claim for each issue, in the order in which issues were claimed.

    ``load`` counts the runs; change a copy of it only. ``due`` holds the places of waits that
    compete for a slot, ``missing`` the claims whose issue the last read did not find.
    ``deadlines`` are those of waits, clean-ups, questions and turns that have to end, ``handoffs``
    those of handoffs that are tried again. A claimed issue is no open candidate. ``epoch`` is that
    of SchedulerState.
    """

    def __init__(self, candidates: CandidateQueue, epoch: float) -> None:
        self._claims: dict[IssueId, Claim] = {}
        self._by_kind: dict[type, dict[IssueId, Claim]] = defaultdict(dict)
        self._candidates = candidates
        self._epoch = epoch
        self._runs: dict[RunId, IssueId] = {}
        self.load = Load()
        self.due: dict[IssueId, Place] = {}
        self.missing: dict[IssueId, Claim] = {}
        self.deadlines: dict[IssueId, float] = {}
        self.handoffs: dict[IssueId, float] = {}

    def __getitem__(self, issue_id: IssueId) -> Claim:
        return self._claims[issue_id]

    def __iter__(self) -> Iterator[IssueId]:
        return iter(self._claims)

    def __len__(self) -> int:
        return len(self._claims)

    def __contains__(self, issue_id: object) -> bool:
        return issue_id in self._claims

    def values(self) -> ValuesView[Claim]:
        """Return the claims."""
        return self._claims.values()

    def copy(self) -> dict[IssueId, Claim]:
        """Return the claims as they are now."""
        return self._claims.copy()

    def find(self, issue_id: IssueId) -> Claim | None:
        """Return an issue's claim, None where it has none."""
        return self._claims.get(issue_id)

    def of_kind(self, kind: type[_C]) -> list[_C]:
        """Return the claims of one kind."""
        return cast("list[_C]", list(self._by_kind[kind].values()))

    def worked(self) -> Iterator[Worked]:
        """Iterate over the claims that have a worker."""
        return filter(None, map(self.worked_by, self._runs))

    def worked_by(self, run_id: RunId) -> Worked | None:
        """Return the claim of a run; None where the run's claim is over."""
        issue_id = self._runs.get(run_id)
        claim = None if issue_id is None else self._claims[issue_id]
        assert claim is None or isinstance(claim, WORKED)
        return claim

    def due_in_order(self) -> list[tuple[Place, Waiting]]:
        """Return the due waits with their places, in the order in which they are served."""
        places = sorted(self.due.values())
        return [(place, cast("Waiting", self._claims[place[1]])) for place in places]

    def passed(self, now: float, *, handoffs: bool) -> list[IssueId]:
        """Return the issues whose deadline has come, in the order in which they were claimed."""
        passed = {i for i, at in self.deadlines.items() if at <= now}
        if handoffs:
            passed |= {i for i, at in self.handoffs.items() if at <= now}
        return self.in_order(passed)

    def in_order(self, ids: Collection[IssueId]) -> list[IssueId]:
        """Return those of the ids that are claimed, in the order in which they were."""
        return [i for i in self._claims if i in ids] if ids else []

    def order(self) -> ClaimOrder:
        """Return the order in which the indexes list the claims."""
        kinds = sorted(self._by_kind, key=lambda kind: kind.__name__)
        listed = tuple(issue_id for kind in kinds for issue_id in self._by_kind[kind])
        return ClaimOrder(listed, tuple(self._runs))

    def put_in_order(self, order: ClaimOrder) -> None:
        """Have the indexes list the same claims in this order."""
        for issue_id in order.kinds:
            of_kind = self._by_kind[type(self._claims[issue_id])]
            of_kind[issue_id] = of_kind.pop(issue_id)
        for run_id in order.runs:
            self._runs[run_id] = self._runs.pop(run_id)

    def __setitem__(self, issue_id: IssueId, claim: Claim) -> None:
        if issue_id in self._claims:
            self._unindex(issue_id)
        else:
            self._candidates.hide(issue_id)
        self._claims[issue_id] = claim
        self._by_kind[type(claim)][issue_id] = claim
        self.load.add(share_of_claim(claim))
        if (at := _deadline(claim)) < math.inf:
            self.deadlines[issue_id] = at
        match claim:
            case Waiting(due=True):
                self.due[issue_id] = self._place_of(claim)
            case HandingOff(token=None):
                self.handoffs[issue_id] = claim.due_at
            case _ if isinstance(claim, WORKED):
                self._runs[claim.run_id] = issue_id
            case _:
                pass
        if claim.missing_since is not None:
            self.missing[issue_id] = claim

    def __delitem__(self, issue_id: IssueId) -> None:
        self._unindex(issue_id)
        del self._claims[issue_id]
        self._candidates.show(issue_id)

    def _unindex(self, issue_id: IssueId) -> None:
        """Take a claim out of all indexes."""
        claim = self._claims[issue_id]
        del self._by_kind[type(claim)][issue_id]
        self.load.add(share_of_claim(claim), -1)
        for index in (self.due, self.missing, self.deadlines, self.handoffs):
            cast("dict[IssueId, object]", index).pop(issue_id, None)
        if isinstance(claim, WORKED):
            del self._runs[claim.run_id]

    def _place_of(self, claim: Waiting) -> Place:
        """Return where a wait stands in the queue; a continuation is as old as its due time."""
        continued = claim.kind is WaitKind.CONTINUATION
        age = self._epoch + claim.due_at if continued else None
        return order_key(claim.issue, age), claim.issue.id


def _deadline(claim: Claim) -> float:
    match claim:
        case Waiting(due=False):
            return max(claim.due_at, claim.again_at)
        case Cleaning(busy=False):
            return claim.due_at
        case Running(departure=Departure(stop_at=stop_at)):
            return stop_at
        case Held(due_at=float(due_at), overdue=False):
            return due_at
        case _:
            return math.inf
