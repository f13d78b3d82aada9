"""A day, or some, of pull requests under watch, drawn by lot from a seed."""

from __future__ import annotations

import heapq
import math
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from msgspec.structs import replace

from sortie import facts
from sortie.config.reactions import ChecksReaction, ReactionsSettings
from sortie.model import (
    ErrorKind,
    Failed,
    Finish,
    Finished,
    Issue,
    IssueId,
    RunReport,
    RunSummary,
    Stage,
    TrackerErrorKind,
)
from sortie.model.deliveries import Delivery
from sortie.model.pull_requests import Note, Review, ReviewThread
from sortie.model.watches import Watch
from sortie.orchestrator import pull_requests
from sortie.orchestrator.recall import recall
from sortie.scheduler import Decision, Event, Policy, Record, RunIds, Scheduler
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.store.record_reader import read_recovered
from tests.scheduler.driver import issue
from tests.sim.disk import Disk
from tests.sim.recording import RecordedLife
from tests.sim.watched.forge import CHECKS, FakeForge, Fault, Request
from tests.store.inline import memory_database

DAY = 86_400.0
EPOCH = 1_780_000_000.0
REACTIONS = ReactionsSettings.model_validate(
    {
        "watch_days": 1,
        "checks": {"max_runs": 2},
        "review": {"max_runs": 3},
        "conflicts": {},
        "commands": {},
        "merge": {},
        "merged": {"state": "Done"},
        "closed": {"state": "Dropped"},
    }
)
LIMITS = {"checks": 2, "review": 3, "conflicts": 2, "commands": 10}


