"""In which state an issue is that has one of its own, and labels that may be states."""

from __future__ import annotations

from itertools import permutations

import pytest

from sortie.model import TrackerError, TrackerErrorKind
from sortie.testing.tracker import make_issue
from sortie.trackers import TrackerStates
from sortie.trackers.http.added_states import AddedStates

ADDED = AddedStates(
    TrackerStates(
        active=("Todo", "Plan", "Build"),
        terminal=("Done",),
        handoff="Review",
        labels=("Review", "Build", "Plan"),
    )
)
NONE = AddedStates(TrackerStates(active=("Todo", "Build"), terminal=("Done",)))


@pytest.mark.parametrize(
    ("own", "labels", "ended", "state"),
    [
        ("Todo", (), False, "Todo"),
        ("Todo", ("bug",), False, "Todo"),
        ("Todo", (" bUILD ", "bug"), False, "Build"),
        ("Backlog", ("build",), False, "Build"),
        ("Todo", ("plan", "build"), False, "Build"),
        ("Todo", ("plan", "build", "review"), False, "Review"),
        ("Done", ("build",), True, "Done"),
        (" done", ("build",), False, " done"),
        ("Won't do", ("build",), True, "Won't do"),
        ("Todo", ("build",), True, "Build"),  # an active state, whatever the provider takes it for
    ],
)
def test_a_label_counts_unless_the_issue_is_over(
    own: str, labels: tuple[str, ...], ended: bool, state: str
) -> None:
    """Of several the first of the settings counts; the order on the issue means nothing."""
    for ordered in permutations(labels):
        assert ADDED.state_of(own, ordered, ended=ended) == state


def test_without_such_states_a_label_is_a_label() -> None:
    """Every issue is in its own state."""
    assert not NONE
    assert NONE.state_of("Todo", ("build", "review"), ended=False) == "Todo"
    assert NONE.others(("build",), "Todo") == ()


def test_states_are_told_apart_whatever_their_spelling() -> None:
    """Those asked for are given as the settings spell them; labels as the issue does."""
    assert ADDED
    assert ADDED.added([" build", "Todo", "REVIEW"]) == ["Review", "Build"]
    assert ADDED.own([" build", "Todo", "REVIEW"]) == ["Todo"]
    assert ADDED.others(("BUILD", "bug", "Plan"), "plan") == ("BUILD",)
    assert ADDED.others(("BUILD", "bug", "Plan"), "Todo") == ("BUILD", "Plan")
    assert ADDED.in_both(["Todo", "build"]) == ['"build"']


def test_an_issue_that_is_over_is_reopened_in_the_first_active_state_of_its_own() -> None:
    """Where all active states are labels nobody can tell which that would be."""
    issue = make_issue("A-1", "Done")
    assert ADDED.reopened(issue, "Build") == "Todo"

    labels_alone = AddedStates(TrackerStates(active=("Build",), labels=("Build",)))
    with pytest.raises(TrackerError, match="reopen it first") as told:
        labels_alone.reopened(issue, "Build")
    assert told.value.kind is TrackerErrorKind.INVALID
