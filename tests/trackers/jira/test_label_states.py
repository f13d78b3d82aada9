"""States that are labels of Jira: how issues are listed and moved, and what is told."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from sortie.model import Issue, IssueId, TrackerError, TrackerErrorKind
from sortie.model.checks import CheckOutcome
from sortie.trackers import TrackerStates
from sortie.trackers.jira.tracker import JiraTracker
from tests.trackers.jira.conftest import Jira
from tests.trackers.jira.server import Way
from tests.trackers.server.exchange import Received
from tests.trackers.server.faults import Fault, Refuse, Reset

STATES = TrackerStates(
    active=("Todo", "build", "check"),
    terminal=("Done",),
    handoff="Review",
    labels=("check", "build"),
)
EDIT, MOVE = "/issue/10001$", "/transitions$"


@pytest.fixture
async def tracker(jira: Jira) -> AsyncIterator[JiraTracker]:
    """A tracker with these states."""
    async with jira.opened(states=STATES) as found:
        yield found


async def listed(tracker: JiraTracker, *states: str) -> dict[str, str]:
    """Return the states of the candidates by key."""
    return {i.identifier: i.state for i in await tracker.fetch_candidates(states)}


async def read(tracker: JiraTracker) -> Issue:
    """Return PROJ-1 as it is."""
    (issue,) = (await tracker.fetch_by_ids([IssueId("10001")])).issues
    return issue


def stands(jira: Jira) -> tuple[str, list[str]]:
    """Return the status and the labels of PROJ-1."""
    record = jira.service.issues[10001]
    return record.status, record.labels


async def refused(tracker: JiraTracker, issue: Issue, state: str) -> TrackerError:
    """Return what a move is refused with."""
    with pytest.raises(TrackerError) as told:
        await tracker.transition(issue, state)
    return told.value


async def test_an_issue_is_listed_by_its_label_and_not_by_its_status(
    jira: Jira, tracker: JiraTracker
) -> None:
    """Whatever its status is, unless it is over; written as people write."""
    jira.service.put(1)
    jira.service.put(2, labels=["build", "bug"])
    jira.service.put(3, status="In Progress", labels=["Build"])
    jira.service.put(4, status="Done", labels=["build"])
    jira.service.put(5, status="Dropped", labels=["build"])  # over by its category alone
    jira.service.put(6, labels=["build", "check"])
    jira.service.put(7, status="In Progress")

    assert await listed(tracker, "build") == {"PROJ-2": "build", "PROJ-3": "build"}
    known = {issue.identifier for issue in tracker.overview().issues}
    assert known == {"PROJ-2", "PROJ-3", "PROJ-6"}  # what is over is not even asked for
    assert await listed(tracker, "Todo") == {"PROJ-1": "Todo"}
    every = {"PROJ-1": "Todo", "PROJ-2": "build", "PROJ-3": "build", "PROJ-6": "check"}
    assert await listed(tracker, *STATES.active) == every
    (bug,) = (i for i in await tracker.fetch_candidates(["build"]) if i.identifier == "PROJ-2")
    assert bug.labels == ("build", "bug")


async def test_labels_that_people_change_are_seen_by_the_next_poll(
    jira: Jira, tracker: JiraTracker
) -> None:
    """An issue comes, changes and leaves by its labels, with one search; with a filter too."""
    jira.service.put(1)
    jira.service.put(2, status="Review", labels=["agent"])
    jira.service.put(3, labels=["build", "agent"])
    async with jira.opened(states=STATES, query_filter="labels = agent") as filtered:
        before = await listed(tracker, *STATES.active), await listed(filtered, *STATES.active)
        jira.service.edit(1, labels=["check", "agent"])
        jira.service.edit(2, labels=["build", "agent"])
        jira.service.edit(3, labels=["agent"], status="Review")
        jira.asked()
        after = await listed(tracker, *STATES.active)
        asked = jira.asked()
        after_filtered = await listed(filtered, *STATES.active)

    assert before == ({"PROJ-1": "Todo", "PROJ-3": "build"}, {"PROJ-3": "build"})
    assert after == after_filtered == {"PROJ-1": "check", "PROJ-2": "build"}
    assert len(asked) == 1


async def test_a_move_between_labels_is_one_edit(jira: Jira, tracker: JiraTracker) -> None:
    """It adds and takes off, leaves the status and all other labels, and takes no transition."""
    jira.service.put(1, labels=["bug", "BUILD"])
    issue = await read(tracker)
    jira.asked()

    moved = await tracker.transition(issue, " Check")

    assert (issue.state, moved.state, moved.labels) == ("build", "check", ("bug", "check"))
    assert stands(jira) == ("Todo", ["bug", "check"])
    edits = [r.json for r in jira.server.asked if r.method == "PUT"]
    assert edits == [{"update": {"labels": [{"add": "check"}, {"remove": "BUILD"}]}}]
    assert jira.server.count("POST", MOVE) == 0


async def test_a_label_that_is_there_gets_no_twin(jira: Jira, tracker: JiraTracker) -> None:
    """A person has put two on an issue; the one that is meant stays as it is spelled."""
    jira.service.put(1, labels=["BUILD", "check"])
    issue = await read(tracker)

    moved = await tracker.transition(issue, "build")

    assert (issue.state, moved.state, stands(jira)) == ("check", "build", ("Todo", ["BUILD"]))


async def test_a_move_to_a_status_takes_the_label_off_at_last(
    jira: Jira, tracker: JiraTracker
) -> None:
    """The transition comes first: cut off between the two, the issue is still where it was."""
    jira.service.put(1, labels=["build", "bug"])
    issue = await read(tracker)
    jira.server.inject(Refuse(status=503), method="PUT", path=EDIT)

    error = await refused(tracker, issue, "Review")
    between = await read(tracker)
    moved = await tracker.transition(between, "Review")

    assert error.kind is TrackerErrorKind.CLOSED
    assert between.state == "build"
    assert (moved.state, stands(jira)) == ("Review", ("Review", ["bug"]))
    assert jira.server.count("POST", MOVE) == 1


async def test_what_a_move_to_the_end_has_left_is_taken_off(
    jira: Jira, tracker: JiraTracker
) -> None:
    """The status counts at once there; the label goes when the move is completed."""
    jira.service.put(1, labels=["build", "bug"])
    issue = await read(tracker)
    jira.server.inject(Refuse(status=503), method="PUT", path=EDIT)

    await refused(tracker, issue, "Done")
    between = await read(tracker)
    await tracker.complete_move(between)
    jira.asked()
    await tracker.complete_move(await read(tracker))

    assert between.state == "Done"
    assert stands(jira) == ("Done", ["bug"])
    assert [told for told in jira.asked() if told.startswith("P") and "bulk" not in told] == []


LOST: dict[str, tuple[str, str, str, Fault]] = {
    "an edit that was made": ("check", "PUT", EDIT, Reset(performed=True)),
    "an edit of a move to a status": ("Review", "PUT", EDIT, Reset(performed=True)),
    "a transition that was made": ("Review", "POST", MOVE, Reset(performed=True)),
}


@pytest.mark.parametrize(("state", "method", "path", "fault"), LOST.values(), ids=LOST)
async def test_a_lost_answer_is_looked_for(
    jira: Jira, tracker: JiraTracker, state: str, method: str, path: str, fault: Fault
) -> None:
    """The move goes on where it stands, and nothing is made twice."""
    jira.service.put(1, labels=["build"])
    issue = await read(tracker)
    jira.server.inject(fault, method=method, path=path)

    moved = await tracker.transition(issue, state)

    assert moved.state == state
    assert stands(jira) == (("Todo", ["check"]) if state == "check" else ("Review", []))
    assert jira.server.count("PUT", EDIT) == 1
    assert jira.server.count("POST", MOVE) == (state == "Review")


async def test_an_edit_that_was_not_made_is_an_outage(jira: Jira, tracker: JiraTracker) -> None:
    """The next try makes it."""
    jira.service.put(1, labels=["build"])
    issue = await read(tracker)
    jira.server.inject(Reset(performed=False), method="PUT", path=EDIT)

    error = await refused(tracker, issue, "check")
    moved = await tracker.transition(issue, "check")

    assert (error.kind, moved.state) == (TrackerErrorKind.UNAVAILABLE, "check")


@pytest.mark.parametrize("change", ["label", "end"])
async def test_who_moves_the_issue_meanwhile_is_not_overwritten(
    jira: Jira, tracker: JiraTracker, change: str
) -> None:
    """Before our look it is a conflict and nothing is written; after it the end stays an end."""
    jira.service.put(1, labels=["build"])
    issue = await read(tracker)

    def person(request: Received) -> None:
        if request.method == "PUT":
            jira.service.edit(1, status="Done")

    if change == "label":
        jira.service.edit(1, labels=["check"])
    else:
        jira.server.before = person
    error = await refused(tracker, issue, "Review" if change == "label" else "check")

    assert error.kind is TrackerErrorKind.CONFLICT
    assert stands(jira)[0] == ("Todo" if change == "label" else "Done")
    assert (await read(tracker)).state == ("check" if change == "label" else "Done")


async def test_an_issue_that_is_over_is_reopened_for_a_label(
    jira: Jira, tracker: JiraTracker
) -> None:
    """In the first active status, by a transition; where none leads there that is told."""
    jira.service.put(1, status="Done")
    issue = await read(tracker)

    moved = await tracker.transition(issue, "build")
    jira.service.edit(1, status="Done", labels=[])
    jira.service.ways = [Way(id=1, to="Review")]
    error = await refused(tracker, replace(issue, state="Done"), "build")

    assert (moved.state, moved.labels) == ("build", ("build",))
    assert error.kind is TrackerErrorKind.INVALID
    assert "only to Review" in str(error)
    assert (await read(tracker)).state == "Done"


@pytest.mark.parametrize("lacks", ["screen", "permission"])
async def test_an_account_that_may_not_label_is_told_what_it_needs(
    jira: Jira, tracker: JiraTracker, lacks: str
) -> None:
    """Jira speaks of a screen, or of a permission."""
    jira.service.put(1)
    issue = await read(tracker)
    if lacks == "screen":
        jira.service.has_labels_on_screen = False
    else:
        jira.service.may_edit = False

    error = await refused(tracker, issue, "build")

    kinds = {"screen": TrackerErrorKind.INVALID, "permission": TrackerErrorKind.PERMISSION}
    assert error.kind is kinds[lacks]
    assert "the field Labels on the screen" in str(error)
    assert "Edit issues" in str(error)


async def test_a_label_that_is_a_status_too_fails_polls_until_it_is_none(jira: Jira) -> None:
    """Nobody could tell what an issue with both is in."""
    jira.service.put(1, labels=["Review"])
    both = replace(STATES, labels=("build", "review"))
    async with jira.opened(states=both) as tracker:
        with pytest.raises(TrackerError, match="label_states") as told:
            await tracker.fetch_candidates(["Todo", "build"])
        tracker.configure(STATES)
        found = await listed(tracker, "Todo", "build")

    assert told.value.kind is TrackerErrorKind.INVALID
    assert '"Review" is a status of PROJ' in str(told.value)
    assert found == {"PROJ-1": "Todo"}


async def test_only_labels_can_be_asked_for(jira: Jira, tracker: JiraTracker) -> None:
    """Statuses are compared with those of the project, and labels with nothing."""
    nothing = await listed(tracker, "build")
    jira.service.put(1, labels=["check"])

    assert (nothing, await listed(tracker, "check")) == ({}, {"PROJ-1": "check"})
    with pytest.raises(TrackerError, match='no status "Nowhere"'):
        await listed(tracker, "build", "Nowhere")


async def outcomes(jira: Jira, states: TrackerStates) -> dict[str, tuple[CheckOutcome, str]]:
    """Return what the checks of states and rights say."""
    async with jira.opened(states=states) as tracker:
        found = {c.name: await c.ask() for c in tracker.checks() if c.name in ("write", "states")}
    return {name: (each.outcome, each.sentence) for name, each in found.items()}


async def test_the_doctor_tells_labels_from_statuses(jira: Jira) -> None:
    """A label need not be there; one that is a status too is told, and so is a lack of rights."""
    well = await outcomes(jira, STATES)
    both = await outcomes(jira, replace(STATES, labels=("build", "review", "check")))
    jira.service.may_edit = False
    lacks = await outcomes(jira, STATES)
    without = await outcomes(jira, replace(STATES, active=("Todo",), labels=()))

    assert {outcome for outcome, _ in well.values()} == {CheckOutcome.OK}
    assert well["states"][1].endswith("or labels: check, build")
    assert both["states"] == (
        CheckOutcome.FAILED,
        'tracker.label_states: "Review" is a status of PROJ itself',
    )
    assert lacks["write"][0] is CheckOutcome.FAILED
    assert "Edit issues" in lacks["write"][1]
    assert without["write"][0] is CheckOutcome.OK