class WatchedDay:
    """The world of one seed: a scheduler with its disk, a tracker, a forge, people, and time."""

    def __init__(self, seed: int) -> None:
        self.luck = random.Random(seed)
        self.now = 0.0
        self.forge = FakeForge(self.luck, lambda: self.now)
        reruns = ChecksReaction(max_runs=2, rerun=self.luck.random() < 0.5)
        settings = REACTIONS.model_copy(update={"checks": reruns})
        in_progress = "Doing" if self.luck.random() < 0.5 else None
        self.policy = Policy(
            active_states=frozenset({"todo", "doing"}),
            terminal_states=frozenset({"done", "dropped"}),
            handoff_state="Review",
            in_progress_state=in_progress,
            has_repository=True,
            max_concurrent_agents=3,
            poll_interval=300.0,
            reactions=settings,
        )
        self.tracker: dict[IssueId, Issue] = {}
        self.disk = Disk(memory_database())
        self.skew = 0.0
        self.lives = 0
        self.reached: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._queue: list[tuple[float, int, int | None, Callable[[], None]]] = []
        self._count = 0
        self._numbers = 0
        self._watches: dict[IssueId, Watch] = {}
        self._acted: dict[IssueId, set[str]] = {}
        self._given: set[IssueId] = set()
        self._untrusted: set[str] = set()
        self._context: Any = SimpleNamespace(
            run_context_for=lambda _host, _rule: SimpleNamespace(
                remote=SimpleNamespace(forge=self.forge),
                redact=lambda text: text,
                settings=SimpleNamespace(
                    reactions=settings, tracker=SimpleNamespace(handoff_state="Review")
                ),
            ),
            tracker=self,
            publish=self._hear,
            wall=lambda: EPOCH + self.now,
        )
        self.scheduler: Scheduler
        self.boot()

    def _hear(self, fact: Any) -> None:
        if isinstance(fact, facts.AdapterCrashed):
            self.wrong.append(fact.traceback)

    # The daemon.

    def boot(self) -> None:
        """Begin a life."""
        self.lives += 1
        recovered = read_recovered(self.disk._database)
        wall = EPOCH + self.now + self.skew
        memory, records = recall(recovered, self.policy, now=self.now, wall=wall)
        for record in records:
            self.disk.write(record, wall)
        self.scheduler = Scheduler(
            self.policy,
            now=self.now,
            new_run_id=RunIds(UUID(int=self.lives)),
            memory=memory,
            epoch=wall - self.now,
        )
        self.recorded = RecordedLife(self.lives)

    def crash(self) -> None:
        """Kill the daemon: nothing that was under way answers."""
        self.reached["crash"] += 1
        self.replay()
        self._queue = [entry for entry in self._queue if entry[2] is None]
        heapq.heapify(self._queue)
        self.boot()

    def replay(self) -> None:
        """See that the life so far, as it is recorded, gives the same decisions again."""
        self.recorded.assert_replayed(self.scheduler, self.now)

    def later(self, seconds: float, do_it: Callable[[], None], *, ours: bool = False) -> None:
        """Have something happen in a while; what is ``ours`` dies with the daemon."""
        self._count += 1
        life = self.lives if ours else None
        heapq.heappush(self._queue, (self.now + seconds, self._count, life, do_it))

    def tell(self, event: Event) -> None:
        """Give the scheduler an event, and do what it decides: records first."""
        decisions = self.recorded.decide(self.scheduler, event, self.now)
        for decision in decisions:
            if isinstance(decision, Record):
                self._check_record(decision)
                self.disk.write(decision, EPOCH + self.now + self.skew)
        for decision in decisions:
            if not isinstance(decision, Record):
                self.reached[type(decision).__name__] += 1
                self._perform(decision)

    def _check_record(self, record: Record) -> None:
        self.reached[type(record).__name__] += 1
        if isinstance(record, rec.ForgetWatch):
            self._watches.pop(record.issue_id, None)
        if not isinstance(record, rec.RecordWatch):
            return
        issue_id, watch = record.issue.id, record.watch
        before = self._watches.get(issue_id)
        if before is not None and before.pull_request.id != watch.pull_request.id:
            before = None
        self._watches[issue_id] = watch
        if before is not None and before.runs and not (watch.runs or watch.former):
            if issue_id not in self._given and before.exhausted is None:
                self.wrong.append(f"{issue_id} gets its budget back from nobody")
            self._given.discard(issue_id)
            self._acted[issue_id] = set()
        if watch.reaction is None or (before is not None and before.reaction is not None):
            return
        acted = self._acted.setdefault(issue_id, set())
        for cause in watch.reaction.causes:
            self.reached[cause.split(":")[0]] += 1
            if cause in acted and not cause.startswith("label:"):
                self.wrong.append(f"{cause} is acted on twice")
            if cause.partition(":")[2] in self._untrusted:
                self.wrong.append(f"{cause} is acted on, of somebody without the right to it")
            acted.add(cause)
        for kind, count in watch.runs.items():
            if count > LIMITS[kind]:
                self.wrong.append(f"{count} runs for {kind}")

    def _perform(self, decision: Decision) -> None:
        luck = self.luck
        match decision:
            case do.Poll():
                found = [i for i in self.tracker.values() if self.policy.is_active(i)]
                event = ev.CandidatesFetched(tuple(found))
                self.later(luck.random(), lambda: self.tell(event), ours=True)
            case do.Refresh(token, ids):
                known = tuple(self.tracker[i] for i in sorted(ids) if i in self.tracker)
                refreshed = ev.IssuesRefreshed(token, ids, known)
                self.later(luck.random(), lambda: self.tell(refreshed), ours=True)
            case do.HandOff(token, handed, state):
                self.later(luck.random(), lambda: self._hand_off(token, handed, state), ours=True)
            case do.LookAtPullRequests():
                self._effect(pull_requests.look, decision)
            case do.RunErrand():
                self._effect(pull_requests.run_errand, decision)
            case do.MergePullRequest():
                self._effect(pull_requests.merge, decision)
            case do.StartWorker():
                self._start(decision)
            case do.StopWorker(run_id):
                self.later(5, lambda: self._stopped(run_id), ours=True)
            case do.CleanWorkspace(cleaned, workspaces, _):
                done = ev.WorkspaceCleaned(cleaned.id, workspaces)
                self.later(1, lambda: self.tell(done), ours=True)
            case _:
                pass

    def _effect(self, effect: Callable[..., Coroutine[Any, Any, None]], question: Any) -> None:
        """Perform an effect in a moment; its answer comes a moment later."""

        def perform() -> None:
            answers: list[Event] = []
            coroutine = effect(self._context, question, answers.append)
            try:
                coroutine.send(None)
            except StopIteration:
                pass
            except Fault as exc:
                self.wrong.append(str(exc))
                return
            (answer,) = answers
            self.later(self.luck.random() * 3, lambda: self.tell(answer), ours=True)

        self.later(self.luck.random() * 3, perform, ours=True)

    # The tracker.

    def _hand_off(self, token: int, handed: Issue, state: str) -> None:
        present, kind = self.tracker[handed.id], None
        if present.state not in (handed.state, state):
            kind = TrackerErrorKind.CONFLICT
        else:
            self.tracker[handed.id] = replace(present, state=state)
        self.tell(ev.TransitionAnswered(handed.id, token, kind, "moved" if kind else "", state))

    async def fetch_by_ids(self, ids: Any) -> Any:
        """See Tracker."""
        return SimpleNamespace(issues=[self.tracker[i] for i in ids], failed={})

    async def transition(self, moved: Issue, state: str) -> None:
        """See Tracker."""
        self.tracker[moved.id] = replace(self.tracker[moved.id], state=state)

    async def complete_move(self, moved: Issue) -> None:
        """See Tracker."""

    # Runs.

    def _start(self, start: do.StartWorker) -> None:
        def begin() -> None:
            if self.policy.in_progress_state is not None:
                moved = replace(self.tracker[start.issue.id], state=self.policy.in_progress_state)
                self.tracker[moved.id] = moved
                self.tell(ev.IssueMoved(start.run_id, moved, True))
            self.tell(ev.TurnStarted(start.run_id, 1))
            self.later(self.luck.uniform(20, 900), work, ours=True)

        def work() -> None:
            if self.luck.random() < 0.1:
                broken = Failed(kind=ErrorKind.PORT_EXIT, message="it broke")
                self.tell(ev.WorkerExited(start.run_id, RunReport(end=broken, turns=1)))
                return
            request = self._request_of(start.issue.id)
            pushed = self._push(start, request)
            proven = replace(delivery_of(pushed), stage=Stage.PROVEN)
            self.tell(ev.DeliveryStepTaken(start.run_id, proven))
            self.later(self.luck.random() * 90, lambda: open_it(pushed), ours=True)

        def delivery_of(request: Request) -> Delivery:
            return Delivery(
                branch=request.branch,
                base="main",
                host="local",
                stage=Stage.DELIVERED,
                finish=Finish.DONE,
                head=request.head.name,
                files_changed=1,
                pull_request=self.forge.shown(request),
            )

        def open_it(request: Request) -> None:
            if request.id not in self.forge.requests:
                self.forge.requests[request.id] = request
            self.tell(ev.DeliveryStepTaken(start.run_id, delivery_of(request)))
            report = RunReport(
                end=Finished(finish=Finish.DONE), turns=1, summary=RunSummary(answer="Done so.")
            )
            self.later(1, lambda: self.tell(ev.WorkerExited(start.run_id, report)), ours=True)

        self.later(2, begin, ours=True)

    def _stopped(self, run_id: Any) -> None:
        from sortie.model import Stopped

        if any(claim.run_id == run_id for claim in self.scheduler.snapshot(self.now).worked):
            self.tell(ev.WorkerExited(run_id, RunReport(end=Stopped(), turns=1)))

    def _request_of(self, issue_id: IssueId) -> Request:
        for request in self.forge.requests.values():
            if request.branch == f"sortie/{issue_id}" and request.state == "open":
                return request
        self._numbers += 1
        return Request(number=self._numbers, branch=f"sortie/{issue_id}", commits=[])

    def _push(self, start: do.StartWorker, request: Request) -> Request:
        reaction, luck = start.reaction, self.luck
        if not request.commits:
            fails = frozenset(name for name in CHECKS if luck.random() < 0.4)
            self.forge.push(request, fails=fails)
        elif reaction is not None and luck.random() < 0.75:
            fails = frozenset() if luck.random() < 0.7 else request.head.fails
            base = self.forge.base if reaction.conflicts else None
            self.forge.push(request, fails=fails, base=base)
        return request

    # People.

    def people(self) -> None:
        """Have somebody do something, now and then."""
        self.later(self.luck.expovariate(1 / 400), self.people)
        open_ones = [r for r in self.forge.requests.values() if r.state == "open"]
        if not open_ones:
            return
        request, luck = self.luck.choice(open_ones), self.luck
        act = luck.choice(
            (
                *("approve",) * 6,
                *("object", "thread", "thread", "resolve", "resolve", "resolve"),
                *("command", "stranger", "bot", "own", "push_by_person", "base", "edit", "delete"),
                *("label", "close", "merge", "back", "todo"),
            )
        )
        self.reached[act] += 1
        getattr(self, f"_{act}")(request)

    def _approve(self, request: Request) -> None:
        who = self.luck.choice(("ann", "bob"))
        review = Review(id=self.forge.note_id(), author=who, state="approved")
        request.reviews[who] = review

    def _object(self, request: Request) -> None:
        who = self.luck.choice(("ann", "bob"))
        note_id = self.forge.note_id()
        request.reviews[who] = Review(
            id=note_id, author=who, state="changes_requested", body="Rename it."
        )

    def _thread(self, request: Request) -> None:
        note = Note(id=self.forge.note_id(), author="ann", body="Why so?")
        place = ReviewThread(id=f"t{note.id}", path="a.py", line=3, resolved=False, notes=(note,))
        request.threads.append(place)

    def _resolve(self, request: Request) -> None:
        request.threads = [replace(thread, resolved=True) for thread in request.threads]

    def _command(self, request: Request) -> None:
        word = self.luck.choice(("fix it", "retry", "stop"))
        self._given.add(_issue_of(request))
        note = Note(id=self.forge.note_id(), author="bob", body=f"/sortie {word}")
        request.comments.append(note)

    def _stranger(self, request: Request) -> None:
        self._by(request, "mallory", bot=False)

    def _bot(self, request: Request) -> None:
        self._by(request, "bob" if self.luck.random() < 0.3 else "some-bot", bot=True)

    def _by(self, request: Request, author: str, *, bot: bool) -> None:
        names = [self.forge.note_id() for _ in range(3)]
        self._untrusted.update(names)
        request.comments.append(Note(id=names[0], author=author, body="/sortie fix x", bot=bot))
        note = Note(id=names[1], author=author, body="Do that.", bot=bot)
        request.threads.append(ReviewThread(id=f"t{names[1]}", resolved=None, notes=(note,)))
        request.reviews[f"{author}{bot}"] = Review(
            id=names[2], author=author, state="changes_requested", bot=bot
        )

    def _own(self, request: Request) -> None:
        name = self.forge.note_id()
        self._untrusted.add(name)
        body = "/sortie fix y\n\n<!-- sortie:x:y -->"
        request.comments.append(Note(id=name, author="ann", body=body))

    def _push_by_person(self, request: Request) -> None:
        self._given.add(_issue_of(request))
        self.forge.push(request, fails=frozenset(n for n in CHECKS if self.luck.random() < 0.3))

    def _back(self, request: Request) -> None:
        """Somebody goes back to an earlier head by force."""
        if len(request.commits) > 1:
            self._given.add(_issue_of(request))
            request.commits.append(request.commits.pop(0))

    def _base(self, request: Request) -> None:
        self.forge.move_base()

    def _edit(self, request: Request) -> None:
        request.comments = [replace(note, body=f"{note.body}!") for note in request.comments]

    def _delete(self, request: Request) -> None:
        if request.comments:
            request.comments.pop(self.luck.randrange(len(request.comments)))
        if request.threads:
            request.threads.pop(self.luck.randrange(len(request.threads)))

    def _label(self, request: Request) -> None:
        request.labels.add("sortie:fix")

    def _close(self, request: Request) -> None:
        request.state = "closed"
        if self.luck.random() < 0.5:
            self.later(30, lambda: self._open_again(request))

    def _open_again(self, request: Request) -> None:
        """As a forge does: not where another one of the branch is open."""
        rivals = [r for r in self.forge.requests.values() if r.branch == request.branch]
        if all(r.state != "open" for r in rivals):
            request.state = "open"

    def _merge(self, request: Request) -> None:
        if self.luck.random() < 0.3:
            request.state = "merged"
            self.forge.move_base()

    def _todo(self, request: Request) -> None:
        issue_id = _issue_of(request)
        if self.tracker[issue_id].state == "Review":
            self.tracker[issue_id] = replace(self.tracker[issue_id], state="Todo")

    # Time.

    def live(self, until: float) -> None:
        """Let time pass."""
        steps = 0
        while self.now < until:
            steps += 1
            if steps > 200_000:
                self.wrong.append("time stands still")
                return
            due = self._queue[0][0] if self._queue else math.inf
            wakeup = self.scheduler.wakeup_at()
            at = min(due, wakeup, until)
            if at < self.now and wakeup < self.now - 1e-6 and wakeup <= due:
                at = self.now
            self.now = max(self.now, at)
            if due <= self.now:
                _, _, life, do_it = heapq.heappop(self._queue)
                if life is None or life == self.lives:
                    do_it()
            elif self.now < until:
                self.now = max(self.now, wakeup) + 1e-6
                self.tell(ev.TimePassed())
            if self.wrong:
                return


