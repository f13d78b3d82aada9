"""Questions of agents: asked once, answered once, and what happens without an answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from sortie import facts
from sortie.config.questions import QuestionsSettings
from sortie.model import (
    Comment,
    ErrorKind,
    Failed,
    Finish,
    Finished,
    HoldReason,
    Issue,
    RunEnd,
    RunId,
    RunReport,
    Trigger,
)
from sortie.model.asked_questions import QuestionAnswer, answer_on_ticket
from sortie.model.questions import (
    ALLOW_FOR_ISSUE,
    PERMISSION_OPTIONS,
    AnswerWay,
    Question,
)
from sortie.orchestrator.comment_texts import comment_on_question
from sortie.scheduler import Decision, Event
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Held, Waiting
from tests.scheduler.driver import EPOCH, POLICY, issue, only, starts
from tests.scheduler.lives import A, Lives
from tests.scheduler.parking import edit

ASKING = replace(POLICY, questions=QuestionsSettings(), max_concurrent_agents=1)
WHICH = Question(text="Which one?", options=("this", "that"), default="this", timeout=60.0)
OPEN = replace(WHICH, options=(), default=None)
BY_HAND = QuestionAnswer(text="2", by="jo", way=AnswerWay.COMMAND)


class Asked(Lives):
    """A daemon whose tracker is looked at for answers."""

    def _answer(self, decision: Decision) -> Event | None:
        told = super()._answer(decision)
        if isinstance(decision, do.Refresh) and isinstance(told, ev.IssuesRefreshed):
            read = {i.id: i for i in told.issues if i.id in decision.questions}
            found = {
                i: answer_on_ticket(decision.questions[i], one.comments) for i, one in read.items()
            }
            said = {i: answer for i, answer in found.items() if answer is not None}
            return replace(told, answers=said)
        return told

    def pass_time(self, seconds: float = 0.0) -> list[Decision]:
        """Let time pass, and what is due then be done."""
        return super().pass_time(seconds) + super().pass_time()

    def ask(self, question: Question = WHICH) -> list[Decision]:
        """Let a run of the issue ask, and put the question on the ticket."""
        run_id = self.begin()
        return self.finish(run_id, Finished(finish=Finish.ASKED, question=question))

    def finish(self, run_id: RunId, end: RunEnd) -> list[Decision]:
        """Let a run end after its turn; a question is put on the ticket."""
        decisions = self.tell(ev.WorkerExited(run_id, RunReport(end=end, turns=1)))
        for post in decisions:
            if isinstance(post, do.PostQuestion):
                self.comment(comment_on_question(post.asked, post.deadline), "sortie")
        return self.settle(decisions)

    def comment(self, text: str, author: str = "kim") -> Issue:
        """Let somebody comment on the issue."""
        known = self.tracker[A].comments
        return edit(self, comments=(*known, Comment(author=author, body=text)))

    def answer(self, answer: QuestionAnswer = BY_HAND) -> tuple[do.AnswerCommand, list[Decision]]:
        """Let an operator answer; return what that is told, and all decisions."""
        decisions = self.tell(ev.AnswerSent("A", answer, 7))
        (told,) = (d for d in decisions if isinstance(d, do.AnswerCommand))
        return told, self.settle(decisions)


@pytest.fixture
def asked() -> Asked:
    """A daemon that holds the issue `a` for a question."""
    driver = Asked(ASKING)
    driver.ask()
    assert driver.holds() is HoldReason.QUESTION
    return driver


def test_a_question_is_on_record_before_it_is_asked() -> None:
    """With the hold, and with the end of its run; its slot is free for another issue."""
    driver = Asked(ASKING)
    driver.put(issue("b", state="Todo"))

    decisions = driver.ask()

    kinds = [type(d) for d in decisions]
    post = kinds.index(do.PostQuestion)
    for kind in (rec.RecordExit, rec.RecordQuestion, rec.RecordHold):
        assert kinds.index(kind) < post
    (told,) = only(decisions, facts.QuestionAsked)
    assert isinstance(told, facts.QuestionAsked)
    deadline = datetime.fromtimestamp(EPOCH, UTC) + timedelta(seconds=60)
    assert (told.text, told.options, told.default) == ("Which one?", WHICH.options, "this")
    assert told.deadline == deadline
    assert [start.issue.id for start in starts(decisions)] == ["b"]


def test_a_comment_answers(asked: Asked) -> None:
    """The run that follows has question and answer, and nothing ran before."""
    assert starts(asked.pass_time(30)) == []
    asked.comment("that")

    decisions = asked.pass_time(30)

    (start,) = starts(decisions)
    assert start.answered is not None
    assert start.answered.answer == QuestionAnswer(text="that", by="kim", way=AnswerWay.TICKET)
    (answered,) = only(decisions, facts.QuestionAnswered)
    assert isinstance(answered, facts.QuestionAnswered)
    assert (answered.by, answered.answer, answered.way) == ("kim", "that", AnswerWay.TICKET)
    (retry,) = only(decisions, rec.RecordRetry)
    assert isinstance(retry, rec.RecordRetry)
    assert (retry.trigger, retry.delay) == (Trigger.ANSWER, 0.0)
    assert asked.holds() is None


def test_the_first_answer_counts(asked: Asked) -> None:
    """A later one is refused with who has answered what, also in the daemon's next life."""
    told, _ = asked.answer()
    assert (told.verdict, told.message) == ("done", "the question of A is answered: that")

    again, decisions = asked.answer(replace(BY_HAND, text="1", by="kim"))
    asked.die()
    later, _ = asked.answer(replace(BY_HAND, text="1", by="kim"))

    assert again.verdict == later.verdict == "conflict"
    assert again.message == later.message
    assert again.message.endswith("jo has answered it (command): that")
    assert only(decisions, facts.QuestionAnswered) == []


