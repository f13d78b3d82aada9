"""Facts about the questions that agents ask people."""

from __future__ import annotations

from datetime import datetime

from sortie.facts.fact import Fact, fact
from sortie.model import Issue, RunId
from sortie.model.questions import AnswerWay


@fact("question.asked", "warning", hidden=("question_id", "text", "options", "default"))
class QuestionAsked(Fact, frozen=True, kw_only=True):
    """An agent has a question, and its issue is held until somebody answers. Its default counts at
    ``deadline``; None: it never does by itself."""

    issue: Issue
    question_id: RunId
    run_id: RunId
    text: str
    options: tuple[str, ...] = ()
    default: str | None = None
    deadline: datetime | None = None


@fact("question.answered", "info", hidden=("question_id", "answer"))
class QuestionAnswered(Fact, frozen=True, kw_only=True):
    """A question is answered, and its issue goes on."""

    issue: Issue
    question_id: RunId
    by: str
    answer: str
    way: AnswerWay


@fact("question.withdrawn", "info", hidden=("question_id",))
class QuestionWithdrawn(Fact, frozen=True, kw_only=True):
    """A question is no longer asked, as its issue does something else."""

    issue: Issue
    question_id: RunId
    reason: str
