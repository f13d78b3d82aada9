"""A question that is on record, and its answer, which may stand on the ticket."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from sortie.model.issues import Comment
from sortie.model.outside import on_one_line
from sortie.model.own_comments import ASKS, is_own
from sortie.model.questions import (
    ALLOW_FOR_ISSUE,
    ALLOW_ONCE,
    ANSWER_LIMIT,
    DENY,
    NAME_LIMIT,
    AnswerWay,
    Question,
)
from sortie.model.runs import RunId
from sortie.model.texts import cut

_MARK_LENGTH = 18  # of a run's id: no other run of an issue has the same beginning


class QuestionAnswer(Struct, frozen=True, kw_only=True):
    """What was answered, and who has; the name is not proved where an operator has given it."""

    text: str
    by: str
    way: AnswerWay


class AskedQuestion(Struct, frozen=True, kw_only=True):
    """A question that is on record; it is known by the run that asked it.

    ``said`` is what the agent said last before it, and ``comments_before`` how many comments its
    issue had. Once there is an ``answer`` a run is to take it
    to the agent, and has when it is ``taken``. ``withdrawn`` says why no answer is wanted any more,
    "" where one is. ``granted`` are the permissions that people have given for all of the issue.
    """

    run_id: RunId
    question: Question
    said: str = ""
    comments_before: int = 0
    answer: QuestionAnswer | None = None
    taken: bool = False
    withdrawn: str = ""
    granted: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether an answer is waited for."""
        return self.answer is None and not self.withdrawn

    @property
    def mark(self) -> str:
        """What stands in the comment with the question, and in no other."""
        return f"(question {self.run_id[:_MARK_LENGTH]})"

    def answered(self, answer: QuestionAnswer) -> AskedQuestion:
        """Return it with its answer, and with the permission that this gives for all of the
        issue."""
        wanted, granted = self.question.permission, self.granted
        if wanted is not None and answer.text == ALLOW_FOR_ISSUE and wanted not in granted:
            granted = (*granted, wanted)
        return replace(self, answer=answer, granted=granted)

    @property
    def granted_once(self) -> str | None:
        """The permission that its answer gives for once, None where it gives none."""
        if self.answer is None or self.answer.text != ALLOW_ONCE:
            return None
        return self.question.permission

    @property
    def denied(self) -> str | None:
        """The permission that its answer refuses, None where it refuses none."""
        if self.answer is None or self.answer.text != DENY:
            return None
        return self.question.permission

    def meant(self, text: str) -> str | None:
        """Return what a text answers, None where that is nothing: an empty text, and for a
        permission whatever is none of the options."""
        said = self.question.chosen(cut(text.strip(), ANSWER_LIMIT))
        if not said or (self.question.permission is not None and not self._offers(said)):
            return None
        return said

    def _offers(self, said: str) -> bool:
        return said in self.question.options


def answer_on_ticket(asked: AskedQuestion, comments: Sequence[Comment]) -> QuestionAnswer | None:
    """Return the first comment that answers a question, None where there is none.

    It stands behind the comment with the question. Where that is not to be seen, as when it could
    not be made, it stands behind those that there were before. ``comments`` are in the order in
    which they were made, without those that do not count.
    """
    for comment in _later(asked, comments):
        if is_own(comment.body):
            continue
        meant = asked.meant(without_quotations(comment.body))
        if meant is not None:
            by = cut(on_one_line(comment.author), NAME_LIMIT)
            return QuestionAnswer(text=meant, by=by, way=AnswerWay.TICKET)
    return None


def _later(asked: AskedQuestion, comments: Sequence[Comment]) -> Sequence[Comment]:
    for at, comment in enumerate(comments):
        if comment.body.lstrip().startswith(ASKS) and asked.mark in comment.body:
            return comments[at + 1 :]
    return comments[asked.comments_before :]


def without_quotations(text: str) -> str:
    """Return a comment without the lines that it quotes in front of its own, unless it has none."""
    own = [line for line in text.splitlines() if not line.lstrip().startswith(">")]
    return "\n".join(own).strip() or text.strip()