def _issue_of(request: Request) -> IssueId:
    return IssueId(request.branch.removeprefix("sortie/"))


def live_through(seed: int) -> WatchedDay:
    """Live some hours of trouble, then quiet days in which everything has to come to its end."""
    day = WatchedDay(seed)
    luck = day.luck
    for number in range(luck.randrange(1, 7)):
        new = issue(f"i{number}", "Todo")
        day.tracker[new.id] = new
    day.forge.trouble = luck.choice((0.0, 0.1, 0.3))
    day.later(1, day.people)

    def queue() -> None:
        day.forge.merge_queued()
        day.later(30, queue)

    day.later(30, queue)
    for _ in range(luck.randrange(0, 12)):
        day.later(luck.uniform(0, DAY / 3), day.crash)
    if luck.random() < 0.2:
        day.later(luck.uniform(0, DAY / 3), lambda: setattr(day, "skew", luck.uniform(-300, 300)))
    day.live(DAY / 3)
    day._queue = [entry for entry in day._queue if entry[3] != day.people]
    heapq.heapify(day._queue)
    day.forge.trouble = 0.0
    day.live(DAY * 2.5)
    day.replay()
    if not day.wrong:
        _require_an_end(day)
    return day


def _require_an_end(day: WatchedDay) -> None:
    watches = read_recovered(day.disk._database).watches
    left = [watch.pull_request.number for _, watch in watches if not watch.former]
    if left:
        day.wrong.append(f"still watched at the end: {left}")
    newest = {request.branch: request for request in day.forge.requests.values()}
    for request in newest.values():
        issue_id = _issue_of(request)
        if request.id in day.forge.merged_by_us:
            if day.tracker[issue_id].state != "Done":
                day.wrong.append(f"{request.id} was merged, and {issue_id} is not done")
            if not request.branch_deleted:
                day.wrong.append(f"{request.id} was merged, and its branch is there")
    unfinished = day.disk.under_way
    if unfinished:
        day.wrong.append(f"runs that never ended: {list(unfinished)}")
