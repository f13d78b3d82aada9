"""A world for the scheduler to run in: tracker, workers, disk and time, all pretend.

``World`` performs decisions the way the shell promises to, and checks on the way the invariants
that no scheduler may break.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never
from uuid import UUID

from msgspec.structs import replace

from sortie import facts
from sortie.model import (
    LOCAL,
    NOTHING,
    Activity,
    ErrorKind,
    Failed,
    Finished,
    Issue,
    IssueId,
    KeptWorkspace,
    KnownWorkspace,
    ProcessIdentity,
    RunId,
    RunReport,
    RunStatus,
    Spending,
    Stopped,
    StopReason,
    TrackerErrorKind,
    WaitKind,
    state_key,
)
from sortie.model.asked_questions import answer_on_ticket
from sortie.orchestrator.recall import recall
from sortie.scheduler import Decision, Event, Policy, Record, RunIds, Scheduler
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import (
    Claim,
    Cleaning,
    HandingOff,
    Held,
    Rechecking,
    Running,
    Starting,
    Stopping,
    Waiting,
)
from sortie.scheduler.timing import backoff
from tests.scheduler.derivation import assert_derived
from tests.sim.asking import Asking
from tests.sim.disk import Disk
from tests.sim.freshness import Freshness
from tests.sim.recording import RecordedLife
from tests.sim.rests import Rests
from tests.sim.sentences import sentences_of
from tests.sim.serving import Serving
from tests.sim.spending import Spent
from tests.sim.usage_limits import LimitsInForce
from tests.store.inline import memory_database
from tests.typed import wrongly_typed

EPOCH = 1_700_000_000.0
GOES_ON = (None, StopReason.SHUTDOWN, StopReason.BUDGET)
DEPARTED = {StopReason.TERMINAL, StopReason.INACTIVE, StopReason.MISSING}
HANDOFF_TRIES = 5
LASTING = (TrackerErrorKind.NOT_FOUND, TrackerErrorKind.PERMISSION)


@dataclass(slots=True)
class Worker:
    """A pretend worker; ``stopping`` is why it was told to stop, ``left_at`` since when its issue
    is known to be active no more."""

    start: do.StartWorker
    issue: Issue
    agent: str
    account: str
    turns: int = 0
    left_at: float | None = None
    stopping: StopReason | None = None
    prepared: bool = False


@dataclass(slots=True)
class WorldQuestion:
    """A question to the tracker or the file system; ``answer`` is what it will say."""

    decision: do.Poll | do.Refresh | do.HandOff | do.CleanWorkspace
    answer: Event | None = None


@dataclass(slots=True)
class World:
    """Everything outside the scheduler."""

    policy: Policy
    now: float = 0.0
    issues: dict[IssueId, Issue] = field(default_factory=dict)
    workers: dict[RunId, Worker] = field(default_factory=dict)
    questions: list[WorldQuestion] = field(default_factory=list)
    disk: Disk = field(default_factory=lambda: Disk(memory_database()))
    draining: bool = False
    lives: int = 0
    reached: Counter[object] = field(default_factory=Counter)
    sessions: dict[str, tuple[IssueId, str, str, str, int]] = field(default_factory=dict)
    births: Counter[tuple[str, str]] = field(default_factory=Counter)
    recorded: RecordedLife = field(init=False)
    born_at: float = 0.0
    told: Event = field(default_factory=ev.TimePassed)
    events: int = 0
    expected_attempt: dict[IssueId, int] = field(default_factory=dict)
    not_before: dict[IssueId, float] = field(default_factory=dict)
    tries: dict[IssueId, int] = field(default_factory=dict)
    rests: Rests = field(default_factory=Rests)
    blank: set[tuple[str, IssueId]] = field(default_factory=set)
    unsaved: set[tuple[str, str]] = field(default_factory=set)
    hindrance: str | None = None
    shortage: str | None = None
    rests_until: float = 0.0
    said: set[str] = field(default_factory=set)
    _checked: tuple[int, int] = (0, 0)
    scheduler: Scheduler = field(init=False)
    days: int = 0
    limits: LimitsInForce = field(default_factory=LimitsInForce)
    asking: Asking = field(default_factory=Asking)
    asks_on_ticket: bool = True
    spent: Spent = field(default_factory=Spent)
    freshness: Freshness = field(init=False)
    serving: Serving = field(init=False)

    def __post_init__(self) -> None:
        self.boot()

    def boot(self) -> None:
        """Begin a life of the daemon from what is on disk."""
        self.lives += 1
        self.draining = False
        self.born_at = self.now
        self.recorded = RecordedLife(self.lives)
        found, wall = self.disk.recover(), EPOCH + self.now
        self.spent.boot(dict(found.spent))
        for runs in self.limits.probes.values():
            runs.clear()
        memory, records = recall(found, self.policy, now=self.now, wall=wall)
        for record in records:
            self.write(record)
        ids = RunIds(UUID(int=self.lives))
        self.scheduler = Scheduler(
            self.policy, now=self.now, new_run_id=ids, memory=memory, epoch=EPOCH
        )
        self.freshness, self.serving = Freshness(), Serving(EPOCH)
        self.serving.remember(c for c in memory.claims if isinstance(c, Waiting))
        self.rests = Rests()
        self.rests_until = 0.0
        self.blank.clear()
        self.begin_day()

    def begin_day(self, days: int = 0) -> None:
        """Let it be known what day it is, so many days later."""
        self.days += days
        day = f"day {self.days}"
        self.spent.today = self.disk.days.get(day, NOTHING)
        self.tell(ev.DayBegan(day, self.spent.today))

    def crash(self) -> None:
        """Kill the daemon: its workers die, nobody answers, and a new life begins."""
        for worker in self.workers.values():
            issue_id = worker.start.issue.id
            streak = worker.start.streak
            if streak.interruptions:
                attempt = streak.failures + 1
                self.expected_attempt[issue_id] = attempt
                self.not_before[issue_id] = self.now + backoff(attempt, self.policy)
        self.workers.clear()
        self.questions.clear()
        self.boot()

    # The shell: events in, decisions performed.

    def tell(self, event: Event) -> list[Decision]:
        """Give the scheduler one event and perform what it decides, records first."""
        self.draining |= isinstance(event, ev.ShutdownRequested)
        before = dict(self.scheduler._state.claims)
        self._foresee(event, before)
        self.told, self.events = event, self.events + 1
        decisions = self.recorded.decide(self.scheduler, event, self.now)
        for decision in decisions:
            if isinstance(decision, Record):
                self.write(decision)
        for decision in decisions:
            if not isinstance(decision, Record):
                self.perform(decision)
        self._judge(event, before, decisions)
        self._listen(before, decisions)
        return decisions

    def _listen(self, before: dict[IssueId, Claim], decisions: list[Decision]) -> None:
        """See that all that was decided and is claimed is what it is declared to be, and hear
        what is said about it."""
        claims = self.scheduler._state.claims
        for thing in (*decisions, *(c for i, c in claims.items() if c is not before.get(i))):
            assert not (wrong := wrongly_typed(thing)), wrong
            self.said.update(sentences_of(thing))

    def _foresee(self, event: Event, before: Mapping[IssueId, Claim]) -> None:
        """Note what an event means for handoffs and hosts, before the scheduler hears of it."""
        run_id = getattr(event, "run_id", None)
        worker = self.workers.get(run_id) if run_id is not None else None
        self.rests.hear(event, worker.start.host if worker else None)
        match event:
            case ev.TrackerPaused(seconds):
                self.rests_until = max(self.rests_until, self.now + seconds)
            case ev.TransitionAnswered(issue_id=issue_id, token=token, error_kind=kind):
                claim = before.get(issue_id)
                failed = kind is not None and not kind.is_outage
                if isinstance(claim, HandingOff) and claim.token == token and failed:
                    self.tries[issue_id] = self.tries.get(issue_id, 0) + 1
                    if kind in LASTING:
                        self.tries[issue_id] = HANDOFF_TRIES
            case ev.WorkerExited(run_id=run_id) | ev.TurnStarted(run_id=run_id):
                for issue_id in [c.issue.id for c in before.values() if _runs(c, run_id)]:
                    self.tries.pop(issue_id, None)
            case ev.RetryAsked(issue=name):
                self.tries.pop(IssueId(name), None)
            case _:
                pass

    def _judge(self, event: Event, before: dict[IssueId, Claim], decisions: list[Decision]) -> None:
        state = self.scheduler._state
        old_news = list(self.freshness.hear(event, before, state.claims, decisions))
        assert not old_news, old_news
        self.serving.hear(decisions, self.now)
        most = self.policy.max_sessions
        known = {*state.candidates, *state.claims}
        spent = {i for i in known if self.spent.is_over(i, self.policy)}
        spent |= {i for i in state.candidates if 0 < most <= self._sessions(i)}
        listed = [candidate.issue for candidate in state.candidates.values()]
        for decision in decisions:
            if isinstance(decision, do.Refresh):
                unfair = list(
                    self.serving.out_of_turn(
                        self.policy, decision.token, state.claims, listed, spent
                    )
                )
                assert not unfair, unfair

    def _sessions(self, issue_id: IssueId) -> int:
        return self.disk.sessions.get(issue_id, 0)

    def write(self, record: Record) -> None:
        """Put a record on disk."""
        self.reached[type(record).__name__] += 1
        for name in ("reason", "trigger", "status"):
            if (value := getattr(record, name, None)) is not None:
                self.reached[value] += 1
        assert not isinstance(record, rec.RecordRetry) or record.delay >= 0
        self.disk.write(record, EPOCH + self.now)
        self.spent.write(record, self.now)
        self.limits.write(record, self.now)
        if isinstance(record, rec.RecordRetry) and record.kind is WaitKind.HANDOFF:
            tried = self.tries.get(record.issue.id, 0)
            assert record.tries == tried < HANDOFF_TRIES, "a failed handoff is not counted"

    def perform(self, decision: Decision) -> None:
        """Do what the shell would do."""
        self.reached[type(decision).__name__] += 1
        if isinstance(decision, do.Poll | do.Refresh | do.HandOff):
            assert self.now >= self.rests_until, "the tracker is asked while it rests"
        match decision:
            case do.StartWorker():
                self._start(decision)
            case do.StopWorker(run_id, _, reason):
                worker = self.workers[run_id]
                assert worker.stopping is None, "stopped twice"
                self._check_inactive_grace(worker, reason)
                worker.stopping = reason
                self.reached[reason] += 1
            case do.Poll():
                assert not any(isinstance(q.decision, do.Poll) for q in self.questions)
                self.questions.append(WorldQuestion(decision))
            case do.Refresh(_, ids):
                assert ids
                self.questions.append(WorldQuestion(decision))
            case do.CleanWorkspace(issue, workspaces, unsaved_too):
                assert workspaces
                for known in unsaved_too:
                    since = self.disk.unsaved.get((known.host, known.path), EPOCH + self.now)
                    kept = EPOCH + self.now - since
                    assert kept >= self.policy.keep_unsaved - 0.001, "work is lost too early"
                assert not self.draining, "a clean-up that nobody would wait for"
                self._assert_nobody_in(issue.id, "cleaned under a worker")
                assert self.policy.is_terminal(issue), "cleaned an issue that is not terminal"
                self.questions.append(WorldQuestion(decision))
            case do.HandOff(issue=issue):
                self._assert_nobody_in(issue.id, "handed off under a worker")
                wait = self.disk.retries[issue.id]
                tried = self.tries.get(issue.id, 0)
                assert (wait.kind, wait.tries) == (WaitKind.HANDOFF, tried), "not on record"
                self.questions.append(WorldQuestion(decision))
            case facts.HoldEnded(issue=issue) | facts.WaitEnded(issue=issue):
                self.expected_attempt.pop(issue.id, None)
                self.not_before.pop(issue.id, None)
            case do.PostQuestion(issue=issue):
                settings, at = self.policy.questions, EPOCH + self.now
                asked = self.asking.ask(self.disk, decision, settings, at)
                if (present := self.issues.get(issue.id)) is not None and self.asks_on_ticket:
                    self.edit(present, comments=(*present.comments, asked))
            case facts.QuestionAnswered(issue=issue):
                self.reached[decision.way] += 1
                self.expected_attempt.pop(issue.id, None)
                self.not_before.pop(issue.id, None)
                present, at = self.issues.get(issue.id), EPOCH + self.now
                self.asking.answered(self.disk, decision, present, at)
            case facts.QuestionWithdrawn():
                self.asking.withdrawn(decision)
            case facts.QuestionAsked():
                pass
            case facts.DispatchDropped(issue=issue):
                if issue.id not in self.disk.retries:
                    self.expected_attempt.pop(issue.id, None)
                    self.not_before.pop(issue.id, None)
            case facts.IssueReconciled(action="keep", issue=issue, reason=reason):
                (worker,) = (w for w in self.workers.values() if w.start.issue.id == issue.id)
                worker.left_at = self.now if reason else None
            case (
                do.PostComment()
                | facts.IssueReconciled()
                | do.AnswerCommand()
                | facts.WorkspaceKept()
            ):
                pass
            case facts.BudgetRunsLow() | facts.BudgetSpent():
                pass
            case facts.AgentLimited() | facts.AgentLimitEnded():
                pass
            case facts.HostPaused(host=host, seconds=seconds):
                self.rests.rested(host, seconds, self.policy, self.now)
            case facts.HostBack(host=host):
                self.rests.trusted(host)
            case facts.HostGivenUp(host=host):
                self.rests.given_up(host, self.now)
            case _ if isinstance(decision, Record):
                pass
            case (
                do.LookAtPullRequests()
                | do.RunErrand()
                | do.MergePullRequest()
                | facts.WatchBegan()
                | facts.WatchEnded()
                | facts.ReactionPlanned()
                | facts.ReactionEnded()
                | facts.MergeAttempted()
                | facts.ErrandFailed()
                | do.PostAgentComment()
                | facts.WebhookFollowed()
                | facts.WebhooksArriving()
                | facts.WebhooksMissed()
                | facts.WebhooksSilent()
            ):
                raise AssertionError(decision)  # nothing is watched, called or told from outside
            case _:
                assert_never(decision)

    def _check_inactive_grace(self, worker: Worker, reason: StopReason) -> None:
        """Fail where a turn was ended too early that its agent may have been about to end."""
        if worker.turns == 0 or reason not in DEPARTED:
            return
        assert worker.left_at is not None, "stopped before its issue had left"
        begins_another = isinstance(self.told, ev.TurnStarted)
        assert begins_another or self.now >= worker.left_at + self.policy.inactive_grace, (
            "stopped too early"
        )

    def _assert_nobody_in(self, issue_id: IssueId, what: str) -> None:
        assert all(w.start.issue.id != issue_id for w in self.workers.values()), what

    def _start(self, start: do.StartWorker) -> None:
        self._check_session(start)
        issue, policy = start.issue, self.policy
        self._assert_nobody_in(issue.id, "two workers, one issue")
        assert not self.draining, "started while shutting down"
        assert not self.disk.paused, "started while paused"
        assert start.run_id in self.disk.under_way, "started before it was recorded"
        self.asking.start(self.disk, start)
        assert issue.id not in self.disk.holds, "started while held"
        assert issue.id not in self.disk.retries, "started with its retry still on disk"
        assert not any(
            isinstance(q.decision, do.CleanWorkspace) and q.decision.issue.id == issue.id
            for q in self.questions
        ), "started in a directory that is being removed"
        assert state_key(issue.state) in policy.active_states - policy.terminal_states
        assert policy.required_labels <= set(map(state_key, issue.labels))
        assert all(
            b.state is not None and state_key(b.state) in policy.terminal_states
            for b in issue.blocked_by
        )
        assert start.streak.failures == self.expected_attempt.get(issue.id, 0), "wrong attempt"
        assert self.now > self.not_before.get(issue.id, 0.0) - 1e-6, (
            "started before its wait was over"
        )
        assert not self.spent.is_over(issue.id, policy), "started beyond what it may use"
        assert not self.spent.is_day_over(policy), "started beyond the budget of the day"
        self.limits.start(policy.account, start.run_id, self.now)
        self._check_host(start)
        self.workers[start.run_id] = Worker(start, issue, policy.agent, policy.account)
        self._check_limits(issue)

    def _check_session(self, start: do.StartWorker) -> None:
        """A session is handed back to its own issue and kind of agent only, on its own host, and
        while the directory is there in which it was."""
        if start.resume is not None:
            owner = self.sessions[start.resume.session_id]
            path = start.resume.workspace
            birth = self.births[start.host, path]
            assert owner == (start.issue.id, self.policy.agent, start.host, path, birth), start
            assert self.disk.workspaces[start.host, path].issue_id == start.issue.id, start

    def _check_host(self, start: do.StartWorker) -> None:
        host, policy = start.host, self.policy
        assert host in policy.hosts
        load = sum(1 for worker in self.workers.values() if worker.start.host == host)
        assert policy.max_per_host is None or load < policy.max_per_host, "one too many on a host"
        assert self.rests.allow(host, load, self.now), "started on a resting host"
        issue = start.issue
        homes = {w.host for w in self.disk.workspaces.values() if w.issue_id == issue.id}
        awaited = [
            h
            for h in homes & set(policy.hosts)
            if self.rests.awaited(h, self.now, blank=(h, issue.id) in self.blank)
        ]
        assert not awaited or host in awaited, "started away from its workspace"

    def _check_limits(self, issue: Issue) -> None:
        policy = self.policy
        assert len(self.workers) <= policy.max_concurrent_agents, "one too many"
        states = Counter[str]()
        for claim in self.scheduler.snapshot(self.now).worked:
            states[state_key(claim.issue.state)] += 1
        for state in {state_key(issue.state), state_key(policy.in_progress_state or "")}:
            limit = policy.max_by_state.get(state, math.inf)
            extra = 0 if state == state_key(issue.state) else 1
            assert states[state] + extra <= limit, f"one too many in {state}"

    # What the environment may do next.

    def advance(self, seconds: float) -> None:
        """Let time pass; the shell wakes the scheduler."""
        self.now += seconds
        self.tell(ev.TimePassed())
        assert self.scheduler.wakeup_at() > self.now, "a deadline that time cannot satisfy"

    def next_deadline(self) -> None:
        """Sleep as long as the scheduler lets us."""
        at = self.scheduler.wakeup_at()
        self.advance(max(0.001, at - self.now) if at < math.inf else 1.0)

    def serve(self, question: WorldQuestion, *, error: TrackerErrorKind | None = None) -> None:
        """Have the tracker or file system make up its answer; it may be delivered later."""
        match question.decision:
            case do.Poll():
                question.answer = self._candidates() if error is None else ev.PollFailed("down")
            case do.Refresh(token, ids, questions):
                found = tuple(self.issues[i] for i in sorted(ids) if i in self.issues)
                read = {i.id: i.comments for i in found if i.id in questions}
                said = {i: answer_on_ticket(questions[i], read[i]) for i in read}
                answers = {i: answer for i, answer in said.items() if answer is not None}
                question.answer = (
                    ev.IssuesRefreshed(token, ids, found, answers=answers)
                    if error is None
                    else ev.IssuesRefreshed(token, ids, (), ids, "down")
                )
            case do.HandOff(token, issue, state):
                question.answer = self._transition(token, issue, state, error)
            case do.CleanWorkspace(issue, workspaces, unsaved_too):
                kept = tuple(
                    KeptWorkspace(workspace=known, reason="1 unpushed commit")
                    for known in workspaces
                    if (known.host, known.path) in self.unsaved and known not in unsaved_too
                )
                gone = set(workspaces) - {at.workspace for at in kept}
                question.answer = (
                    ev.WorkspaceCleaned(issue.id, tuple(gone), kept=kept)
                    if error is None
                    else ev.WorkspaceCleaned(issue.id, (), "directory not empty", kept)
                )

    def _candidates(self) -> Event:
        active = self.policy.active_states
        issues = (i for i in self.issues.values() if state_key(i.state) in active)
        return ev.CandidatesFetched(tuple(issues), self.hindrance, self.shortage)

    def _transition(
        self, token: int, issue: Issue, state: str, error: TrackerErrorKind | None
    ) -> Event:
        present = self.issues.get(issue.id)
        if error is None and present is None:
            error = TrackerErrorKind.NOT_FOUND
        elif error is None and present is not None and present.state != issue.state:
            error = TrackerErrorKind.CONFLICT
        if error is None and present is not None:
            self.edit(present, state=state)
        return ev.TransitionAnswered(issue.id, token, error, "no" if error else "")

    def deliver(self, question: WorldQuestion) -> None:
        """Bring an answer to the scheduler; what nobody has served yet is served now."""
        self.questions.remove(question)
        if question.answer is None:
            self.serve(question)
        assert question.answer is not None
        self.tell(question.answer)

    def edit(self, issue: Issue, **changes: object) -> None:
        """Change an issue in the tracker."""
        fields = {name: getattr(issue, name) for name in issue.__struct_fields__} | changes
        self.issues[issue.id] = Issue(**fields)

    def take_turn(self, run_id: RunId) -> None:
        """Let a worker take a turn; before the first one it prepares."""
        worker = self.workers[run_id]
        if not worker.prepared:
            self.prepare(run_id)
        worker.turns += 1
        self.tell(ev.TurnStarted(run_id, worker.turns))

    def use(self, run_id: RunId, more: Spending) -> None:
        """Let a worker's agent tell that it has used more, and by which tools."""
        spent = self.spent.use(run_id, self.workers[run_id].start.issue.id, more, self.now)
        acted = Activity(tool_uses={"shell": self.workers[run_id].turns})
        self.tell(ev.SpendingReported(run_id, spent))
        self.tell(ev.AgentActed(run_id, acted))

    def launch(self, run_id: RunId) -> None:
        """Let a worker's agent be launched."""
        self.tell(ev.ProcessLaunched(run_id, ProcessIdentity(pid=7, started_at=self.now)))
        worker = self.workers[run_id]
        issue_id, host, path = worker.issue.id, worker.start.host, f"/w/{worker.issue.id}"
        birth = self.births[host, path]
        self.sessions[f"of {run_id}"] = (issue_id, worker.agent, host, path, birth)
        self.tell(ev.AgentSessionKnown(run_id, worker.agent, f"of {run_id}"))
        self.tell(ev.ContainerMade(run_id, "tools:7", f"sha256:{run_id}"))

    def prepare(self, run_id: RunId, *, lost: bool = False) -> None:
        """Let a worker move its issue and have its workspace, made anew where it was lost."""
        worker = self.workers[run_id]
        worker.prepared = True
        issue, host = worker.issue, worker.start.host
        target, present = self.policy.in_progress_state, self.issues.get(issue.id)
        if target and present and present.state == issue.state != target:
            self.edit(present, state=target)
            worker.issue = self.issues[issue.id]
            self.tell(ev.IssueMoved(run_id, worker.issue, True))
        path = f"/w/{issue.id}"
        known = KnownWorkspace(issue_id=issue.id, identifier=issue.identifier, host=host, path=path)
        new = lost or (host, path) not in self.disk.workspaces
        if new:
            self.births[host, path] += 1
            self.blank.add((host, issue.id))
        self.tell(ev.WorkspaceMade(run_id, known, new))

    def reread(self, run_id: RunId) -> None:
        """Let a worker read its issue again, as after a turn."""
        worker = self.workers[run_id]
        present = self.issues.get(worker.issue.id)
        if present is not None:
            worker.issue = present
            if self.policy.is_active(present):
                worker.left_at = None
            self.tell(ev.IssueMoved(run_id, present))

    def leave(self, run_id: RunId, report: RunReport) -> None:
        """Let a worker be gone."""
        worker = self.workers.pop(run_id)
        report = replace(report, spent=self.spent.of(run_id))
        issue_id, streak = worker.start.issue.id, worker.start.streak
        if not (isinstance(report.end, Failed) and report.end.unreached):
            self.blank.discard((worker.start.host, issue_id))
        match report.end:
            case Failed() if worker.start.host != LOCAL and (
                report.end.unreached or report.end.kind is ErrorKind.AGENT_NOT_FOUND
            ):
                self.expected_attempt[issue_id] = streak.failures
                self.not_before.pop(issue_id, None)
            case Failed(kind=ErrorKind.USAGE_LIMIT) if worker.stopping in GOES_ON:
                self.expected_attempt[issue_id] = streak.failures
                self.not_before.pop(issue_id, None)
            case Failed() if worker.stopping in GOES_ON:
                attempt = streak.failures + 1
                self.expected_attempt[issue_id] = attempt
                self.not_before[issue_id] = self.now + backoff(attempt, self.policy)
            case Finished() if worker.stopping in GOES_ON:
                self.expected_attempt[issue_id] = 0
                self.not_before.pop(issue_id, None)
            case _:
                self.not_before.pop(issue_id, None)
        claim, sessions = self.claims()[issue_id], self._sessions(issue_id)
        if self._met_limit(report):
            assert isinstance(report.end, Failed)
            self._meet_limit(run_id, worker, report.end)
        self.tell(ev.WorkerExited(run_id, report))
        if issue_id in self.disk.retries and self._met_limit(report) and worker.turns:
            assert self._sessions(issue_id) == sessions - 1, "a usage limit cost a session"
        departed = isinstance(claim, Stopping) and claim.reason in DEPARTED
        if report.end == Stopped(completed=True) and departed:
            run = self.disk.run(run_id)
            assert run is not None
            assert run.status is RunStatus.SUCCEEDED, "work done was disowned"
        if issue_id not in self.disk.retries:
            self.expected_attempt.pop(issue_id, None)
            self.not_before.pop(issue_id, None)

    def _met_limit(self, report: RunReport) -> bool:
        return isinstance(report.end, Failed) and report.end.kind is ErrorKind.USAGE_LIMIT

    def _meet_limit(self, run_id: RunId, worker: Worker, end: Failed) -> None:
        seconds = None
        if end.resets_at is not None:
            seconds = end.resets_at.timestamp() - EPOCH - self.now
        self.tell(ev.UsageLimitMet(run_id, worker.account, end.message, end.resets_at, seconds))

    def pass_limit(self, account: str) -> None:
        """Let the time of day come at which a limit ends."""
        self.limits.passed(account, self.now)
        self.tell(ev.UsageLimitPassed(account))

    def retry(self, issue_id: IssueId) -> None:
        """Let an operator ask for a retry."""
        if issue_id in self.disk.retries or issue_id in self.disk.holds:
            claim = self.claims().get(issue_id)
            if isinstance(claim, Waiting | Held):
                self.expected_attempt.pop(issue_id, None)
                self.not_before.pop(issue_id, None)
        self.tell(ev.RetryAsked(issue_id, 1))

    def claims(self) -> dict[IssueId, Claim]:
        """Return the scheduler's claims."""
        return dict(self.scheduler.snapshot(self.now).claims)

    def check(self) -> None:
        """The invariants: what must hold after every event, whatever came before."""
        if (news := (self.lives, self.events)) == self._checked:
            return
        self._checked = news
        state = self.scheduler._state
        assert_derived(state)
        held, waits, runs = set(), set(), set()
        asked = {q.decision.token for q in self.questions if isinstance(q.decision, do.Refresh)}
        for issue_id, claim in state.claims.items():
            match claim:
                case Starting() | Running() | Stopping():
                    runs.add(claim.run_id)
                    assert self.disk.under_way[claim.run_id].turns == claim.turns
                    if isinstance(claim, Stopping) and claim.reason is StopReason.OPERATOR:
                        held.add(issue_id)
                    worker = self.workers[claim.run_id]
                    assert isinstance(claim, Stopping) == (worker.stopping is not None)
                    left_at = worker.left_at if worker.stopping is None else None
                    assert left_at is None or self.now < left_at + self.policy.inactive_grace, (
                        "not stopped"
                    )
                case HandingOff(stopped=True):
                    held.add(issue_id)
                case Waiting() | HandingOff():
                    waits.add(issue_id)
                    self._check_wait(claim)
                case Rechecking(token=token, waited=waited):
                    assert token in asked, "a recheck that nobody answers"
                    if waited is not None:
                        waits.add(issue_id)
                        self._check_wait(waited)
                case Held():
                    held.add(issue_id)
                    hold = self.disk.holds[issue_id]
                    assert (hold.reason, hold.detail) == (claim.reason, claim.detail)
                    assert (hold.issue, hold.baseline_final) == (claim.issue, claim.baseline_final)
                    assert hold.handoff_state == claim.handoff_state
                case Cleaning(busy=busy):
                    assert not busy or any(
                        isinstance(q.decision, do.CleanWorkspace)
                        and q.decision.issue.id == issue_id
                        for q in self.questions
                    )
        assert runs == self.workers.keys()
        assert waits == self.disk.retries.keys(), "waits in memory and on disk differ"
        assert held == self.disk.holds.keys(), "holds in memory and on disk differ"
        assert state.sessions == self.disk.sessions
        self.spent.check(self.policy, state.claims.values(), state.ledger, self.disk.spent)
        known = {(w.host, w.path): w for i in state.workspaces for w in state.workspaces.of(i)}
        assert known == self.disk.workspaces, "workspaces in memory and on disk differ"
        for place, workspace in known.items():
            since, at = state.workspaces.unsaved_since(workspace), self.disk.unsaved.get(place)
            assert (since is None) == (at is None), "unsaved work in memory and on disk differs"
            assert since is None or at is None or abs(EPOCH + since - at) < 0.001
        self.asking.check(state.questions, state.claims, self.disk, self.born_at, EPOCH)
        assert state.paused == self.disk.paused
        assert self.scheduler.drained == (self.draining and not self.workers)
        if not self.draining:
            polling = any(isinstance(q.decision, do.Poll) for q in self.questions)
            assert polling == state.polling
            assert polling or self.scheduler.wakeup_at() < math.inf

    def _check_wait(self, claim: Waiting | HandingOff) -> None:
        """See that a wait is on record as it is in memory; its time may have passed in a crash."""
        wait = self.disk.retries[claim.issue.id]
        due_at = max(wait.due_at - EPOCH, self.born_at)
        hastened = isinstance(claim, HandingOff) and claim.refusals and claim.due_at <= due_at
        assert hastened or abs(due_at - claim.due_at) < 1e-3, "another due time on disk"
        assert wait.streak.failures == claim.streak.failures
        if isinstance(claim, HandingOff):
            assert (wait.kind, wait.tries) == (WaitKind.HANDOFF, claim.tries)
        else:
            assert (wait.kind, wait.trigger) == (claim.kind, claim.trigger)

    def replay(self) -> None:
        """Assert that the life so far, as it is recorded, gives the same decisions again."""
        self.recorded.assert_replayed(self.scheduler, self.now)


def _runs(claim: Claim, run_id: RunId) -> bool:
    return isinstance(claim, Starting | Running | Stopping) and claim.run_id == run_id
