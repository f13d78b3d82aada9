"""Moves and comments: read, compared, written, read again; made once whatever is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import trio

from sortie.model import Issue, IssueId, TrackerError, TrackerErrorKind
from sortie.trackers import Tracker
from tests.trackers.linear.service import LinearService
from tests.trackers.server.exchange import Received, Reply
from tests.trackers.server.faults import Fault, Instead, Refuse, Reset, Truncate
from tests.trackers.server.serving import TestServer

LOST: dict[str, Fault] = {
    "reset": Reset(performed=True),
    "truncated": Truncate(),
    "half a text": Truncate(whole=True),
    "bad gateway": Instead(lambda reply: Reply(status=502, body={}, sound=False)),
    "a page": Instead(
        lambda reply: Reply(body=b"<html></html>", content_type="text/html", sound=False)
    ),
}
"""The change is made, and its answer does not arrive."""


async def an_issue(tracker: Tracker, service: LinearService, state: str = "Todo") -> Issue:
    """Return an issue as it was read."""
    node = service.put(state=state)
    return (await tracker.fetch_by_ids([IssueId(node["id"])])).issues[0]


def state_of(service: LinearService, issue: Issue) -> str:
    """Return the state in which an issue is."""
    return str(service.issues[issue.id]["state"]["name"])


def answered_with(error: dict[str, object]) -> Instead:
    """Return a fault by which a change is made, and its answer is an error."""
    body = {"errors": [error], "data": None}
    return Instead(lambda reply: replace(reply, body=body, sound=False))


async def test_a_move_is_to_the_state_of_the_issues_own_team(
    service: LinearService, server: TestServer, tracker: Tracker
) -> None:
    """It is found by its name, however it is written, and asked for by its id."""
    service.add_team("OPS")
    issue = await an_issue(tracker, service)

    moved = await tracker.transition(issue, " in PROGRESS ")

    wanted = service.state("In Progress", "ENG")["id"]
    assert wanted != service.state("In Progress", "OPS")["id"]
    assert server.asked[-1].json["variables"]["state"] == wanted
    assert (moved.state, state_of(service, issue)) == ("In Progress", "In Progress")


async def test_a_state_that_the_team_does_not_have_is_told_with_those_it_has(
    service: LinearService, tracker: Tracker
) -> None:
    """Nothing is written."""
    issue = await an_issue(tracker, service)

    with pytest.raises(TrackerError) as told:
        await tracker.transition(issue, "Human Review")

    assert told.value.kind is TrackerErrorKind.INVALID
    assert "Backlog, Todo, In Progress" in str(told.value)
    assert "SortieMove" not in service.operations


async def test_of_moves_at_once_from_one_state_one_is_made(
    service: LinearService, tracker: Tracker
) -> None:
    """Those of this daemon go one after the other, each with a look of its own."""
    issue = await an_issue(tracker, service)
    kinds: list[TrackerErrorKind | None] = []

    async def move(state: str) -> None:
        try:
            await tracker.transition(issue, state)
        except TrackerError as error:
            kinds.append(error.kind)
        else:
            kinds.append(None)

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            for state in ("In Progress", "Review", "Done", "Dropped"):
                nursery.start_soon(move, state)

    assert sorted(map(str, kinds)) == ["None", "conflict", "conflict", "conflict"]
    assert service.operations.count("SortieMove") == 1


@pytest.mark.parametrize("fault", LOST.values(), ids=LOST)
async def test_a_move_whose_answer_was_lost_is_looked_for(
    service: LinearService, server: TestServer, tracker: Tracker, fault: Fault
) -> None:
    """It was made: that is a success, and it is not made again."""
    issue = await an_issue(tracker, service)
    server.inject(fault, body="SortieMove")

    moved = await tracker.transition(issue, "Review")

    assert moved.state == state_of(service, issue) == "Review"
    assert service.operations.count("SortieMove") == 1


async def test_a_lost_move_that_somebody_has_overtaken_is_a_conflict(
    service: LinearService, server: TestServer, tracker: Tracker
) -> None:
    """The look after it finds the issue in a third state, which stays."""
    issue = await an_issue(tracker, service)

    def overtake(request: Received) -> None:
        if b"SortieMove" in request.body:
            service.put(issue.id, state="Dropped")

    server.after = overtake
    server.inject(Reset(performed=True), body="SortieMove")

    with pytest.raises(TrackerError) as told:
        await tracker.transition(issue, "Review")

    assert told.value.kind is TrackerErrorKind.CONFLICT
    assert state_of(service, issue) == "Dropped"


@pytest.mark.parametrize(
    ("error", "made"),
    [
        ({"message": "oops", "extensions": {"type": "internal error"}}, True),
        ({"message": "busy", "extensions": {"type": "lock timeout"}}, True),
        ({"message": "odd"}, True),
    ],
)
async def test_an_error_that_may_have_come_after_the_change_is_looked_behind(
    service: LinearService,
    server: TestServer,
    tracker: Tracker,
    error: dict[str, object],
    made: bool,
) -> None:
    """Only an error that says that nothing was made is believed to."""
    issue = await an_issue(tracker, service)
    server.inject(answered_with(error), body="SortieMove")

    moved = await tracker.transition(issue, "Review")

    assert (moved.state == "Review") is made


async def test_no_success_is_none(
    service: LinearService, server: TestServer, tracker: Tracker
) -> None:
    """An answer without errors that says ``success: false`` has changed nothing."""
    issue = await an_issue(tracker, service)
    refused = Reply(body={"data": {"issueUpdate": {"success": False, "issue": None}}})
    server.inject(Refuse(status=200, body=refused.body), body="SortieMove")

    with pytest.raises(TrackerError) as told:
        await tracker.transition(issue, "Review")

    assert "no success" in str(told.value)


@pytest.mark.parametrize("change", ["trash", "archive", "leave"])
async def test_an_issue_that_has_gone_is_not_moved(
    service: LinearService, tracker: Tracker, change: str
) -> None:
    """Neither out of the trash nor out of the archive, nor in another team."""
    service.add_team("OPS")
    issue = await an_issue(tracker, service)
    changes: dict[str, Callable[[], object]] = {
        "trash": lambda: service.trash(issue.id),
        "archive": lambda: service.put(issue.id, archivedAt=service.now()),
        "leave": lambda: service.move(issue.id, "OPS"),
    }
    changes[change]()

    with pytest.raises(TrackerError) as told:
        await tracker.transition(issue, "Done")

    assert told.value.kind is TrackerErrorKind.NOT_FOUND
    assert "SortieMove" not in service.operations


@pytest.mark.parametrize("repeats", ["error", "same"])
async def test_a_repeated_comment_is_made_once_whatever_linear_answers(
    service: LinearService, tracker: Tracker, repeats: str
) -> None:
    """Linear may refuse an id that is there, or answer as if nothing were."""
    service.repeats = repeats
    issue = await an_issue(tracker, service)

    await tracker.comment(issue, "done", "run-1:completion")
    await tracker.comment(issue, "done", "run-1:completion")
    await tracker.comment(issue, "failed", "run-2:failure")
    await tracker.comment(issue, "anything")
    await tracker.comment(issue, "anything")

    assert service.said(issue.id) == ["done", "failed", "anything", "anything"]


async def test_a_comment_subscribes_nobody(
    service: LinearService, server: TestServer, tracker: Tracker
) -> None:
    """The owner of the key is not told of every issue from then on."""
    issue = await an_issue(tracker, service)

    await tracker.comment(issue, "hello", "k")

    assert "doNotSubscribeToIssue: true" in server.asked[-1].json["query"]
