"""Asking people a question, and what follows from an answer, or from none.

Rule 1: the first answer counts, in whatever way it comes.
Rule 2: a default counts when a read of the issue that was asked for after the deadline shows no
answer on its ticket: one that was given while no daemon ran comes before the default.
"""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import replace

from sortie import facts
from sortie.model import Finished, HoldReason, Issue, RunReport, Streak, Trigger, cut
from sortie.model.asked_questions import AskedQuestion, QuestionAnswer
from sortie.model.outside import on_one_line
from sortie.model.questions import ANSWER_LIMIT, NAME_LIMIT, AnswerWay, Question
from sortie.scheduler.claims import Held, Worked
from sortie.scheduler.command_replies import Reply
from sortie.scheduler.decisions import PostQuestion
from sortie.scheduler.explanation import unknown
from sortie.scheduler.holds import park, record_of
from sortie.scheduler.policy import Policy
from sortie.scheduler.questions import granted, note, open_question, read_issues
from sortie.scheduler.records import ForgetHold, RecordQuestion
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.waits import wait_for_run

DETAIL_LIMIT = 1000
"""Characters of a question in the detail of its hold."""

ANSWER_SHOWN = 200
"""Characters of an answer in a sentence about it."""

NOBODY = "nobody"
"""Who has answered where the default counts."""


def asked_by(claim: Worked, report: RunReport) -> AskedQuestion:
    """Return the question with which a run has ended."""
    assert isinstance(report.end, Finished)
    assert report.end.question is not None
    return AskedQuestion(
        run_id=claim.run_id,
        question=report.end.question,
        said=report.summary.answer or "",
        comments_before=report.end.comments_before,
    )


def ask(state: SchedulerState, claim: Worked, asked: AskedQuestion, now: float) -> None:
    """Ask the people of an issue what the agent of a run wants to know, and park the issue."""
    issue, question = claim.issue, asked.question
    asked = replace(asked, granted=granted(state, issue))
    delay = _delay(question, state.policy_for(issue))
    due_at = None if delay is None else now + delay
    deadline = None if due_at is None else datetime.fromtimestamp(state.epoch + due_at, UTC)
    held = Held(
        issue=issue,
        reason=HoldReason.QUESTION,
        detail=cut(on_one_line(question.text), DETAIL_LIMIT),
        since=now,
        last_request=state.last_request,
        baseline_final=False,
        due_at=due_at,
    )
    state.questions[issue.id] = asked
    state.out.append(RecordQuestion(issue_id=issue.id, asked=asked, delay=delay))
    state.out.append(record_of(held))
    state.keep_rule(issue)
    state.out.append(
        facts.QuestionAsked(
            issue=issue,
            question_id=asked.run_id,
            run_id=asked.run_id,
            text=question.text,
            options=question.options,
            default=question.default,
            deadline=deadline,
        )
    )
    state.out.append(PostQuestion(issue, asked, deadline))
    park(state, held)


def _delay(question: Question, policy: Policy) -> float | None:
    """Return after how many seconds the default of a question counts, None for never."""
    settings = policy.questions
    if settings is None or settings.on_timeout == "hold" or question.default is None:
        return None
    return settings.timeout if question.timeout is None else question.timeout


def answer_question(
    state: SchedulerState, claim: Held, asked: AskedQuestion, answer: QuestionAnswer, now: float
) -> None:
    """Take an answer, and let the issue go on with it."""
    note(state, claim.issue, asked.answered(answer))
    state.out.append(ForgetHold(issue_id=claim.issue.id))
    state.out.append(
        facts.QuestionAnswered(
            issue=claim.issue,
            question_id=asked.run_id,
            by=answer.by,
            answer=answer.text,
            way=answer.way,
        )
    )
    state.forget_crashes(claim.issue.id)
    wait_for_run(state, claim.issue, Streak(), Trigger.ANSWER, now, delay=0.0)


def answered_by_read(
    state: SchedulerState, claim: Held, issue: Issue, found: QuestionAnswer | None, now: float
) -> bool:
    """Take the answer that was ``found`` on a ticket, if one was; tell whether that counts."""
    asked = open_question(state, claim)
    if found is None or asked is None or not state.is_active(issue):
        return False
    answer_question(state, replace(claim, issue=issue), asked, found, now)
    return True


def question_due(state: SchedulerState, claim: Held, now: float) -> None:
    """Have an issue read whose question has met its deadline.

    While the tracker wants to be left alone, the next reconciliation reads it.
    """
    state.claims[claim.issue.id] = replace(claim, overdue=True, last_request=state.last_request)
    if now >= state.tracker_paused_until:
        state.out.append(read_issues(state, {claim.issue.id}))


def take_default(state: SchedulerState, claim: Held, issue: Issue, now: float) -> None:
    """Let the default count of a question that nobody has answered in time."""
    asked = open_question(state, claim)
    if asked is None or asked.question.default is None or not claim.overdue:
        return
    answer = QuestionAnswer(text=asked.question.default, by=NOBODY, way=AnswerWay.DEFAULT)
    answer_question(state, replace(claim, issue=issue), asked, answer, now)


def answer_by_command(
    state: SchedulerState, name: str, answer: QuestionAnswer, now: float
) -> Reply:
    """Take an answer that an operator gives."""
    issue = state.find(name)
    if issue is None:
        return Reply("unknown", unknown(state, name))
    state.in_hand = issue
    claim = state.claims.find(issue.id)
    asked = open_question(state, claim)
    if asked is None or not isinstance(claim, Held):
        return Reply("conflict", _not_open(issue, state.questions.get(issue.id)))
    if len(answer.text) > ANSWER_LIMIT:
        return Reply("conflict", f"an answer has at most {ANSWER_LIMIT} characters")
    meant = asked.meant(answer.text)
    if meant is None:
        choices = "; ".join(asked.question.options)
        wants = f"is one of these: {choices}" if choices else "is not empty"
        return Reply("conflict", f"the answer to the question of {issue.identifier} {wants}")
    by = cut(on_one_line(answer.by), NAME_LIMIT) or "an operator"
    answer_question(state, claim, asked, replace(answer, text=meant, by=by), now)
    told = cut(on_one_line(meant), ANSWER_SHOWN)
    return Reply("done", f"the question of {issue.identifier} is answered: {told}")


def _not_open(issue: Issue, asked: AskedQuestion | None) -> str:
    """Say why there is no question to answer."""
    if asked is None:
        return f"{issue.identifier} has no question that waits for an answer"
    if asked.answer is None:
        return f"the question of {issue.identifier} was withdrawn: {asked.withdrawn}"
    said = cut(on_one_line(asked.answer.text), ANSWER_SHOWN)
    who = f"{asked.answer.by} has answered it ({asked.answer.way})"
    if asked.answer.way is AnswerWay.DEFAULT:
        who = "nobody has answered it in time, and its default counts"
    return f"the question of {issue.identifier} is no longer open: {who}: {said}"
