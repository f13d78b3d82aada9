"""An answer is looked at once: what was found in it before holds for as long as it is the same."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sortie.model import Issue, IssueId
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


def described(answer: IssuesRead) -> object:
    """Return what can be compared of an answer."""
    return answer.issues, {i: str(error) for i, error in answer.failed.items()}
