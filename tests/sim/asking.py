"""What is asked of people in a simulated world, and what they answer.

Rule 1: a question is asked once, when it and the hold of its issue are on record.
Rule 2: it ends once, by an answer or without one; the first answer on its ticket is the one.
Rule 3: no run is started while it is open, and the next one has its answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sortie import facts
from sortie.config.questions import QuestionsSettings
from sortie.model import Comment, HoldReason, Issue, IssueId, RunId
from sortie.model.asked_questions import AskedQuestion
from sortie.model.own_comments import is_own
from sortie.model.questions import AnswerWay
from sortie.orchestrator.comment_texts import comment_on_question
from sortie.scheduler import decisions as do
from sortie.scheduler.claims import Claim, Held
from sortie.store import StoredQuestion
from tests.sim.disk import Disk


@dataclass(slots=True)
class Asking:
    """The questions of all lives: those ``asked`` by their runs, and those that have ``ended``."""

    asked: dict[RunId, AskedQuestion] = field(default_factory=dict)
    ended: set[RunId] = field(default_factory=set)

    def ask(
        self, disk: Disk, post: do.PostQuestion, settings: QuestionsSettings | None, at: float
    ) -> Comment:
        """See that a question may be asked; return the comment that asks it."""
        assert settings is not None, "asked although the settings allow none"
        run_id, stored = post.asked.run_id, disk.questions.get(post.issue.id)
        assert run_id not in self.asked, "asked twice"
        assert stored is not None, "asked before it is on record"
        assert stored.asked == post.asked, "another question is on record"
        assert disk.holds[post.issue.id].reason is HoldReason.QUESTION, "asked, and not held"
        question, due_at = post.asked.question, None
        if question.default is not None and settings.on_timeout == "default":
            due_at = at + (question.timeout or settings.timeout)
        assert _same(stored.due_at, due_at), "another deadline is on record"
        told = None if post.deadline is None else post.deadline.timestamp()
        assert _same(told, due_at), "another deadline is told"
        self.asked[run_id] = post.asked
        return Comment(author="sortie", body=comment_on_question(post.asked, post.deadline))

    def answered(
        self,
        disk: Disk,
        told: facts.QuestionAnswered,
        present: Issue | None,
        at: float,
    ) -> None:
        """See that a question may be answered so; ``present`` is its issue in the tracker."""
        self._end(told.question_id)
        stored = disk.questions[told.issue.id]
        assert stored.asked.answer is not None, "answered before it is on record"
        assert (stored.asked.answer.text, stored.asked.answer.way) == (told.answer, told.way)
        match told.way:
            case AnswerWay.DEFAULT:
                assert told.answer == stored.asked.question.default
                assert stored.due_at is not None
                assert at >= stored.due_at - 0.001, "the default counts too early"
            case AnswerWay.TICKET if present is not None:
                first = next(_answers(stored.asked, present), None)
                assert first in (None, told.answer), "it was not the first answer"
            case _:
                pass

    def withdrawn(self, told: facts.QuestionWithdrawn) -> None:
        """See that a question may be withdrawn."""
        self._end(told.question_id)

    def _end(self, run_id: RunId) -> None:
        assert run_id in self.asked, "it was never asked"
        assert run_id not in self.ended, "it has ended twice"
        self.ended.add(run_id)

    def start(self, disk: Disk, start: do.StartWorker) -> None:
        """See that a run may start, and that it has the answer it is to take to its agent."""
        stored = disk.questions.get(start.issue.id)
        asked = None if stored is None else stored.asked
        assert asked is None or not asked.is_open, "started while its question is open"
        wanted = asked if asked is not None and asked.answer and not asked.taken else None
        assert start.answered == wanted, "started without its answer, or with another"

    def check(
        self,
        questions: Mapping[IssueId, AskedQuestion],
        claims: Mapping[IssueId, Claim],
        disk: Disk,
        born_at: float,
        epoch: float,
    ) -> None:
        """See that questions in memory and on disk are the same, and open ones those of holds."""
        stored = disk.questions
        assert questions == {i: one.asked for i, one in stored.items()}, "other questions on disk"
        waiting = {
            i
            for i, claim in claims.items()
            if isinstance(claim, Held) and claim.reason is HoldReason.QUESTION
        }
        assert waiting == {i for i, asked in questions.items() if asked.is_open}
        for issue_id in waiting:
            claim = claims[issue_id]
            assert isinstance(claim, Held)
            assert questions[issue_id].run_id not in self.ended
            _check_deadline(claim, stored[issue_id], born_at, epoch)


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) < 1e-3


def _check_deadline(claim: Held, stored: StoredQuestion, born_at: float, epoch: float) -> None:
    if claim.due_at is None or stored.due_at is None:
        assert claim.due_at is stored.due_at, "another deadline on disk"
        return
    assert abs(max(stored.due_at - epoch, born_at) - claim.due_at) < 1e-3, "another deadline"


def _answers(asked: AskedQuestion, issue: Issue) -> Iterator[str]:
    """Yield the answers behind the comment with a question; none where that is not there."""
    bodies = [comment.body for comment in issue.comments]
    at = next((n for n, body in enumerate(bodies) if asked.mark in body), len(bodies))
    for body in bodies[at + 1 :]:
        if not is_own(body) and (meant := asked.meant(body)) is not None:
            yield meant
