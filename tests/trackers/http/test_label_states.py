"""Which state labels, and being open or closed, amount to."""

from __future__ import annotations

from itertools import permutations

import pytest

from sortie.testing.tracker import STATES
from sortie.trackers import TrackerStates
from sortie.trackers.github.items import github_states
from sortie.trackers.gitlab.issues import gitlab_states
from sortie.trackers.http.label_states import LabelStates

PLAIN = github_states(STATES)
SCOPED = gitlab_states(STATES, "status::")
NATIVE = gitlab_states(
    TrackerStates(active=("Opened", "Doing"), terminal=("Dropped", "closed"), handoff="Review")
)


@pytest.mark.parametrize(
    ("labels", "closed", "state"),
    [
        ((), False, "open"),
        (("bug",), False, "open"),
        ((" todo ",), False, "Todo"),
        (("Todo", "In Progress"), False, "In Progress"),
        (("In Progress", "review"), False, "Review"),
        (("Todo", "Done"), False, "Done"),
        (("Review", "Done"), False, "Review"),
        ((), True, "Done"),
        (("Todo",), True, "Done"),
        (("Review",), True, "Done"),
        (("Dropped", "Todo"), True, "Dropped"),
        (("Dropped", "Done"), True, "Done"),
    ],
)
def test_labels_have_a_fixed_precedence(labels: tuple[str, ...], closed: bool, state: str) -> None:
    """What was finished or handed over wins, then the later of the active states; the order of the
    labels on the issue means nothing."""
    for ordered in permutations(labels):
        assert PLAIN.state_of(ordered, closed=closed) == state


@pytest.mark.parametrize(
    ("labels", "state"),
    [
        (["status::Todo"], "Todo"),
        (["STATUS::in progress"], "In Progress"),
        (["Todo"], "opened"),
        (["status::"], "opened"),
        (["status::Todo", "status::Waiting"], "Waiting"),  # a state that no setting names
        (["status::Waiting", "status::Review"], "Review"),
        (["status::opened"], "opened"),
    ],
)
def test_with_a_prefix_every_label_that_begins_with_it_is_a_state(
    labels: list[str], state: str
) -> None:
    """Also one that nobody named, in which no agent works."""
    assert SCOPED.state_of(labels, closed=False) == state


def test_issues_without_a_label_are_worked_on_only_where_that_is_asked_for() -> None:
    """A repository full of issues is not started on by itself."""
    wanted = github_states(STATES, "Todo")

    assert PLAIN.state_of(["bug"], closed=False) == "open"
    assert wanted.state_of(["bug"], closed=False) == "Todo"
    assert wanted.state_of(["Review"], closed=False) == "Review"


def test_own_states_of_the_provider_can_be_named() -> None:
    """They are those of issues without a label, and no labels themselves."""
    assert NATIVE.state_of([], closed=False) == "Opened"
    assert NATIVE.state_of(["doing"], closed=False) == "Doing"
    assert NATIVE.state_of(["Opened"], closed=True) == "closed"
    assert NATIVE.state_of(["dropped"], closed=True) == "Dropped"
    assert (NATIVE.label_of("OPENED"), NATIVE.closes("closed")) == (None, True)
    assert NATIVE.needed() == ["Doing", "Review", "Dropped"]


def test_without_terminal_states_a_closed_issue_is_closed() -> None:
    """It is in no state that anybody works in."""
    states = TrackerStates(active=("Todo",))

    assert github_states(states).state_of(["Todo"], closed=True) == "closed"
    assert gitlab_states(states).state_of(["Todo"], closed=True) == "closed"


def test_labels_of_states_are_no_labels_of_issues() -> None:
    """So that moving an issue is no change of its content."""
    assert PLAIN.plain(["Todo", "backend", " done"]) == ("backend",)
    assert SCOPED.plain(["Todo", "status::Todo", "status::x", "backend"]) == ("Todo", "backend")


@pytest.mark.parametrize("states", [PLAIN, SCOPED, NATIVE])
def test_a_move_leads_to_its_state(states: LabelStates) -> None:
    """From whatever labels: with its own label, and without those of others, it is there."""
    marks = states.needed()
    for before in ([], marks, ["backend", marks[0].upper()]):
        for name in states.states.named:
            label = states.label_of(name)
            others = states.others(before, name)
            after = [x for x in before if x not in others] + ([label] if label else [])

            assert states.is_exactly(after, name, closed=states.closes(name))
            assert "backend" not in others
