"""The scheduler at one moment, immutable, and the backlog: issues that are not started, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Literal, TypeVar

from msgspec import Struct, field

from sortie.model import Issue, IssueId, Spending
from sortie.model.asked_questions import AskedQuestion
from sortie.scheduler.candidates import GateVerdict
from sortie.scheduler.claims import (
    WORKED,
    Claim,
    Cleaning,
    HandingOff,
    Held,
    Rechecking,
    Waiting,
    Worked,
)
from sortie.scheduler.gate_view import View, view_of
from sortie.scheduler.gates import FITNESS, ROOM, Gate, closed, judge_candidates
from sortie.scheduler.grants import SlotGrant
from sortie.scheduler.hosts import Troubled
from sortie.scheduler.policy import Policy
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.usage_limits import UsageLimit
from sortie.scheduler.watch_standing import WatchStanding, standings
from sortie.scheduler.webhook_pauses import known_arrivals
from sortie.scheduler.webhook_table import Arrival

_Kind = TypeVar("_Kind")


class Snapshot(Struct, frozen=True, kw_only=True):
    """The scheduler at ``now`` (monotonic seconds, as are all times in the claims).

    ``unfit`` maps candidates that only a change of an issue can start to the closed gate.
    ``troubled`` are the hosts in trouble. ``rules`` are those of all issues in hand and of all
    candidates for which a rule decides.
    ``poll_error`` is why the last poll failed, and ``polling_since`` when the one under way began.
    ``limit`` is the first usage limit of the agents' accounts, if one is known, and ``is_limited``
    tells that all of them have one.
    ``spent_today`` was used on ``day``, and ``day_spent`` says that its budget is used up.
    ``idle_polls`` counts good polls in a row that found nothing to do or to wait for.
    ``watched`` are the pull requests that are watched, the most urgent first. ``arrivals`` tell how
    the deliveries of webhooks arrive that the settings name. ``questions`` are the newest of the
    issues' agents.
    ``grant`` is what this scheduler may have where several share slots.
    """

    now: float
    policy: Policy
    claims: Mapping[IssueId, Claim]
    candidates: tuple[Issue, ...]
    unfit: Mapping[IssueId, GateVerdict]
    paused: bool
    draining: bool
    poll_error: str | None
    polling_since: float | None
    skipped: str | None
    hindrance: str | None
    by_state: Mapping[str, int]
    by_host: Mapping[str, int]
    by_rule: Mapping[str, int]
    rules: Mapping[IssueId, str]
    troubled: Mapping[str, Troubled]
    used: int
    idle_polls: int
    limit: UsageLimit | None
    is_limited: bool
    day: str
    spent_today: Spending
    day_spent: str | None
    watched: tuple[WatchStanding, ...] = ()
    questions: Mapping[IssueId, AskedQuestion] = field(default_factory=dict)
    grant: SlotGrant | None = None
    arrivals: tuple[Arrival, ...] = ()

    @property
    def worked(self) -> tuple[Worked, ...]:
        """The claims that a worker stands behind."""
        return tuple(c for c in self.claims.values() if isinstance(c, WORKED))

    @property
    def waiting(self) -> tuple[Waiting | HandingOff, ...]:
        """The claims that wait for a run or a handoff."""
        waits = (c.waited if isinstance(c, Rechecking) else c for c in self.claims.values())
        return tuple(c for c in waits if isinstance(c, Waiting | HandingOff))

    @property
    def held(self) -> tuple[Held, ...]:
        """The parked issues."""
        return tuple(self._of(Held))

    @property
    def cleaning(self) -> tuple[Cleaning, ...]:
        """The terminal issues whose workspaces are being removed."""
        return tuple(self._of(Cleaning))

    @property
    def kept(self) -> tuple[Cleaning, ...]:
        """The terminal issues with a workspace that is kept for the work in it."""
        return tuple(claim for claim in self.cleaning if claim.kept)

    @property
    def slots(self) -> int:
        """How many runs there may be at once."""
        most = self.policy.max_concurrent_agents
        return most if self.grant is None else min(most, self.grant.usable)

    @property
    def free(self) -> int:
        """How many more runs may start, on all hosts together."""
        free = max(0, self.slots - self.used)
        return min(free, sum(map(self.free_on, self.policy.every_host)))

    def trouble_of(self, host: str) -> Troubled | None:
        """Return what keeps all agents from being started on a host, None where nothing does."""
        trouble = self.troubled.get(host)
        accounts = self.policy.accounts_on(host)
        return trouble if trouble is not None and trouble.concerns(accounts) else None

    def free_on(self, host: str) -> int:
        """Return how many more runs may start on a host; one that comes back gets one at a time."""
        policy, load = self.policy, self.by_host.get(host, 0)
        most = policy.max_concurrent_agents if policy.max_per_host is None else policy.max_per_host
        if self.grant is not None:
            most = min(most, self.grant.on(host))
        if (trouble := self.trouble_of(host)) is not None:
            most = 0 if trouble.backing_off else 1
        return max(0, most - load)

    @property
    def status(self) -> Literal["running", "paused", "draining"]:
        """``running``, ``paused`` or ``draining``."""
        if self.draining:
            return "draining"
        return "paused" if self.paused else "running"

    def _of(self, kind: type[_Kind]) -> Iterator[_Kind]:
        return (c for c in self.claims.values() if isinstance(c, kind))


def rules_of(state: SchedulerState) -> Mapping[IssueId, str]:
    """Return the rules that decide for issues; what the top level decides for is left out."""
    if not state.policy.rules:
        return {}
    issues = [candidate.issue for candidate in state.candidates.in_order()]
    issues += [known.issue for known in (*state.claims.values(), *state.watches.values())]
    return {issue.id: rule for issue in issues if (rule := state.rule_of(issue))}


def snapshot_of(state: SchedulerState, now: float) -> Snapshot:
    """Return the scheduler as it stands."""
    judge_candidates(state, now)
    load = state.claims.load
    return Snapshot(
        now=now,
        policy=state.policy,
        claims=state.claims.copy(),
        candidates=tuple(candidate.issue for candidate in state.candidates.in_order()),
        unfit=dict(state.candidates.unfit),
        paused=state.paused,
        draining=state.draining,
        poll_error=state.poll_error,
        polling_since=state.polling_since,
        skipped=state.skipped,
        hindrance=next(iter(state.hindrances.values()), None),
        rules=rules_of(state),
        by_state=+load.by_state,
        by_host=+load.by_host,
        by_rule=+load.by_rule,
        troubled=state.hosts.all(),
        used=load.total,
        idle_polls=state.idle_polls,
        limit=state.usage_limit,
        is_limited=all(state.limits.of(one.account) is not None for one in state.policy.every()),
        day=state.day,
        spent_today=state.ledger.today,
        day_spent=state.day_spent(),
        watched=standings(state.watches.values(), state.claims, state.rule_of)
        if state.policy.reactions.on
        else (),
        questions=dict(state.questions),
        grant=state.grant,
        arrivals=known_arrivals(state),
    )


SOON = "it starts with the next dispatch, once the tracker confirms that it may"


class BacklogIssue(Struct, frozen=True):
    """An issue that is not started, and the sentence that says why."""

    issue: Issue
    reason: str


class Backlog(Struct, frozen=True, kw_only=True):
    """``queued`` issues start when there is room, ``blocked`` ones only when they have changed.

    The lists hold the first of them, in the order in which they are served.
    """

    queued: int
    blocked: int
    first_queued: tuple[BacklogIssue, ...]
    first_blocked: tuple[BacklogIssue, ...]


def backlog(state: SchedulerState, now: float, shown: int, unfit: Collection[IssueId]) -> Backlog:
    """Return what is kept back, with ``shown`` issues of either kind at most.

    ``unfit`` are those of a snapshot: with thousands of issues their gates are not asked twice.
    """
    view = view_of(state, now)
    candidates, claims = state.candidates, state.claims
    unclaimed = [c.issue for c in candidates.in_order() if c.issue.id not in claims]
    queued = [issue for issue in unclaimed if issue.id not in unfit]
    blocked = (issue for issue in unclaimed if issue.id in unfit)
    return Backlog(
        queued=len(queued),
        blocked=len(unclaimed) - len(queued),
        first_queued=_kept(queued[:shown], ROOM, view),
        first_blocked=_kept(islice(blocked, shown), FITNESS, view),
    )


def _kept(
    issues: Iterable[Issue], gates: tuple[tuple[str, Gate], ...], view: View
) -> tuple[BacklogIssue, ...]:
    return tuple(BacklogIssue(issue, closed(gates, issue, view) or SOON) for issue in issues)
