"""Labels as states."""

from __future__ import annotations

import pytest

from sortie.testing.tracker import STATES
from sortie.trackers import TrackerStates
from sortie.trackers.gitlab.labels import LabelChange, StateLabels

PLAIN = StateLabels(STATES)
SCOPED = StateLabels(STATES, "status::")
NATIVE = StateLabels(
    TrackerStates(active=("Opened", "Doing"), terminal=("Dropped", "closed"), handoff="Review")
)


@pytest.mark.parametrize(
    ("labels", "is_open", "state"),
    [
        (["Todo"], True, "Todo"),
        ([" todo "], True, "Todo"),
        (["Todo", "In Progress"], True, "In Progress"),  # the later of two active ones
        (["Todo", "Review", "In Progress"], True, "Review"),  # never back to the agent
        (["Todo", "Done"], True, "Done"),
        (["Review", "Done"], True, "Review"),
        ([], True, "opened"),
        (["backend"], True, "opened"),
        (["Todo"], False, "Done"),  # the first terminal state
        (["Dropped"], False, "Dropped"),
        (["Dropped", "Done"], False, "Done"),
        (["Review"], False, "Done"),
    ],
)
def test_of_several_labels_the_one_counts_that_starts_no_agent(
    labels: list[str], is_open: bool, state: str
) -> None:
    """The precedence is fixed, and does not depend on the order of the labels."""
    assert PLAIN.state_of(labels, is_open=is_open) == state
    assert PLAIN.state_of(labels[::-1], is_open=is_open) == state


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
    assert SCOPED.state_of(labels, is_open=True) == state


def test_gitlab_s_own_states_can_be_named() -> None:
    """They are those of issues without a label, and no labels themselves."""
    assert NATIVE.state_of([], is_open=True) == "Opened"
    assert NATIVE.state_of(["doing"], is_open=True) == "Doing"
    assert NATIVE.state_of(["Opened"], is_open=False) == "closed"
    assert NATIVE.state_of(["dropped"], is_open=False) == "Dropped"
    assert NATIVE.label_of("OPENED") is None
    assert list(NATIVE.needed()) == [
        ("Dropped", "Dropped"),
        ("Review", "Review"),
        ("Doing", "Doing"),
    ]


def test_without_terminal_states_a_closed_issue_is_closed() -> None:
    """Whatever its labels say: nobody works on it."""
    labels = StateLabels(TrackerStates(active=("Todo",)))

    assert labels.state_of(["Todo"], is_open=False) == "closed"


def test_labels_of_states_are_no_labels_of_issues() -> None:
    """So that moving an issue is no change of its content."""
    assert PLAIN.plain(["Todo", "backend", " done"]) == ("backend",)
    assert SCOPED.plain(["Todo", "status::Todo", "status::x", "backend"]) == ("Todo", "backend")


@pytest.mark.parametrize(
    ("labels", "is_open", "state", "change"),
    [
        (
            ["Todo", "backend"],
            True,
            "In Progress",
            LabelChange(add=("In Progress",), remove=("Todo",)),
        ),
        (
            ["TODO", "Todo", "x"],
            True,
            "review",
            LabelChange(add=("Review",), remove=("TODO", "Todo")),
        ),
        (["review", "Todo"], True, "Review", LabelChange(remove=("Todo",))),
        (["Review"], True, "Review", LabelChange()),
        (["Review"], True, "Done", LabelChange(add=("Done",), remove=("Review",), event="close")),
        (["Done"], False, "Todo", LabelChange(add=("Todo",), remove=("Done",), event="reopen")),
        (["Done"], False, "Dropped", LabelChange(add=("Dropped",), remove=("Done",))),
    ],
)
def test_a_change_takes_off_every_label_of_another_state(
    labels: list[str], is_open: bool, state: str, change: LabelChange
) -> None:
    """As the issue spells it, and no other label; it closes and reopens as the state asks."""
    assert PLAIN.change(labels, state, is_open=is_open) == change


def test_gitlab_s_own_states_are_reached_by_taking_labels_off() -> None:
    """No label "closed" is made."""
    assert NATIVE.change(["Doing", "x"], "closed", is_open=True) == LabelChange(
        remove=("Doing",), event="close"
    )
    assert NATIVE.change(["Dropped"], "opened", is_open=False) == LabelChange(
        remove=("Dropped",), event="reopen"
    )


@pytest.mark.parametrize("labels", [PLAIN, SCOPED, NATIVE])
def test_a_change_leads_to_its_state(labels: StateLabels) -> None:
    """From whatever labels, an issue is then in the state that was asked for."""
    names = [name for name, _ in labels.needed()]
    marks = [label for _, label in labels.needed()]
    for before in ([], marks, ["backend", marks[0].upper()]):
        for is_open in (True, False):
            for name in names:
                change = labels.change(before, name, is_open=is_open)
                after = [x for x in [*before, *change.add] if x not in change.remove]
                now_open = is_open if change.event is None else change.event == "reopen"

                assert labels.state_of(after, is_open=now_open) == name
