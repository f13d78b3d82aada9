"""Which comment answers a question, and what an answer allows."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sortie.model import Comment, Failed, Finish, Finished, RunId, RunReport, Stopped
from sortie.model.asked_questions import AskedQuestion, QuestionAnswer, answer_on_ticket
from sortie.model.errors import ErrorKind
from sortie.model.own_comments import is_own
from sortie.model.questions import (
    ALLOW_FOR_ISSUE,
    ALLOW_ONCE,
    DENY,
    PERMISSION_OPTIONS,
    AnswerWay,
    Question,
)
from sortie.orchestrator.comment_texts import (
    comment_on_dispatch,
    comment_on_end,
    comment_on_question,
)

RUN = RunId("c135414b-e62d-5dec-9a3b-a766c135b1c5")
ASKED = AskedQuestion(
    run_id=RUN, question=Question(text="Which one?", options=("this", "that")), comments_before=1
)
MAY_IT = replace(
    ASKED,
    question=Question(text="May it?", options=PERMISSION_OPTIONS, permission="p"),
    granted=("q",),
)
EARLY = Comment(author="kim", body="that, of course")
POSTED = Comment(author="kim", body=comment_on_question(ASKED, None))


def said(text: str, author: str = "jo") -> Comment:
    return Comment(author=author, body=text)


def answer(text: str, asked: AskedQuestion = ASKED) -> str | None:
    found = answer_on_ticket(asked, (EARLY, POSTED, said(text)))
    return None if found is None else found.text


def test_the_first_comment_behind_the_question_answers() -> None:
    """What was said before it, and what Sortie says under whatever name, does not."""
    later = (said(comment_on_end(RunReport(end=Stopped()))), said("2"), said("1", "kim"))

    found = answer_on_ticket(ASKED, (EARLY, POSTED, *later))

    assert found == QuestionAnswer(text="that", by="jo", way=AnswerWay.TICKET)
    assert answer_on_ticket(ASKED, (EARLY, POSTED)) is None
    assert answer_on_ticket(ASKED, (EARLY, said("2"), POSTED)) is None


def test_a_question_that_is_not_to_be_seen() -> None:
    """Without it on the ticket, what has come since it was asked answers."""
    other = replace(ASKED, run_id=RunId("another-run-of-the-issue"))
    posted = said(comment_on_question(other, None))

    assert answer_on_ticket(ASKED, (EARLY,)) is None
    assert answer_on_ticket(ASKED, (EARLY, posted)) is None
    found = answer_on_ticket(ASKED, (EARLY, posted, said("this")))
    assert found is not None
    assert found.text == "this"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("neither", "neither"),
        ("> Which one?\n> 1. this\n\nTHAT\n", "that"),
        ("> only a quotation", "> only a quotation"),
        (" \n ", None),
    ],
)
def test_what_a_comment_means(text: str, meant: str | None) -> None:
    """Quoted lines in it do not count where it has others, and an empty one is no answer."""
    assert answer(text) == meant


@pytest.mark.parametrize(
    ("text", "meant", "once", "granted"),
    [
        ("1", ALLOW_ONCE, "p", ("q",)),
        ("Allow for this issue", ALLOW_FOR_ISSUE, None, ("q", "p")),
        ("deny", DENY, None, ("q",)),
        ("sure, go ahead", None, None, ()),
        ("4", None, None, ()),
    ],
)
def test_a_permission_is_given_by_an_option(
    text: str, meant: str | None, once: str | None, granted: tuple[str, ...]
) -> None:
    """Anything else is no answer; what was given for the issue before stays."""
    found = answer_on_ticket(MAY_IT, (EARLY, said(text)))

    assert (found and found.text) == meant
    if found is not None:
        answered = MAY_IT.answered(found)
        assert (answered.granted_once, answered.granted) == (once, granted)


def test_sorties_comments_are_known() -> None:
    """However a run ends, and whatever is asked; those of people are not."""
    ends = (
        Stopped(),
        Finished(finish=Finish.ASKED),
        Failed(kind=ErrorKind.PORT_EXIT, message="it broke"),
    )
    made = [comment_on_end(RunReport(end=end, turns=2)) for end in ends]
    made += [comment_on_dispatch(1, "local"), POSTED.body]

    assert [text for text in made if not is_own(text)] == []
    assert not any(is_own(f"{word} {text}") for text in made for word in ("He said:", ">"))
