"""States that are labels of Linear: how issues are listed and moved, and what is told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from sortie.model import Issue, IssueId, TrackerError, TrackerErrorKind
from sortie.trackers import Tracker, TrackerStates
from tests.trackers.linear.rig import opened
from tests.trackers.linear.service import LinearService
from tests.trackers.linear.test_checks import diagnosed
from tests.trackers.linear.test_writes import LOST
from tests.trackers.server.exchange import Received
from tests.trackers.server.faults import Fault, Reset
from tests.trackers.server.serving import TestServer

STATES = TrackerStates(
    active=("Todo", "to build", "verify"),
    terminal=("Done",),
    handoff="Review",
    labels=("verify", "to build"),
)


@pytest.fixture
async def tracker(server: TestServer) -> AsyncIterator[Tracker]:
    """A tracker with these states."""
    async with opened(server, states=STATES) as found:
        yield found


async def listed(tracker: Tracker, *states: str) -> dict[str, str]:
    """Return the states of the candidates by identifier."""
    return {i.identifier: i.state for i in await tracker.fetch_candidates(states)}


async def read(tracker: Tracker, node: Any) -> Issue:
    """Return an issue as it is."""
    (issue,) = (await tracker.fetch_by_ids([IssueId(node["id"])])).issues
    return issue


def stands(service: LinearService, issue: Issue) -> tuple[str, list[str]]:
    """Return the own state and the labels of an issue."""
    return service.issues[issue.id]["state"]["name"], service.labels_of(issue.id)


async def test_an_issue_is_listed_by_its_label_and_not_by_its_own_state(
    service: LinearService, tracker: Tracker
) -> None:
    """Whatever that is, unless it is over; changes are seen by the next poll."""
    service.put()
    service.put(labels=["to build", "bug"])
    moves = service.put(state="Backlog", labels=["To Build"])
    service.put(state="Done", labels=["to build"])
    service.put(state="Dropped", labels=["to build"])  # over by its type alone
    service.put(labels=["to build", "verify"])
    service.put(state="In Progress")

    assert await listed(tracker, "to build") == {"ENG-2": "to build", "ENG-3": "to build"}
    known = {issue.identifier for issue in tracker.overview().issues}
    assert known == {"ENG-2", "ENG-3", "ENG-6"}  # what is over is not even asked for
    assert await listed(tracker, "Todo") == {"ENG-1": "Todo"}
    every = {"ENG-1": "Todo", "ENG-2": "to build", "ENG-3": "to build", "ENG-6": "verify"}
    assert await listed(tracker, *STATES.active) == every
    (bug,) = (i for i in await tracker.fetch_candidates(["to build"]) if i.identifier == "ENG-2")
    assert bug.labels == ("to build", "bug")

    await listed(tracker, *STATES.active)
    service.put(moves["id"], labels=[])
    service.put(bug.id, labels=["verify"])
    del every["ENG-3"]
    assert await listed(tracker, *STATES.active) == {**every, "ENG-2": "verify"}


async def test_labels_beyond_the_first_page_count(service: LinearService, tracker: Tracker) -> None:
    """In lists, in re-reads, and where they are taken off."""
    names = [f"label {number}" for number in range(30)]
    node = service.put(labels=[*names, "to build"])

    found = await listed(tracker, *STATES.active)
    moved = await tracker.transition(await read(tracker, node), "Review")

    assert found == {"ENG-1": "to build"}
    assert stands(service, moved) == ("Review", names)


async def test_a_move_is_one_change_of_state_and_labels(
    service: LinearService, server: TestServer, tracker: Tracker
) -> None:
    """Own state and other labels stay where they are meant to."""
    service.label("verify")
    node = service.put(labels=["bug", "To build"])
    issue = await read(tracker, node)

    checked = await tracker.transition(issue, " VERIFY")
    labelled = stands(service, checked)
    handed_off = await tracker.transition(checked, "review")

    assert (issue.state, checked.state, checked.labels) == ("to build", "verify", ("bug", "verify"))
    assert labelled == ("Todo", ["bug", "verify"])
    assert (handed_off.state, stands(service, handed_off)) == ("Review", ("Review", ["bug"]))
    assert service.operations.count("SortieMove") == 2
    moves = [r.json["variables"] for r in server.asked if b"mutation SortieMove(" in r.body]
    assert [set(each) for each in moves] == [{"id", "add", "remove"}, {"id", "state", "remove"}]


async def test_the_teams_own_label_goes_before_one_of_the_workspace(
    service: LinearService, tracker: Tracker
) -> None:
    """A retired one, and that of another team, are none."""
    service.add_team("OPS")
    service.label("verify", team="OPS")
    service.label("verify")
    service.label("verify", team="ENG", retiredAt=service.now())
    ours = service.label("Verify", team="ENG")
    issue = await read(tracker, service.put())

    moved = await tracker.transition(issue, "verify")

    assert service.issues[moved.id]["label_list"] == [ours]


async def test_a_label_that_is_missing_is_made_once(
    service: LinearService, tracker: Tracker
) -> None:
    """For the team, as the settings spell it."""
    first, second = await read(tracker, service.put()), await read(tracker, service.put())

    moved = [await tracker.transition(issue, "TO BUILD") for issue in (first, second)]

    assert [issue.state for issue in moved] == ["to build"] * 2
    assert [(label["name"], label["team"]["key"]) for label in service.labels] == [
        ("to build", "ENG")
    ]
    assert service.operations.count("SortieMakeLabel") == 1


@pytest.mark.parametrize("fault", LOST.values(), ids=LOST)
async def test_a_label_whose_making_was_not_heard_of_is_found(
    service: LinearService, server: TestServer, tracker: Tracker, fault: Fault
) -> None:
    """It is there, and no second one is made."""
    issue = await read(tracker, service.put())
    server.inject(fault, body="SortieMakeLabel")

    moved = await tracker.transition(issue, "verify")

    assert moved.state == "verify"
    assert [label["name"] for label in service.labels] == ["verify"]


async def test_a_key_that_may_make_no_label_is_told_so(
    service: LinearService, tracker: Tracker
) -> None:
    """What to do stands in the error; once somebody has made it, the move is made."""
    service.may_make_labels = False
    issue = await read(tracker, service.put())

    with pytest.raises(TrackerError, match="make it in Linear, for the team") as told:
        await tracker.transition(issue, "verify")
    service.label("verify")
    moved = await tracker.transition(issue, "verify")

    assert told.value.kind is TrackerErrorKind.PERMISSION
    assert moved.state == "verify"


async def test_a_label_that_was_deleted_is_looked_for_again(
    service: LinearService, tracker: Tracker
) -> None:
    """The move that meets it fails, the next one makes it anew."""
    service.label("verify")
    await tracker.transition(await read(tracker, service.put()), "verify")
    service.labels.clear()
    issue = await read(tracker, service.put())

    with pytest.raises(TrackerError):
        await tracker.transition(issue, "verify")
    moved = await tracker.transition(issue, "verify")

    assert moved.state == "verify"


@pytest.mark.parametrize("fault", LOST.values(), ids=LOST)
@pytest.mark.parametrize("state", ["verify", "Review"])
async def test_a_move_whose_answer_was_lost_is_looked_for(
    service: LinearService, server: TestServer, tracker: Tracker, fault: Fault, state: str
) -> None:
    """It was made, labels and all, and is not made again."""
    service.label("verify")
    issue = await read(tracker, service.put(labels=["to build"]))
    server.inject(fault, body="mutation SortieMove[(]")

    moved = await tracker.transition(issue, state)

    assert moved.state == state
    assert stands(service, issue) == (("Todo", ["verify"]) if state == "verify" else ("Review", []))
    assert service.operations.count("SortieMove") == 1


async def test_who_moves_the_issue_meanwhile_is_not_overwritten(
    service: LinearService, server: TestServer, tracker: Tracker
) -> None:
    """Before our look it is a conflict and nothing is written; after it an end stays an end."""
    service.label("verify")
    issue = await read(tracker, service.put(labels=["to build"]))
    service.put(issue.id, labels=["verify"])

    with pytest.raises(TrackerError) as early:
        await tracker.transition(issue, "Review")
    written = "SortieMove" in service.operations
    service.put(issue.id, labels=["to build"])

    def overtake(request: Received) -> None:
        if b"mutation SortieMove(" in request.body:
            service.put(issue.id, state="Done")

    server.after = overtake
    server.inject(Reset(performed=True), body="mutation SortieMove[(]")
    with pytest.raises(TrackerError) as late:
        await tracker.transition(issue, "verify")

    assert (early.value.kind, written) == (TrackerErrorKind.CONFLICT, False)
    assert late.value.kind is TrackerErrorKind.CONFLICT
    assert stands(service, issue)[0] == "Done"


async def test_what_is_left_on_an_issue_that_is_over_is_taken_off(
    service: LinearService, tracker: Tracker
) -> None:
    """As where a person has closed it; and an issue that is over is reopened for a label."""
    service.label("verify")
    node = service.put(state="Done", labels=["to build", "bug"])

    await tracker.complete_move(await read(tracker, node))
    left = service.labels_of(node["id"])
    moved = await tracker.transition(await read(tracker, node), "verify")

    assert left == ["bug"]
    assert (moved.state, stands(service, moved)) == ("verify", ("Todo", ["bug", "verify"]))


async def test_a_label_that_is_a_state_too_fails_polls_until_it_is_none(
    service: LinearService, server: TestServer
) -> None:
    """The team is asked again each time, as either may have been renamed."""
    service.put(labels=["Review"])
    both = replace(STATES, labels=("verify", "review"))
    async with opened(server, states=both) as tracker:
        with pytest.raises(TrackerError, match="label_states") as told:
            await listed(tracker, "Todo")
        tracker.configure(STATES)
        after = await listed(tracker, "Todo")
        tracker.configure(both)
        with pytest.raises(TrackerError, match="label_states"):
            await listed(tracker, "Todo")
        service.state("Review")["name"] = "In review"
        renamed = await listed(tracker, "Todo", "review")

    assert told.value.kind is TrackerErrorKind.INVALID
    assert '"Review" is a state of team ENG' in str(told.value)
    assert (after, renamed) == ({"ENG-1": "Todo"}, {"ENG-1": "review"})


async def test_only_labels_can_be_asked_for(service: LinearService, tracker: Tracker) -> None:
    """No state of the team's is looked for then."""
    service.put(labels=["verify"])

    assert await listed(tracker, "verify") == {"ENG-1": "verify"}
    assert service.operations == ["SortieTeam", "SortieIssues"]


