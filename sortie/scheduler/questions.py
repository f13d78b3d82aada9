"""The questions of agents that are on record, the newest of each issue.

Rule 1: a question is on record before it is asked anywhere, together with the hold of its issue.
Rule 2: an open question is that of an issue which is held for it; what ends the hold answers the
question or withdraws it.
Rule 3: an answer is on record before a run takes it to the agent, and is given to runs until one of
them has begun a second turn or come to an end of its own.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from sortie import facts
from sortie.model import Finished, HoldReason, Issue, IssueId, RunReport
from sortie.model.asked_questions import AskedQuestion
from sortie.scheduler.claims import Claim, Held, Worked
from sortie.scheduler.decisions import Refresh
from sortie.scheduler.records import ForgetQuestion, RecordQuestion
from sortie.scheduler.state import SchedulerState


def open_question(state: SchedulerState, claim: Claim | None) -> AskedQuestion | None:
    """Return the question for whose answer an issue is held, None where it is not."""
    if not isinstance(claim, Held) or claim.reason is not HoldReason.QUESTION:
        return None
    asked = state.questions.get(claim.issue.id)
    return asked if asked is not None and asked.is_open else None


def read_issues(state: SchedulerState, ids: Collection[IssueId]) -> Refresh:
    """Return a request to read issues again, and to look for answers on their tickets."""
    asked = {issue_id: open_question(state, state.claims.find(issue_id)) for issue_id in ids}
    questions = {issue_id: one for issue_id, one in asked.items() if one is not None}
    return Refresh(state.next_request(), frozenset(ids), questions)


def note(state: SchedulerState, issue: Issue, asked: AskedQuestion) -> None:
    """Record what has become of a question."""
    state.questions[issue.id] = asked
    state.out.append(RecordQuestion(issue_id=issue.id, asked=asked, again=True))


def withdraw(state: SchedulerState, claim: Held, reason: str) -> None:
    """End the question for which an issue is held, as its hold ends without an answer."""
    asked = open_question(state, claim)
    if asked is None:
        return
    note(state, claim.issue, replace(asked, withdrawn=reason))
    state.out.append(
        facts.QuestionWithdrawn(issue=claim.issue, question_id=asked.run_id, reason=reason)
    )


def answer_for_run(state: SchedulerState, issue: Issue) -> AskedQuestion | None:
    """Return the answered question that a run of the issue takes to its agent."""
    asked = state.questions.get(issue.id)
    return asked if asked is not None and asked.answer is not None and not asked.taken else None


def granted(state: SchedulerState, issue: Issue) -> tuple[str, ...]:
    """Return the permissions that people have given for all of an issue."""
    asked = state.questions.get(issue.id)
    return () if asked is None else asked.granted


def taken_by_turn(state: SchedulerState, claim: Worked, turn: int) -> None:
    """Note that a run has begun a second turn, so that its first one has taken the answer."""
    asked = answer_for_run(state, claim.issue)
    if turn > 1 and asked is not None:
        note(state, claim.issue, replace(asked, taken=True))


def taken_by_run(state: SchedulerState, claim: Worked, report: RunReport) -> None:
    """Note that a run has come to an end of its own, which has taken the answer."""
    asked = answer_for_run(state, claim.issue)
    if asked is not None and report.turns and isinstance(report.end, Finished):
        note(state, claim.issue, replace(asked, taken=True))


def forget_question(state: SchedulerState, issue: Issue) -> None:
    """Forget the questions of an issue that is finished."""
    if state.questions.pop(issue.id, None) is not None:
        state.out.append(ForgetQuestion(issue_id=issue.id))
