"""An answer is looked at once: what was found in it before holds for as long as it is the same."""

from __future__ import annotations

from msgspec.structs import replace

from sortie.model import Comment, Issue, IssueId, TrackerErrorKind
from sortie.orchestrator.tracker_answers import SoundAnswers
from sortie.trackers import IssuesRead

A, B, C = (Issue(id=IssueId(i), identifier=i, title="t", state="Todo") for i in "ABC")
UNTITLED = replace(B, title=None)


def test_of_an_answer_that_is_not_understood_no_issue_is_missing() -> None:
    """What could not be read may be any of those that were asked for and did not come."""
    answers, told = SoundAnswers(), list[str]()
    wanted = {A.id, B.id, C.id}

    whole = answers.reread(IssuesRead(issues=(A,)), wanted, told.append)
    broken = answers.reread(IssuesRead(issues=(A, UNTITLED)), wanted, told.append)

    assert (whole.issues, whole.failed) == ((A,), {})
    assert (broken.issues, set(broken.failed)) == ((A,), {B.id, C.id})
    assert {error.kind for error in broken.failed.values()} == {TrackerErrorKind.UNAVAILABLE}


SECRETIVE = replace(
    B,
    title="the key is s3cr3t",
    description="s3cr3t, as said",
    comments=(Comment(author="me", body="use s3cr3t"), Comment(author="you", body="no")),
    labels=("s3cr3t",),
)


def test_a_secret_in_an_issue_goes_no_further() -> None:
    """It is taken out of what people write; what the issue is known and chosen by stays."""
    answers, told = SoundAnswers(), list[str]()
    answers.hide(lambda text: text.replace("s3cr3t", "***") if "s3cr3t" in text else text)
    answer = (A, SECRETIVE)

    (first, clean) = answers.listed(answer, told.append)
    read = answers.reread(IssuesRead(issues=(SECRETIVE,)), {B.id}, told.append)

    assert first is A
    assert clean == replace(
        SECRETIVE,
        title="the key is ***",
        description="***, as said",
        comments=(Comment(author="me", body="use ***"), Comment(author="you", body="no")),
    )
    assert read.issues == (clean,)
    assert told == []


def test_what_was_clean_is_not_looked_at_again() -> None:
    """One object is cleaned once for as long as lists hold it, and anew for other secrets."""
    answers, looks = SoundAnswers(), list[str]()

    def redact(text: str) -> str:
        looks.append(text)
        return text.replace("s3cr3t", "***")

    answers.hide(redact)
    first = answers.listed((A, SECRETIVE), looks.append)
    once = len(looks)
    second = answers.listed((SECRETIVE, A), looks.append)
    assert len(looks) == once
    answers.hide(str)
    third = answers.listed((SECRETIVE, A), looks.append)

    assert second[0] is first[1]
    assert third == (SECRETIVE, A)
