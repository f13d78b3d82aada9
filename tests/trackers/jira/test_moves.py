"""Moves: by the status that is meant, read before and after, and nobody else's overwritten."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from sortie.model import Issue, LostAnswer, TrackerError, TrackerErrorKind
from tests.trackers.jira.conftest import Jira
from tests.trackers.jira.server import Way
from tests.trackers.server.exchange import Received, Reply
from tests.trackers.server.faults import Fault, Html, Instead, Refuse, Reset, Truncate

POSTS = "/transitions$"


async def first(jira: Jira) -> Issue:
    """Return the issue PROJ-1, which is in Todo."""
    jira.service.put(1)
    found = await jira.tracker.find("PROJ-1")
    assert found is not None
    return found


async def refused(jira: Jira, issue: Issue, state: str) -> TrackerError:
    """Return what a move is refused with."""
    with pytest.raises(TrackerError) as told:
        await jira.tracker.transition(issue, state)
    return told.value


def status(jira: Jira) -> str:
    """Return the status of PROJ-1."""
    return jira.service.issues[10001].status


async def test_a_transition_is_chosen_by_where_it_leads(jira: Jira) -> None:
    """Not by its name; the lowest id of those that ask for nothing, compared as a number."""
    field = {"required": True, "name": "Resolution", "key": "resolution", "operations": ["set"]}
    jira.service.ways = [
        Way(id=4, to="Done", name="Review"),
        Way(id=3, to="Review", name="A", fields={"resolution": {**field, "schema": {"type": "x"}}}),
        Way(id=100, to="Review", name="Finish"),
        Way(id=21, to="Review", name="Done"),
    ]
    issue = await first(jira)

    moved = await jira.tracker.transition(issue, " review")

    assert (moved.state, status(jira)) == ("Review", "Review")
    (asked,) = (r.json for r in jira.server.asked if r.method == "POST" and POSTS[:-1] in r.path)
    assert asked == {"transition": {"id": "21"}}


async def test_a_required_field_is_told_with_its_values(jira: Jira) -> None:
    """Nothing is guessed: who set up the workflow is told what to mend."""
    field: dict[str, Any] = {
        "required": True,
        "name": "Resolution",
        "key": "resolution",
        "operations": ["set"],
        "schema": {"type": "resolution"},
        "allowedValues": [{"name": "Fixed"}, {"name": "Won't Do"}],
    }
    jira.service.ways = [Way(id=1, to="Review", name="Finish", fields={"resolution": field})]
    issue = await first(jira)

    error = await refused(jira, issue, "Review")

    assert error.kind is TrackerErrorKind.INVALID
    assert "Resolution (Fixed, Won't Do)" in str(error)
    assert jira.server.count("POST", POSTS) == 0
    jira.service.ways[0].fields["resolution"] = {**field, "hasDefaultValue": True}
    assert (await jira.tracker.transition(issue, "Review")).state == "Review"


async def test_where_no_transition_leads_is_told(jira: Jira) -> None:
    """With the statuses to which one does."""
    jira.service.ways = [Way(id=1, to="In Progress"), Way(id=2, to="Done")]

    error = await refused(jira, await first(jira), "Review")

    assert error.kind is TrackerErrorKind.INVALID
    assert "only to Done, In Progress" in str(error)


async def test_no_transition_at_all_is_a_lack_of_permission(jira: Jira) -> None:
    """Jira offers an empty list then, and no error."""
    jira.service.may_transition = False

    error = await refused(jira, await first(jira), "Review")

    assert error.kind is TrackerErrorKind.PERMISSION


async def test_a_move_that_was_made_already_is_a_success(jira: Jira) -> None:
    """As after a crash: nothing is written again."""
    issue = await first(jira)
    jira.service.edit(1, status="Review")

    moved = await jira.tracker.transition(issue, "Review")

    assert moved.state == "Review"
    assert jira.server.count("POST", POSTS) == 0


async def test_a_lost_race_is_a_conflict(jira: Jira) -> None:
    """Between our look and our move a person moves the issue, and the workflow has no way from
    there: Jira refuses, with 400 or 500, and the person's status stays."""
    jira.service.ways = [
        Way(id=1, to="Review", source="Todo"),
        Way(id=2, to="Done", source="Dropped"),
    ]
    issue = await first(jira)

    def person(request: Received) -> None:
        if request.method == "POST":
            jira.service.edit(1, status="Dropped")

    jira.server.before = person
    error = await refused(jira, issue, "Review")

    assert (error.kind, status(jira)) == (TrackerErrorKind.CONFLICT, "Dropped")