@pytest.mark.parametrize("text", ["", "   ", "x" * 20_000])
def test_what_is_no_answer(asked: Asked, text: str) -> None:
    """It is refused, and the question stays open."""
    told, _ = asked.answer(replace(BY_HAND, text=text))

    assert told.verdict == "conflict"
    assert asked.holds() is HoldReason.QUESTION


def test_no_question() -> None:
    """An issue without one, and one that is not known."""
    driver = Asked(ASKING)
    driver.begin()

    told, _ = driver.answer()
    unknown = driver.tell(ev.AnswerSent("X", BY_HAND, 1))

    assert (told.verdict, told.message) == (
        "conflict",
        "A has no question that waits for an answer",
    )
    assert [d.verdict for d in unknown if isinstance(d, do.AnswerCommand)] == ["unknown"]


def test_an_answer_while_the_daemon_is_dead(asked: Asked) -> None:
    """It is found by the next one; the deadline goes on meanwhile, and comes second."""
    asked.comment("that")
    asked.comment("this", "jo")
    asked.now += 1000.0
    asked.die()

    (start,) = starts(asked.pass_time())

    assert start.answered is not None
    assert start.answered.answer is not None
    assert (start.answered.answer.text, start.answered.answer.by) == ("that", "kim")


def test_a_default_counts_in_time(asked: Asked) -> None:
    """Not before its deadline, which a restart does not move, and only after another read."""
    asked.now += 50.0
    asked.die()
    assert starts(asked.pass_time()) == []

    early = asked.pass_time(9)
    asked.now += 2.0
    late = asked.tell(ev.TimePassed())
    assert only([*early, *late], facts.QuestionAnswered) == []
    (start,) = starts(asked.settle(late) + asked.pass_time())

    assert start.answered is not None
    assert start.answered.answer is not None
    assert (start.answered.answer.text, start.answered.answer.way) == ("this", AnswerWay.DEFAULT)


@pytest.mark.parametrize(
    ("settings", "question"),
    [(QuestionsSettings(on_timeout="hold"), WHICH), (QuestionsSettings(), OPEN)],
)
def test_without_a_deadline(settings: QuestionsSettings, question: Question) -> None:
    """The issue stays held as long as it takes, and an answer counts still."""
    driver = Asked(replace(ASKING, questions=settings))
    driver.ask(question)

    assert starts(driver.pass_time(1e6)) == []
    driver.comment("this one")

    (start,) = starts(driver.pass_time(30))
    assert start.answered is not None


def test_a_tracker_that_is_down_puts_the_default_off(asked: Asked) -> None:
    """Nobody knows whether an answer is on the ticket."""
    asked.now += 61.0
    late = asked.tell(ev.TimePassed())
    requests = [d for d in late if isinstance(d, do.Refresh) and d.questions]

    for request in requests:
        ids = request.ids
        down = ev.IssuesRefreshed(request.token, ids, (), ids, "down", answered=False)
        assert only(asked.tell(down), facts.QuestionAnswered) == []
    assert requests

    assert len(only(asked.pass_time(60), facts.QuestionAnswered)) == 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"state": "Review"}, "its state changed from Todo to Review"),
        ({"state": "Done"}, "it is Done"),
        ({"description": "all is other now"}, "its content changed"),
    ],
)
def test_a_change_of_the_issue_withdraws_the_question(
    asked: Asked, changes: dict[str, object], reason: str
) -> None:
    """A run that follows from it has no answer; a later one is refused."""
    asked.pass_time(1)
    edit(asked, **changes)

    decisions = asked.pass_time(30)

    (told,) = only(decisions, facts.QuestionWithdrawn)
    assert isinstance(told, facts.QuestionWithdrawn)
    assert told.reason == reason
    assert [start.answered for start in starts(decisions)] in ([], [None])
    assert asked.answer()[0].verdict in ("conflict", "unknown")