async def test_a_group_of_labels_is_no_state(service: LinearService, tracker: Tracker) -> None:
    """It can be on no issue."""
    service.label("Verify", isGroup=True)
    issue = await read(tracker, service.put())

    with pytest.raises(TrackerError, match="is a group") as told:
        await tracker.transition(issue, "verify")

    assert told.value.kind is TrackerErrorKind.INVALID


async def test_the_doctor_looks_for_labels(service: LinearService, server: TestServer) -> None:
    """One that is missing is a warning, a group or a state of the team's a failure."""
    service.label("To build")
    missing = await diagnosed(server, states=STATES)
    group = service.label("verify", isGroup=True)
    grouped = await diagnosed(server, states=STATES)
    group["isGroup"] = False
    well = await diagnosed(server, states=STATES)
    both = await diagnosed(server, states=replace(STATES, labels=(*STATES.labels, "done")))

    assert missing["states"][:2] == (
        "warning",
        'team ENG has no label "verify", which the first move to that state makes',
    )
    assert grouped["states"][0] == "failed"
    assert '"verify" is a group' in grouped["states"][1]
    assert well["states"][0] == "ok"
    assert well["states"][1].endswith("labels are verify, to build")
    assert both["states"][:2] == (
        "failed",
        'tracker.label_states: "Done" is a state of team ENG itself',
    )
