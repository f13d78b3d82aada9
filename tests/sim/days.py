"""A plausible day, as a seed: what trackers, agents, people and machines really do, at random."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import accumulate
from random import Random

from msgspec.structs import replace

from sortie.config.questions import QuestionsSettings
from sortie.model import (
    LOCAL,
    Blocker,
    Comment,
    ErrorKind,
    Failed,
    Finish,
    Finished,
    Issue,
    IssueId,
    RunId,
    RunReport,
    RunStatus,
    Spending,
    Stopped,
    TrackerErrorKind,
)
from sortie.model.asked_questions import QuestionAnswer
from sortie.model.questions import PERMISSION_OPTIONS, AnswerWay, Question
from sortie.scheduler import Policy
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.budgets import Allowance
from tests.sim.world import EPOCH, World

IDS = [IssueId(c) for c in "abcdefgh"]
TOLD_WAYS = [AnswerWay.COMMAND, AnswerWay.DASHBOARD]
STATES = ["todo", "doing", "review", "done"]
FAILURES = [
    (ErrorKind.PORT_EXIT, RunStatus.FAILED, 10),
    (ErrorKind.TURN_FAILED, RunStatus.FAILED, 4),
    (ErrorKind.RESPONSE_ERROR, RunStatus.FAILED, 3),
    (ErrorKind.HOOK_FAILED, RunStatus.FAILED, 2),
    (ErrorKind.TURN_TIMEOUT, RunStatus.TIMED_OUT, 4),
    (ErrorKind.TURN_STALLED, RunStatus.STALLED, 4),
    (ErrorKind.TURN_CANCELLED, RunStatus.CANCELLED, 2),
    (ErrorKind.AGENT_NOT_FOUND, RunStatus.FAILED, 2),
    (ErrorKind.INVALID_WORKSPACE_CWD, RunStatus.FAILED, 1),
]
FINISHES = [
    (Finish.TURNS_USED, 12),
    (Finish.LEFT_ACTIVE, 3),
    (Finish.GONE, 1),
    (Finish.UNREADABLE, 2),
    (Finish.REVIEW, 3),
    (Finish.DONE, 2),
    (Finish.BLOCKED, 2),
    (Finish.ASKED, 6),
]
ANSWERS = ["1", "2", "the second", "yes", "neither", " "]


def some_policy(dice: Random) -> Policy:
    """Return settings that a team might have."""
    terminal = dice.choice([{"done"}, {"done"}, {"done"}, {"shipped"}, {"done", "review"}])
    agent = dice.choice(["kiro", "kiro", "another"])
    return Policy(
        active_states=frozenset({"todo", "doing"}),
        terminal_states=frozenset(terminal),
        required_labels=dice.choice([frozenset(), frozenset(), frozenset({"ready"})]),
        in_progress_state=dice.choice([None, "doing"]),
        handoff_state=None if "review" in terminal else dice.choice([None, "review", "review"]),
        comment_on_completion=dice.random() < 0.5,
        comment_on_failure=dice.random() < 0.5,
        max_sessions=dice.choice([0, 0, 3, 6]),
        per_issue=dice.choice(
            [Allowance(), Allowance(), Allowance(tokens=300), Allowance(credits=2.0, cost_usd=1.5)]
        ),
        per_day=dice.choice([Allowance(), Allowance(), Allowance(credits=6.0)]),
        max_concurrent_agents=dice.randint(1, 4),
        max_by_state=dice.choice([{}, {"doing": 1}, {"todo": 2, "doing": 2}]),
        max_retry_backoff=dice.choice([60.0, 300.0]),
        agent=agent,
        account=agent,
        hosts=dice.choice([(LOCAL,), (LOCAL,), ("east", "west"), ("east", "west", "north")]),
        max_per_host=dice.choice([None, None, 1, 2]),
        keep_unsaved=dice.choice([0.0, 3000.0, 20_000.0]),
        questions=dice.choice(
            [
                None,
                QuestionsSettings(),
                QuestionsSettings(timeout_ms=600_000),
                QuestionsSettings(on_timeout="hold"),
            ]
        ),
    )


class Day:
    """One seed's worth of events."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.dice = Random(seed)
        self.world = World(some_policy(self.dice))
        actions: list[tuple[Callable[[], None], int]] = [
            (self.world.next_deadline, 25),
            (self._hurry, 4),
            (self._edit, 9),
            (self._lose, 1),
            (self._meddle, 3),
            (self._work, 16),
            (self._forget_to_push, 4),
            (self._spend, 8),
            (self._midnight, 1),
            (self._leave, 12),
            (self._serve, 12),
            (self._answer, 34),
            (self._limit, 3),
            (self._tell_people, 5),
            (self._reload, 1),
            (self._operate, 2),
            (self._hinder, 1),
            (self._disturb_host, 2),
            (self._crash, 1),
            (self._restart, 1),
        ]
        self._actions = [action for action, _ in actions]
        self._weights = list(accumulate(weight for _, weight in actions))

    def step(self) -> None:
        """Let one thing happen, and check the invariants."""
        self.dice.choices(self._actions, cum_weights=self._weights)[0]()
        self.world.check()

    def _hurry(self) -> None:
        self.world.advance(self.dice.choice([0.01, 1.0, 5.0, 60.0, 4000.0]))

    def _edit(self) -> None:
        issue_id, dice = self.dice.choice(IDS), self.dice
        old = self.world.issues.get(issue_id)
        if old is not None and dice.random() < 0.3:
            self.world.edit(old, description=str(dice.random()))
            return
        blockers = []
        if dice.random() < 0.2:
            other = dice.choice(IDS)
            known = self.world.issues.get(other)
            blockers = [Blocker(identifier=other.upper(), state=known.state if known else None)]
        state = dice.choices(STATES, [8, 2, 2, 3])[0]
        self.world.issues[issue_id] = Issue(
            id=issue_id,
            identifier=issue_id.upper(),
            title=f"Mend {issue_id}",
            state=dice.choice([state, f" {state.title()} "]),
            priority=dice.choice([None, 1, 2, 9]),
            labels=dice.choice([(), ("Ready",), ("ready", "x")]),
            blocked_by=tuple(blockers),
            created_at=self._some_age(),
        )

    def _replay(self) -> None:
        """Have the life that ends now decided over again."""
        self.world.replay()

    def _some_age(self) -> datetime:
        """Return when an issue was made: years ago, or among the waits of today."""
        today = EPOCH + self.dice.uniform(0, self.world.now + 60)
        return datetime.fromtimestamp(self.dice.choice([self.dice.randint(0, 10), today]), UTC)

    def _meddle(self) -> None:
        """Move or lose an issue under its run."""
        run_id = self._some_run()
        issue = self.world.issues.get(self.world.workers[run_id].issue.id) if run_id else None
        if issue is None:
            return
        if self.dice.random() < 0.3:
            del self.world.issues[issue.id]
        else:
            self.world.edit(issue, state=self.dice.choice(["done", "review", "todo"]))
        self.world.tell(ev.RefreshRequested())

    def _lose(self) -> None:
        self.world.issues.pop(self.dice.choice(IDS), None)

    def _some_run(self) -> RunId | None:
        runs = list(self.world.workers)
        return self.dice.choice(runs) if runs else None

    def _work(self) -> None:
        run_id = self._some_run()
        if run_id is None or self.world.workers[run_id].stopping:
            return
        worker = self.world.workers[run_id]
        if not worker.prepared and self.dice.random() < 0.3:
            self.world.prepare(run_id, lost=self.dice.random() < 0.2)
        elif worker.turns and self.dice.random() < 0.6:
            self.dice.choice([self.world.reread, self.world.reread, self.world.launch])(run_id)
        else:
            self.world.take_turn(run_id)

    def _spend(self) -> None:
        run_id, dice = self._some_run(), self.dice
        if run_id is not None and self.world.workers[run_id].turns:
            cost = dice.choice([None, 0.25, 1.0])
            more = Spending(
                output_tokens=dice.choice([None, 100, 200]),
                credits=dice.choice([None, 0.5, 1.5]),
                cost_usd=cost,
                estimated_usd=dice.choice([None, cost]),
            )
            self.world.use(run_id, more)

    def _midnight(self) -> None:
        self.world.begin_day(1)

    def _leave(self) -> None:
        run_id = self._some_run()
        if run_id is not None:
            self.world.leave(run_id, self._report(run_id))

    def _report(self, run_id: RunId) -> RunReport:
        worker, dice = self.world.workers[run_id], self.dice
        if worker.stopping is not None and dice.random() < 0.7:
            completed = worker.turns > 0 and dice.random() < 0.3
            return RunReport(end=Stopped(completed=completed), turns=worker.turns)
        if dice.random() < 0.05:
            return RunReport(end=self._limited(), turns=worker.turns)
        if dice.random() < 0.4:
            kind, status, _ = dice.choices(FAILURES, [w for *_, w in FAILURES])[0]
            unreached = worker.turns == 0 and worker.start.host != LOCAL and dice.random() < 0.5
            failed = Failed(kind=kind, message="it broke", status=status, unreached=unreached)
            return RunReport(end=failed, turns=worker.turns)
        finish, _ = dice.choices(FINISHES, [w for _, w in FINISHES])[0]
        question = self._question() if finish is Finish.ASKED else None
        end = Finished(finish=finish, question=question, comments_before=len(worker.issue.comments))
        return RunReport(end=end, turns=worker.turns)

    def _question(self) -> Question:
        dice = self.dice
        options = dice.choice([(), ("the first", "the second")])
        permission = dice.random() < 0.2
        return Question(
            text="Which one?",
            options=PERMISSION_OPTIONS if permission else options,
            default=None if permission else dice.choice([None, *(options or ("none", "none"))]),
            timeout=dice.choice([None, 30.0, 4000.0]),
            permission="p" if permission else None,
        )

    def _tell_people(self) -> None:
        """Have somebody answer a question in some way, or say something where none is open."""
        waiting = [i for i, one in self.world.disk.questions.items() if one.asked.is_open]
        issue_id = self.dice.choice(waiting if waiting and self.dice.random() < 0.8 else IDS)
        text, issue = self.dice.choice(ANSWERS), self.world.issues.get(issue_id)
        self.world.asks_on_ticket = self.dice.random() < 0.8
        if issue is not None and self.dice.random() < 0.7:
            said = Comment(author="kim", body=f"{text}", created_at=self._now())
            self.world.edit(issue, comments=(*issue.comments, said))
        if self.dice.random() < 0.4:
            given = QuestionAnswer(text=text, by="jo", way=self.dice.choice(TOLD_WAYS))
            self.world.tell(ev.AnswerSent(issue_id, given, self.dice.choice([0, 1])))

    def _now(self) -> datetime:
        return datetime.fromtimestamp(EPOCH + self.world.now, UTC)

    def _limited(self) -> Failed:
        """Return the end of a run that met a usage limit, of which something is known or not."""
        seconds = self.dice.choice([None, None, -5.0, 30.0, 700.0, 90_000.0])
        at = None if seconds is None else EPOCH + self.world.now + seconds
        return Failed(
            kind=ErrorKind.USAGE_LIMIT,
            message="limit reached",
            resets_at=None if at is None else datetime.fromtimestamp(round(at), UTC),
        )

    def _error(self) -> TrackerErrorKind | None:
        return self.dice.choice(list(TrackerErrorKind)) if self.dice.random() < 0.15 else None

    def _forget_to_push(self) -> None:
        """Have an agent leave work that is nowhere else in a directory, or push it."""
        if known := list(self.world.disk.workspaces):
            self.world.unsaved ^= {self.dice.choice(known)}

    def _serve(self) -> None:
        """Let the tracker make up an answer that will be old when it is delivered."""
        waiting = [q for q in self.world.questions if q.answer is None]
        if waiting:
            self.world.serve(self.dice.choice(waiting), error=self._error())

    def _answer(self) -> None:
        if self.world.questions:
            question = self.dice.choice(self.world.questions)
            if question.answer is None:
                self.world.serve(question, error=self._error())
            self.world.deliver(question)

    def _limit(self) -> None:
        """Have the tracker refuse a question, and want to be left alone for a while."""
        if self.world.questions:
            question = self.dice.choice(self.world.questions)
            self.world.serve(question, error=TrackerErrorKind.CLOSED)
            pause = self.dice.choice([1.0, 20.0, 90.0, 600.0])
            rests = self.dice.random() < 0.7
            self.world.tell(ev.TrackerPaused(pause) if rests else ev.PollsPutOff(pause))
            self.world.deliver(question)

    def _reload(self) -> None:
        self.world.policy = some_policy(self.dice)
        self.world.tell(ev.PolicyChanged(self.world.policy))

    def _operate(self) -> None:
        issue_id = self.dice.choice(IDS)
        if self.dice.random() < 0.1:
            self.world.pass_limit(self.world.policy.account)
        match self.dice.randrange(5):
            case 0:
                self.world.tell(ev.StopAsked(issue_id))
            case 1 | 2:
                self.world.retry(issue_id)
            case 3:
                self.world.tell(ev.PauseAsked(self.dice.random() < 0.3))
            case _:
                self.world.tell(ev.RefreshRequested(self.dice.choice([0, 1])))

    def _hinder(self) -> None:
        self.world.hindrance = self.dice.choice([None, None, "kiro-cli was not found"])

    def _disturb_host(self) -> None:
        host = self.dice.choice(self.world.policy.hosts)
        if self.dice.random() < 0.5:
            self.world.tell(ev.HostTroubled(host, "connection refused"))
        else:
            self.world.tell(ev.HostReached(host))

    def _crash(self) -> None:
        if self.dice.random() < 0.3:
            self._replay()
            if self.world.workers and self.dice.random() < 0.5:
                issues = [worker.start.issue for worker in self.world.workers.values()]
                again = [issue for issue in issues if issue.id in self.world.disk.crashes]
                crashed = rec.RecordCrash(issue=self.dice.choice(again or issues))
                for _ in range(self.dice.choice([1, 1, 2])):  # two lives that got no further
                    self.world.write(crashed)
            self.world.crash()

    def _restart(self) -> None:
        """Shut down in good order, then start again."""
        if self.dice.random() > 0.3:
            return
        self.world.tell(ev.ShutdownRequested())
        for run_id in list(self.world.workers):
            self.world.check()
            self.world.leave(run_id, self._report(run_id))
        assert self.world.scheduler.drained
        self._replay()
        self.world.questions.clear()
        self.world.boot()

    def go_home(self) -> None:
        """Finish every issue, with all work pushed; nothing may be left behind."""
        world = self.world
        world.unsaved.clear()
        world.hindrance = None
        world.policy = replace(
            world.policy, terminal_states=frozenset({"done"}), per_day=Allowance()
        )
        world.tell(ev.PolicyChanged(world.policy))
        world.tell(ev.PauseAsked(False))
        for issue_id in IDS:
            issue = world.issues.get(issue_id)
            if issue is not None:
                world.edit(issue, state="done")
        for round_ in range(60):
            if round_ == 30:
                world.advance(4000.0)  # so that every known workspace is looked at
            if (at := world.scheduler.wakeup_at()) < math.inf:
                world.advance(max(0.0, at - world.now))
            for question in list(world.questions):
                question.answer = None
                world.deliver(question)
            for run_id in list(world.workers):
                world.leave(run_id, RunReport(end=Stopped()))
            world.check()
        assert world.claims() == {}
        assert world.disk.retries == {}
        assert world.disk.holds == {}
        assert world.disk.under_way == {}
        left = [i for i, _ in world.disk.workspaces if i in world.issues]
        assert left == []
        self._replay()


def live_through(seed: int, steps: int = 1000) -> World:
    """Simulate a day and return the world in the evening."""
    day = Day(seed)
    for _ in range(steps):
        day.step()
    day.go_home()
    return day.world