@pytest.mark.parametrize("command", [ev.StopAsked("A", 1), ev.RetryAsked("A", 1)])
def test_a_command_withdraws_the_question(asked: Asked, command: Event) -> None:
    """A stop holds the issue without it, a retry runs it without an answer."""
    decisions = asked.settle(asked.tell(command))

    assert len(only(decisions, facts.QuestionWithdrawn)) == 1
    stopped = isinstance(command, ev.StopAsked)
    assert asked.holds() is (HoldReason.OPERATOR if stopped else None)
    assert [start.answered for start in starts(decisions)] == ([] if stopped else [None])
    claim = asked.claim()
    assert not isinstance(claim, Held) or claim.due_at is None


def test_an_answer_is_given_until_a_run_has_taken_it(asked: Asked) -> None:
    """A run that fails leaves it to the next one; one that has begun a second turn does not."""
    asked.answer()
    run_id = asked.begin()
    failed = Failed(kind=ErrorKind.PORT_EXIT, message="it broke")
    asked.finish(run_id, failed)
    asked.die()
    (again,) = starts(asked.pass_time(20))
    assert again.answered is not None

    asked.tell(ev.WorkspaceMade(again.run_id, asked.known()))
    asked.tell(ev.TurnStarted(again.run_id, 1))
    asked.tell(ev.TurnStarted(again.run_id, 2))
    asked.finish(again.run_id, failed)

    (last,) = starts(asked.pass_time(60))
    assert last.answered is None


def test_an_answer_gives_no_new_budget() -> None:
    """An agent that asks and asks has no more sessions than any other; the answer waits."""
    driver = Asked(replace(ASKING, max_sessions=1))
    driver.ask()

    _, decisions = driver.answer()

    assert starts(decisions) == []
    assert driver.holds() is HoldReason.SESSION_BUDGET_EXHAUSTED
    (start,) = starts(driver.settle(driver.tell(ev.RetryAsked("A", 1))))
    assert start.answered is not None


def test_what_is_granted_for_an_issue_stays() -> None:
    """Over a further question, until the issue is finished."""
    driver = Asked(ASKING)
    driver.ask(Question(text="May it?", options=PERMISSION_OPTIONS, permission="p"))
    refused, _ = driver.answer(replace(BY_HAND, text="sure"))
    _, decisions = driver.answer(replace(BY_HAND, text=ALLOW_FOR_ISSUE))

    (start,) = starts(decisions)
    assert (refused.verdict, start.granted) == ("conflict", ("p",))
    driver.tell(ev.WorkspaceMade(start.run_id, driver.known()))
    driver.tell(ev.TurnStarted(start.run_id, 1))
    driver.finish(start.run_id, Finished(finish=Finish.ASKED, question=OPEN))
    driver.die()
    driver.pass_time()
    _, decisions = driver.answer()
    assert [start.granted for start in starts(decisions)] == [("p",)]

    driver.put(replace(driver.tracker[A], state="Done"))
    (run_id,) = (claim.run_id for claim in driver.scheduler.snapshot(driver.now).worked)
    driver.settle(driver.tell(ev.IssueMoved(run_id, driver.tracker[A])))
    driver.end(run_id)
    assert driver.disk.questions == {}


def test_where_questions_are_off() -> None:
    """What a run asks that began before a reload holds the issue as an agent that is blocked."""
    driver = Asked(POLICY)

    decisions = driver.ask()

    assert driver.holds() is HoldReason.AGENT_BLOCKED
    assert only(decisions, do.PostQuestion) == []


def test_an_explanation_says_how_to_answer(asked: Asked) -> None:
    """What waits, until when, and by what it ends."""
    found = asked.scheduler.explain_issue("A", asked.now)

    assert not isinstance(found, str)
    assert found.question is not None
    assert found.next_at == 60.0
    assert found.ways_out[:2] == ("sortie answer A TEXT", "an answer as a comment on the issue")
    assert isinstance(asked.claim(), Held)
    asked.answer()
    assert not isinstance(asked.claim(), Held | Waiting)
