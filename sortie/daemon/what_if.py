"""Recorded days with other settings: a real scheduler over a model of the world.

The model: an issue comes when a poll first found it, and reads as the last poll before its first
run found it. Its runs take as long and end as those that were recorded of it, one after another;
where it had fewer, as the median of all that were recorded. It leaves with its last recorded run,
or when polls found it no more without a run. What was under way, waited or was held at the
beginning begins anew. Answers take a second. Pull requests, hooks, people
who stop or retry, troubles of hosts and of the tracker, and budgets of a day are left out.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import count
from statistics import median
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from sortie.config.reactions import ReactionsSettings
from sortie.daemon.recorded_days import RecordedRun, Stretch
from sortie.model import Finish, Finished, Issue, IssueId, RunReport, Stopped
from sortie.scheduler import Decision, Event, Policy, RunIds, Scheduler
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler.budgets import NO_LIMITS

ANSWER = 1.0
"""Seconds that the model's tracker takes to answer."""

_WITHOUT_HISTORY = 600.0  # seconds of a run where none was recorded


class ModelledStart(Struct, frozen=True, kw_only=True):
    """A run that the model began, at Unix seconds."""

    issue: Issue
    rule: str
    agent: str
    host: str
    at: float


class _Stay(Struct, kw_only=True):
    """When an issue is there, and the runs that were recorded of it."""

    versions: list[tuple[float, Issue]]
    leaves: float = math.inf
    runs: list[RecordedRun]

    def changes(self) -> Iterator[float]:
        """Yield when it reads otherwise than before, or leaves."""
        yield from (since for since, _ in self.versions)
        yield self.leaves

    def reads(self, at: float) -> Issue:
        """Return how it reads, as long as no run of it has changed it."""
        first = self.runs[0].at if self.runs else math.inf
        at, found = min(at, first), self.versions[0][1]
        for since, issue in self.versions:
            if since > at:
                break
            found = issue
        return found


def modelled(stretch: Stretch, policy: Policy) -> Sequence[ModelledStart]:
    """Return the runs that these settings would have begun."""
    return _Model(stretch, policy).live()


