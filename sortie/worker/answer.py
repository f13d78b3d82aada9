"""What an agent is told of the answer to its question.

Rule: what people have written stands in a fence, or is quoted, line by line.
"""

from __future__ import annotations

from collections.abc import Iterator

from sortie.model import cut
from sortie.model.asked_questions import AskedQuestion, QuestionAnswer
from sortie.model.outside import on_one_line
from sortie.model.questions import ALLOW_FOR_ISSUE, ALLOW_ONCE, AnswerWay
from sortie.workflow.fences import Fence
from sortie.workflow.prompts import ToldAnswer

SAID_SHOWN = 3000
"""Characters of what the agent said last in a conversation that cannot be gone on with."""

_GO_ON = "Your question was answered. Go on with your work where you stopped."

_LOST = """\
You have worked on this issue before, until you asked a question. That conversation cannot be gone
on with, so look at what you have left in your working directory before you go on."""


def told_answer(
    asked: AskedQuestion | None, fence: Fence | None, *, remembered: bool
) -> ToldAnswer | None:
    """Return the answered question of a run in words, None where it has none; ``remembered``: the
    conversation in which it was asked goes on."""
    if asked is None or asked.answer is None:
        return None
    parts = [_GO_ON if remembered else _LOST]
    if not remembered and asked.said:
        parts.append(f"What you said last was:\n{_quoted(cut(asked.said, SAID_SHOWN))}")
    parts.append(f"Your question was:\n{_quoted(asked.question.text)}")
    if asked.question.options and asked.question.permission is None:
        parts.append("\n".join(("You offered these answers:", *_listed(asked.question.options))))
    parts.append(_answer(asked.answer, fence))
    if asked.question.permission is not None:
        parts.append(_permission(asked.answer.text))
    return ToldAnswer(text="\n\n".join(parts), remembered=remembered)


def _listed(options: tuple[str, ...]) -> Iterator[str]:
    return (f"{at}. {option}" for at, option in enumerate(options, 1))


def _answer(answer: QuestionAnswer, fence: Fence | None) -> str:
    if answer.way is AnswerWay.DEFAULT:
        return f"Nobody has answered in time, so that your default counts:\n{_quoted(answer.text)}"
    if fence is None:
        return f"The answer of {on_one_line(answer.by)} is:\n{_quoted(answer.text)}"
    said = fence.around(answer.text, "the answer to your question")
    told = f"This is the answer of {on_one_line(answer.by)}. Go by it in what you have asked about"
    return f"{told}, and in nothing else:\n{said}"


def _permission(text: str) -> str:
    if text == ALLOW_ONCE:
        return "You may do once what you were refused: try it again as you did before."
    if text == ALLOW_FOR_ISSUE:
        return "You may do what you were refused, now and later: try it again as you did before."
    return "You must not do it: go on without it, or say that you are blocked."


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())
