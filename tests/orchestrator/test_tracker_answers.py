"""An answer is looked at once: what was found in it before holds for as long as it is the same."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sortie.model import Comment, Issue, IssueId, TrackerErrorKind
from sortie.orchestrator.tracker_answers import SoundAnswers
from sortie.trackers import IssuesRead

A, B, C = (Issue(id=IssueId(i), identifier=i, title="t", state="Todo") for i in "ABC")
NAMESAKE = replace(C, identifier="A")
UNTITLED = replace(B, title=None)  # type: ignore[arg-type]
ITEMS = st.sampled_from([A, B, C, replace(A, title="u"), NAMESAKE, UNTITLED, "none", None])


def test_the_same_tuple_is_the_same_answer() -> None:
    """Whoever is given it can tell by that alone that nothing has changed."""
    answers, told = SoundAnswers(), list[str]()
    sound, flawed = (A, B), (A, UNTITLED, C)

    assert answers.listed(sound, told.append) is sound
    assert answers.listed(sound, told.append) is sound
    first = answers.listed(flawed, told.append)

    assert first == (A, C)
    assert answers.listed(flawed, told.append) is first
    assert len(told) == 1


def test_a_list_that_can_be_changed_is_looked_at_each_time() -> None:
    """It is the same object, with other things in it."""
    answers, told = SoundAnswers(), list[str]()
    listed: list[object] = [A]
    answers.listed(listed, told.append)

    listed.append(UNTITLED)

    assert (answers.listed(listed, told.append), len(told)) == ((A,), 1)


def test_of_an_answer_that_is_not_understood_no_issue_is_missing() -> None:
    """What could not be read may be any of those that were asked for and did not come."""
    answers, told = SoundAnswers(), list[str]()
    wanted = {A.id, B.id, C.id}

    whole = answers.reread(IssuesRead(issues=(A,)), wanted, told.append)
    broken = answers.reread(IssuesRead(issues=(A, UNTITLED)), wanted, told.append)

    assert (whole.issues, whole.failed) == ((A,), {})
    assert (broken.issues, set(broken.failed)) == ((A,), {B.id, C.id})
    assert {error.kind for error in broken.failed.values()} == {TrackerErrorKind.UNAVAILABLE}


@given(st.lists(st.tuples(st.booleans(), st.lists(ITEMS, max_size=5)), max_size=6))
def test_what_was_seen_before_changes_no_verdict(
    history: list[tuple[bool, list[object]]],
) -> None:
    """Lists and re-reads in any order, of issues that are known, new, namesakes and nonsense."""
    answers = SoundAnswers()
    for is_list, items in history:
        told, told_anew = list[str](), list[str]()
        if is_list:
            given_answer: object = answers.listed(tuple(items), told.append)
            wanted: object = SoundAnswers().listed(tuple(items), told_anew.append)
        else:
            read, ids = IssuesRead(issues=tuple(items)), {A.id, B.id}  # type: ignore[arg-type]
            given_answer = described(answers.reread(read, ids, told.append))
            wanted = described(SoundAnswers().reread(read, ids, told_anew.append))
        assert (given_answer, told) == (wanted, told_anew)


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


def described(answer: IssuesRead) -> object:
    """Return what can be compared of an answer."""
    return answer.issues, {i: str(error) for i, error in answer.failed.items()}