class _Model:
    def __init__(self, stretch: Stretch, policy: Policy) -> None:
        self._stretch = stretch
        policies = (replace(rule, policy=_plain(rule.policy)) for rule in policy.rules)
        self._policy = replace(_plain(policy), rules=tuple(policies))
        self._stays = _stays(stretch)
        took = [run.seconds for run in stretch.runs if run.seconds is not None]
        self._usual = median(took) if took else _WITHOUT_HISTORY
        self._gone: set[IssueId] = set()
        self._done: dict[IssueId, int] = {}
        self._moved: dict[IssueId, str] = {}
        self._read: dict[IssueId, Issue] = {}
        self._changes = sorted(at for stay in self._stays.values() for at in stay.changes())
        self._listed: tuple[Issue, ...] | None = None
        self._passed = 0
        self._queue: list[tuple[float, int, Event]] = []
        self._number = count()
        self._now = stretch.begin
        self._starts: list[ModelledStart] = []
        self._scheduler = Scheduler(
            self._policy,
            now=stretch.begin,
            new_run_id=RunIds(UUID(int=0)),
        )

    def live(self) -> Sequence[ModelledStart]:
        """Let the time of the stretch pass."""
        while self._now < self._stretch.end:
            at = min(self._queue[0][0] if self._queue else math.inf, self._scheduler.wakeup_at())
            self._now = max(self._now, at)
            if self._queue and self._queue[0][0] <= self._now:
                event = heapq.heappop(self._queue)[2]
            else:
                event = ev.TimePassed()
            for decision in self._scheduler.handle(event, self._now):
                self._perform(decision)
        return self._starts

    def _later(self, seconds: float, event: Event) -> None:
        heapq.heappush(self._queue, (self._now + seconds, next(self._number), event))

    def _issue(self, issue_id: IssueId) -> Issue | None:
        """Return an issue as the tracker has it now, None where it is not there."""
        stay = self._stays.get(issue_id)
        if stay is None or issue_id in self._gone or stay.versions[0][0] > self._now:
            return None
        if stay.leaves <= self._now and not stay.runs:
            return None
        issue = stay.reads(self._now)
        state = self._moved.get(issue_id, issue.state)
        if state == issue.state:
            return issue
        known = self._read.get(issue_id)
        if known is None or known.state != state:
            known = self._read[issue_id] = replace(issue, state=state)
        return known

    def _list(self) -> tuple[Issue, ...]:
        """Return what a poll finds; it is looked for anew once something has changed."""
        passed = bisect_right(self._changes, self._now)
        if self._listed is None or self._passed != passed:
            every = self._policy.every()
            issues = filter(None, map(self._issue, self._stays))
            active = (i for i in issues if any(policy.is_active(i) for policy in every))
            self._listed, self._passed = tuple(active), passed
        return self._listed

    def _perform(self, decision: Decision) -> None:
        match decision:
            case do.Poll():
                self._later(ANSWER, ev.CandidatesFetched(self._list()))
            case do.Refresh(token, ids):
                found = filter(None, map(self._issue, sorted(ids)))
                self._later(ANSWER, ev.IssuesRefreshed(token, ids, tuple(found)))
            case do.StartWorker():
                self._start(decision)
            case do.StopWorker(run_id=run_id):
                self._later(ANSWER, ev.WorkerExited(run_id, RunReport(end=Stopped())))
            case do.HandOff(token, issue, state):
                self._moved[issue.id], self._listed = state, None
                self._later(ANSWER, ev.TransitionAnswered(issue.id, token, state=state))
            case do.CleanWorkspace(issue, workspaces):
                self._later(ANSWER, ev.WorkspaceCleaned(issue.id, workspaces))
            case _:
                pass

    def _start(self, start: do.StartWorker) -> None:
        issue = start.issue
        rules = self._scheduler.snapshot(self._now).rules
        policy = self._policy.of_rule(rules.get(issue.id, ""))
        self._starts.append(
            ModelledStart(
                issue=issue,
                rule=policy.rule,
                agent=policy.agent,
                host=start.host,
                at=self._now,
            )
        )
        number = self._done.get(issue.id, 0)
        self._done[issue.id] = number + 1
        runs = self._stays[issue.id].runs
        run = runs[number] if number < len(runs) else None
        seconds = self._usual if run is None or run.seconds is None else run.seconds
        report = RunReport(end=Finished(finish=Finish.DONE), turns=1)
        if run is not None and run.report is not None:
            report = run.report
        self._later(min(ANSWER, seconds), ev.TurnStarted(start.run_id, 1))
        self._later(seconds, ev.WorkerExited(start.run_id, report))
        if policy.in_progress_state is not None:
            self._moved[issue.id] = policy.in_progress_state
        self._listed = None
        if number + 1 >= len(runs) and policy.handoff_state is None:
            self._gone.add(issue.id)


def _plain(policy: Policy) -> Policy:
    """Return a policy without what the model leaves out."""
    return replace(policy, reactions=ReactionsSettings(), per_day=NO_LIMITS)


def _stays(stretch: Stretch) -> dict[IssueId, _Stay]:
    stays: dict[IssueId, _Stay] = {}
    listed: dict[IssueId, Issue] = {}
    for at, issues in stretch.polls:
        now = {issue.id: issue for issue in issues}
        for issue in issues:
            if listed.get(issue.id) is not issue:
                stay = stays.setdefault(issue.id, _Stay(versions=[], runs=[]))
                stay.versions.append((at, issue))
                stay.leaves = math.inf
        for gone in listed.keys() - now.keys():
            stays[gone].leaves = at
        listed = now
    for run in stretch.runs:
        stay = stays.setdefault(run.issue.id, _Stay(versions=[(run.at, run.issue)], runs=[]))
        stay.runs.append(run)
    return stays
