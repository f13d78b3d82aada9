"""Which state labels, and being open or closed, amount to."""

from __future__ import annotations

from itertools import permutations

import pytest

from sortie.testing.tracker import STATES
from sortie.trackers import TrackerStates
from sortie.trackers.github.label_states import LabelStates

NAMES = LabelStates(states=STATES)


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
        assert NAMES.state_of(ordered, closed=closed) == state


def test_issues_without_a_label_are_worked_on_only_where_that_is_asked_for() -> None:
    """A repository full of issues is not started on by itself."""
    wanted = LabelStates(states=STATES, unlabeled="Todo")

    assert NAMES.state_of(["bug"], closed=False) == "open"
    assert wanted.state_of(["bug"], closed=False) == "Todo"
    assert wanted.state_of(["Review"], closed=False) == "Review"


def test_without_terminal_states_a_closed_issue_is_closed() -> None:
    """It is in no state that anybody works in."""
    states = LabelStates(states=TrackerStates(active=("Todo",)))

    assert states.state_of(["Todo"], closed=True) == "closed"