def made(reply: Reply) -> Reply:
    """Return a refusal in the place of a success."""
    return Reply(status=502, body={"errorMessages": ["bad gateway"]}, sound=False)


LOST: dict[str, Fault] = {
    "reset after it was made": Reset(performed=True),
    "502 after it was made": Instead(made),
}


@pytest.mark.parametrize("fault", LOST.values(), ids=LOST)
async def test_a_lost_answer_of_a_move_that_was_made_is_a_success(jira: Jira, fault: Fault) -> None:
    """The issue is read, and is where it should be; nothing is sent twice."""
    issue = await first(jira)
    jira.server.inject(fault, method="POST", path=POSTS)

    moved = await jira.tracker.transition(issue, "Review")

    assert moved.state == "Review"
    assert jira.server.count("POST", POSTS) == 1


NOT_MADE: dict[str, tuple[Fault, TrackerErrorKind]] = {
    "reset": (Reset(performed=False), TrackerErrorKind.UNAVAILABLE),
    "500": (Refuse(status=500), TrackerErrorKind.UNAVAILABLE),
    "503": (Refuse(status=503), TrackerErrorKind.CLOSED),
    "401": (Refuse(status=401), TrackerErrorKind.CLOSED),
    "403": (Refuse(status=403), TrackerErrorKind.PERMISSION),
    "404": (Refuse(status=404), TrackerErrorKind.NOT_FOUND),
    "409": (Refuse(status=409), TrackerErrorKind.CONFLICT),
    "413": (Refuse(status=413), TrackerErrorKind.INVALID),
    "422": (Refuse(status=422), TrackerErrorKind.INVALID),
    "a page of a proxy": (Html(status=200), TrackerErrorKind.UNAVAILABLE),
}


@pytest.mark.parametrize(("fault", "kind"), NOT_MADE.values(), ids=NOT_MADE)
async def test_a_move_that_was_not_made_says_so(
    jira: Jira, fault: Fault, kind: TrackerErrorKind
) -> None:
    """It is sent once, and the next try makes it."""
    issue = await first(jira)
    jira.server.inject(fault, method="POST", path=POSTS)

    error = await refused(jira, issue, "Review")
    once = jira.server.count("POST", POSTS)
    moved = await jira.tracker.transition(issue, "Review")

    assert (error.kind, once, moved.state) == (kind, 1, "Review")


async def test_a_move_that_cannot_be_looked_at_is_lost(jira: Jira) -> None:
    """The answer is lost, and so is the look: an error that may be tried again."""
    issue = await first(jira)
    jira.server.inject(Reset(performed=True), method="POST", path=POSTS)
    jira.server.inject(Truncate(), method="GET", path="/issue/10001$", skip=1)

    error = await refused(jira, issue, "Review")
    again = await jira.tracker.transition(issue, "Review")

    assert error.kind is TrackerErrorKind.UNAVAILABLE
    assert not isinstance(error, LostAnswer)  # a look changes nothing
    assert (again.state, jira.server.count("POST", POSTS)) == ("Review", 1)


async def test_an_issue_of_another_project_is_not_moved(jira: Jira) -> None:
    """It answers under its id, and has another project and other statuses."""
    issue = await first(jira)
    jira.service.edit(1, project="OTHER", key="OTHER-9")

    error = await refused(jira, issue, "Review")
    read = await jira.tracker.fetch_by_ids([issue.id])

    assert error.kind is TrackerErrorKind.NOT_FOUND
    assert (read.issues, dict(read.failed), await jira.tracker.find("OTHER-9")) == ((), {}, None)
    assert jira.server.count("POST", POSTS) == 0


async def test_ids_last_and_keys_may_change(jira: Jira) -> None:
    """An issue whose key has changed within the project is the same issue."""
    issue = await first(jira)
    jira.service.edit(1, key="PROJ-77")

    moved = await jira.tracker.transition(issue, "Review")

    assert (moved.id, moved.identifier) == (issue.id, "PROJ-77")
    assert replace(moved, identifier="PROJ-1").url == "https://jira.example.org/browse/PROJ-77"


async def test_a_refusal_for_a_limit_leaves_jira_alone(jira: Jira) -> None:
    """The seconds are told at once, and nothing else is asked."""
    issue = await first(jira)
    jira.server.inject(Refuse(status=429, headers={"Retry-After": "9"}), method="POST", path=POSTS)
    jira.asked()

    error = await refused(jira, issue, "Review")

    assert (error.kind, error.retry_after) == (TrackerErrorKind.UNAVAILABLE, 9.0)
    assert jira.asked()[-1].startswith("POST")
