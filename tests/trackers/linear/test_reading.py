"""What is read from Linear: whole lists, the right states, and what is not there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sortie.model import Blocker, IssueId, TrackerError, TrackerErrorKind
from sortie.trackers import Tracker
from tests.trackers.linear.rig import opened
from tests.trackers.linear.service import LinearService
from tests.trackers.server.faults import Instead
from tests.trackers.server.serving import TestServer

TODO = ("Todo",)


async def test_nested_lists_are_whole(service: LinearService, tracker: Tracker) -> None:
    """Labels, blockers and comments beyond the first page arrive, in lists and re-reads."""
    labels = [f"label {number}" for number in range(45)]
    issue = service.put(labels=labels)
    for number in range(25):
        blocker = service.put(state="Backlog", title=f"Blocker {number}")
        service.block(issue["id"], blocker["id"])
    for number in range(120):
        service.say(issue["id"], f"comment {number}")

    (listed,) = await tracker.fetch_candidates(TODO)
    (read,) = (await tracker.fetch_by_ids([IssueId(issue["id"])])).issues

    assert list(listed.labels) == labels
    assert read.labels == listed.labels
    assert len(read.blocked_by) == len(listed.blocked_by) == 25
    assert [comment.body for comment in read.comments] == [f"comment {n}" for n in range(120)]


async def test_older_comments_are_not_read_again_at_each_look(
    service: LinearService, tracker: Tracker
) -> None:
    """While the first page is what it was; a new or an edited comment has all of them read."""
    issue_id = service.put()["id"]
    for number in range(120):
        last = service.say(issue_id, f"comment {number}")
    ids = [IssueId(issue_id)]

    async def look() -> tuple[int, list[str]]:
        before = len(service.operations)
        (read,) = (await tracker.fetch_by_ids(ids)).issues
        return len(service.operations) - before, [comment.body for comment in read.comments]

    first, again = await look(), await look()
    service.say(issue_id, "a new one")
    more = await look()
    oldest = next(iter(service.comments.values()))
    oldest |= {"body": "edited", "updatedAt": service.now()}
    edited = await look()

    assert (first[0], again[0], more[0], edited[0]) == (2, 1, 2, 2)
    assert again[1] == first[1]
    assert len(more[1]) == 121
    assert edited[1][0] == "edited"
    assert last["body"] in edited[1]


async def test_whoever_spoke_has_a_name(service: LinearService, tracker: Tracker) -> None:
    """People, integrations and people of other services; a user who is gone is not an error."""
    issue_id = service.put()["id"]
    nobody = {"user": None, "botActor": None, "externalUser": None}
    for who in (
        {"user": {"email": "ann@example.org", "name": "Ann Lee", "displayName": "ann"}},
        {"botActor": {"name": "GitHub"}},
        {"externalUser": {"name": "Bob", "displayName": ""}},
        {},
    ):
        service.say(issue_id, "hello", **(nobody | who))

    (read,) = (await tracker.fetch_by_ids([IssueId(issue_id)])).issues

    assert [comment.author for comment in read.comments] == ["ann", "GitHub", "Bob", "?"]
    assert [comment.author_id for comment in read.comments] == ["ann@example.org", None, None, None]


async def test_states_are_those_of_the_team_however_they_are_spelled(
    service: LinearService, tracker: Tracker
) -> None:
    """Another team has states of the same names, and its issues stay out."""
    service.add_team("OPS")
    ours, theirs = service.put(), service.put(team="OPS")

    found = await tracker.fetch_candidates([" tODO ", "in progress"])
    read = await tracker.fetch_by_ids([IssueId(ours["id"]), IssueId(theirs["id"])])

    assert [issue.id for issue in found] == [ours["id"]]
    assert [issue.id for issue in read.issues] == [ours["id"]]


async def test_what_left_is_not_there_and_is_no_error(
    service: LinearService, tracker: Tracker
) -> None:
    """Archived, in the trash, moved to another team, deleted for good: none of them is found."""
    service.add_team("OPS")
    issues = [service.put() for _ in range(5)]
    ids = [IssueId(issue["id"]) for issue in issues]
    await tracker.fetch_candidates(TODO)

    service.put(ids[0], archivedAt=service.now())
    service.trash(ids[1])
    service.move(ids[2], "OPS")
    del service.issues[ids[3]]
    read = await tracker.fetch_by_ids(ids)
    listed = await tracker.fetch_candidates(TODO)
    found = [await tracker.find(issue["identifier"]) for issue in issues[:3]]

    assert [issue.id for issue in read.issues] == [ids[4]]
    assert dict(read.failed) == {}
    assert [issue.id for issue in listed] == [ids[4]]
    assert found == [None, None, None]


async def test_a_reread_asks_for_nothing_but_the_ids(
    service: LinearService, server: TestServer
) -> None:
    """An issue in another state, without the label of the filter, or without an assignee has not
    vanished: a run that works on it goes on."""
    issue = service.put(labels=["agent"], state="In Progress")
    text = '{"labels": {"name": {"eq": "agent"}}}'
    async with opened(server, query_filter=text) as tracker:
        await tracker.fetch_candidates(TODO)
        service.put(issue["id"], state="Backlog", labels=[])
        read = await tracker.fetch_by_ids([IssueId(issue["id"])])

    assert [found.state for found in read.issues] == ["Backlog"]
    assert server.asked[-1].json["variables"]["filter"] == {"id": {"in": [issue["id"]]}}


async def test_an_issue_keeps_its_id_when_it_comes_from_another_team(
    service: LinearService, tracker: Tracker
) -> None:
    """Its identifier is the one of now."""
    service.add_team("OPS")
    issue = service.put(team="OPS")
    service.move(issue["id"], "ENG")

    (listed,) = await tracker.fetch_candidates(TODO)
    found = await tracker.find(issue["identifier"].lower())

    assert (listed.id, listed.identifier) == (issue["id"], "ENG-1")
    assert found is not None
    assert found.id == issue["id"]


async def test_a_team_that_is_not_shown_any_more_ends_nothing(
    service: LinearService, tracker: Tracker
) -> None:
    """All issues missing at once are not believed: the team is looked for, and its loss told."""
    issue = service.put()
    await tracker.fetch_candidates(TODO)
    service.hidden_teams.add("ENG")

    with pytest.raises(TrackerError) as told:
        await tracker.fetch_by_ids([IssueId(issue["id"])])
    service.hidden_teams.clear()
    after = await tracker.fetch_by_ids([IssueId(issue["id"])])

    assert told.value.kind is TrackerErrorKind.NOT_FOUND
    assert "team with the key eng" in str(told.value)
    assert len(after.issues) == 1


async def test_a_renamed_state_is_told_and_not_an_empty_list(
    service: LinearService, tracker: Tracker
) -> None:
    """Its issues are still found by its id, and would be none by its name for ever."""
    service.put()
    before = await tracker.fetch_candidates(TODO)
    service.state("Todo")["name"] = "Ready to start"

    with pytest.raises(TrackerError) as told:
        await tracker.fetch_candidates(TODO)

    assert len(before) == 1
    assert "none of the states Todo" in str(told.value)
    assert "Ready to start" in str(told.value)


async def test_a_state_that_the_team_gets_later_is_found(
    service: LinearService, tracker: Tracker
) -> None:
    """A name that is not known has the team asked again, once for the same names."""
    service.put()
    first = await tracker.fetch_candidates(["Todo", "Urgent"])
    before = service.operations.count("SortieTeam")
    await tracker.fetch_candidates(["Todo", "Urgent"])
    again = service.operations.count("SortieTeam") - before

    state = {**service.state("Todo"), "id": "another", "name": "Urgent"}
    service.teams["ENG"]["state_list"].append(state)
    service.put(state="Urgent")
    second = await tracker.fetch_candidates(["Urgent"])

    assert ([i.state for i in first], again) == (["Todo"], 0)
    assert [issue.state for issue in second] == ["Urgent"]


async def test_a_blocker_that_is_over_in_another_team_blocks_no_more(
    service: LinearService, tracker: Tracker
) -> None:
    """Its state has a name that no setting knows, so it is given as the first terminal one."""
    service.add_team("OPS", (("Todo", "unstarted"), ("Closed", "completed"), ("Bin", "canceled")))
    issue = service.put()
    others = [service.put(team="OPS", state=state) for state in ("Todo", "Closed", "Bin")]
    for other in others:
        service.block(issue["id"], other["id"])
    service.block(issue["id"], service.put(team="OPS")["id"], kind="related")
    service.block(service.put(state="Backlog")["id"], issue["id"])

    (found,) = await tracker.fetch_candidates(TODO)

    assert found.blocked_by == tuple(
        Blocker(identifier=other["identifier"], id=IssueId(other["id"]), state=state)
        for other, state in zip(others, ("Todo", "Done", "Done"), strict=True)
    )


async def test_a_filter_narrows_and_cannot_break_out(
    service: LinearService, server: TestServer
) -> None:
    """Whatever it says, it is one more condition beside the team and the states."""
    service.add_team("OPS")
    bug, other = service.put(labels=["bug"]), service.put()
    service.put(labels=["bug"], state="Done")
    service.put(labels=["bug"], team="OPS")
    texts = {
        '{"labels": {"name": {"eq": "bug"}}}': [bug["id"]],
        '{"or": [{"team": {"key": {"eq": "OPS"}}}, {"title": {"contains": ""}}]}': [
            bug["id"],
            other["id"],
        ],
    }

    for text, expected in texts.items():
        async with opened(server, query_filter=text) as narrowed:
            found = await narrowed.fetch_candidates(TODO)
            assert sorted(issue.id for issue in found) == sorted(expected)


async def test_an_issue_that_no_longer_passes_the_filter_leaves_the_list(
    service: LinearService, server: TestServer
) -> None:
    """Taking a label off an issue is a change, though no list of bugs tells of it."""
    issue = service.put(labels=["bug"])
    async with opened(server, query_filter='{"labels": {"name": {"eq": "bug"}}}') as tracker:
        before = await tracker.fetch_candidates(TODO)
        service.put(issue["id"], labels=[])
        after = await tracker.fetch_candidates(TODO)
        service.put(issue["id"], labels=["bug", "urgent"])
        back = await tracker.fetch_candidates(TODO)

    assert [len(found) for found in (before, after, back)] == [1, 0, 1]


@pytest.mark.parametrize("status", [200, 400])
async def test_what_is_not_found_is_none_by_either_status(
    service: LinearService, tracker: Tracker, status: int
) -> None:
    """Linear may refuse an id that is no UUID as a bad argument, with 200 or 400."""
    service.error_status = status

    assert await tracker.find("ENG-77") is None
    assert await tracker.find("OPS-1") is None


async def test_data_beside_errors_is_not_believed(
    service: LinearService, server: TestServer, tracker: Tracker
) -> None:
    """A list that comes with an error may lack issues: it is a failed one."""
    service.put()
    error = {"message": "internal", "extensions": {"type": "internal error"}}
    server.inject(
        Instead(lambda reply: replace(reply, body={**reply.body, "errors": [error]}, sound=False)),
        body="SortieIssues",
    )

    with pytest.raises(TrackerError):
        await tracker.fetch_candidates(TODO)
