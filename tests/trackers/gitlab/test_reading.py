"""What is read from GitLab, and what it is not taken for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from sortie.model import IssueId, TrackerError, TrackerErrorKind
from sortie.trackers import IssuesRead, TrackerStates
from tests.trackers.gitlab.conftest import Hub, id_of, read_one
from tests.trackers.server.exchange import Reply
from tests.trackers.server.faults import Instead

STATES = ["Todo", "In Progress"]


async def test_an_issue_has_what_gitlab_tells_of_it(hub: Hub) -> None:
    """Its id is made of numbers that stay; its name is one that a directory can have."""
    item = hub.world.put(
        labels=["Todo", "backend", "priority::2"],
        description=None,
        created_at="2026-05-01T14:00:00.000+02:00",
        assignees=[{"id": 9, "username": "ann"}],
        epic={"id": "3", "iid": "12", "title": "Epic"},
    )

    async with hub.open() as tracker:
        (issue,) = await tracker.fetch_candidates(STATES)

    assert (issue.id, issue.identifier, issue.state) == (f"{hub.world.web.id}:1", "web-1", "Todo")
    assert (issue.description, issue.assignee, issue.parent) == ("", "ann", "&12")
    assert (issue.labels, issue.priority) == (("backend", "priority::2"), 2)
    assert issue.created_at == datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert issue.url == item["web_url"]


async def test_projects_of_a_group_have_names_that_differ(hub: Hub) -> None:
    """Two projects of one name in different subgroups share no directory; found by all names."""
    one, two = hub.world.add_project("acme/a/web"), hub.world.add_project("acme/a-b")
    other = hub.world.add_project("elsewhere/web")
    for place in (hub.world.web, one, two, other):
        hub.world.put(project=place, labels=["Todo"])

    async with hub.open({"scope": "group"}, project="acme") as tracker:
        found = {issue.identifier: issue.id for issue in await tracker.fetch_candidates(STATES)}
        by_name = [
            await tracker.find(name)
            for name in ("a--web-1", f"{one.id}:1", "acme/a/web#1", "elsewhere/web#1", "a--c-1")
        ]

    assert found == {
        "web-1": f"{hub.world.web.id}:1",
        "a--web-1": f"{one.id}:1",
        "a-b-1": f"{two.id}:1",
    }
    assert [issue and issue.id for issue in by_name] == [f"{one.id}:1"] * 3 + [None] * 2


async def test_what_is_no_issue_is_left_out(hub: Hub) -> None:
    """Tasks, incidents and test cases come with GitLab's lists unless they are left out there."""
    for kind in ("task", "incident", "test_case", "issue"):
        hub.world.put(labels=["Todo"], issue_type=kind)

    async with hub.open() as tracker:
        (issue,) = await tracker.fetch_candidates(STATES)

    assert issue.identifier == "web-4"


async def test_a_moved_issue_is_not_there(hub: Hub) -> None:
    """It is closed, and lives on in another project, under another id."""
    item = hub.world.put(labels=["Todo"])
    elsewhere = hub.world.add_project("acme/api")

    async with hub.open() as tracker:
        issue = await read_one(tracker, item)
        hub.world.move(1, elsewhere)
        read = await tracker.fetch_by_ids([issue.id])
        with pytest.raises(TrackerError) as refused:
            await tracker.transition(issue, "Done")
        candidates = await tracker.fetch_candidates(STATES)

    assert read == IssuesRead()
    assert refused.value.kind is TrackerErrorKind.NOT_FOUND
    assert "moved to another project" in str(refused.value)
    assert candidates == ()


async def test_a_re_read_uses_no_filter(hub: Hub) -> None:
    """An issue that has left the filter, is a task now, or is closed, has not vanished."""
    items = [hub.world.put(labels=["Todo", "backend"]) for _ in range(3)]

    async with hub.open(query_filter="labels=backend") as tracker:
        await tracker.fetch_candidates(STATES)
        hub.world.put(1, labels=["Todo"])
        hub.world.put(2, issue_type="task")
        hub.world.put(3, state="closed")
        read = await tracker.fetch_by_ids([id_of(item) for item in items])
        candidates = await tracker.fetch_candidates(STATES)

    assert {issue.identifier: issue.state for issue in read.issues} == {
        "web-1": "Todo",
        "web-2": "Todo",
        "web-3": "Done",
    }
    assert [issue.identifier for issue in candidates] == ["web-2"]


async def test_confidential_issues_and_internal_notes_are_for_those_who_say_so(hub: Hub) -> None:
    """What only members see is given to no agent unless the settings allow it."""
    item = hub.world.put(labels=["Todo"], confidential=True)
    hub.world.put(labels=["Todo"])
    hub.world.note(1, "for members", internal=True)
    hub.world.note(2, "for members", internal=True)
    hub.world.note(2, "for all")

    async with hub.open() as tracker:
        listed = await tracker.fetch_candidates(STATES)
        read = await tracker.fetch_by_ids([id_of(item), IssueId(f"{item['project_id']}:2")])
        (unreadable,) = tracker.overview().unreadable
    async with hub.open({"confidential": True}) as tracker:
        all_listed = await tracker.fetch_candidates(STATES)
        shown = await read_one(tracker, item)

    assert [issue.identifier for issue in listed] == ["web-2"]
    assert [comment.body for comment in read.issues[0].comments] == ["for all"]
    assert read.failed[id_of(item)].kind is TrackerErrorKind.INVALID
    assert "gitlab.confidential" in unreadable.message
    assert "web-1" in unreadable.names
    assert [issue.identifier for issue in all_listed] == ["web-1", "web-2"]
    assert [comment.body for comment in shown.comments] == ["for members"]


async def test_a_time_that_cannot_be_read_is_a_fault_of_that_issue(hub: Hub) -> None:
    """It is not 1970, which would be served first; the others are given."""
    for when in ("soon", "2026-05-01T12:00:00.000", None):
        hub.world.put(labels=["Todo"], created_at="2026-05-01T12:00:00.000Z", due_date=None)
        hub.server.inject(Instead(_with(0, created_at=when)), path="issues$", times=1)

        async with hub.open() as tracker:
            found = await tracker.fetch_candidates(STATES)
            complaints = tracker.overview().unreadable

        readable = when is None
        assert len(found) == len(hub.world.web.issues) - (not readable)
        assert len(complaints) == (not readable)


def _with(place: int, **fields: Any) -> Callable[[Reply], Reply]:
    def change(reply: Reply) -> Reply:
        items = [dict(item) for item in reply.body]
        items[place] |= fields
        return replace(reply, body=items, sound=False)

    return change


async def test_the_server_says_which_page_is_next(hub: Hub) -> None:
    """Not how many items a page had: GitLab may give fewer. A host of another name is not asked."""
    hub.world.per_page_at_most = 3
    hub.world.origin = "https://gitlab.internal.example"
    for number in range(10):
        hub.world.put(labels=["Todo"])
        hub.world.note(1, f"{number}")
        hub.world.note(1, "changed the title", system=True)

    async with hub.open() as tracker:
        found = await tracker.fetch_candidates(STATES)
        first = await read_one(tracker, hub.world.web.issues[1])
    async with hub.open({"scope": "group"}, project="acme") as tracker:
        in_group = await tracker.fetch_candidates(STATES)

    assert [issue.identifier for issue in found] == [f"web-{n}" for n in range(1, 11)]
    assert [comment.body for comment in first.comments] == [f"{n}" for n in range(10)]
    assert in_group == found


@pytest.mark.parametrize("scope", ["project", "group"])
async def test_an_issue_that_leaves_the_list_between_two_pages_hides_no_other(
    hub: Hub, scope: str
) -> None:
    """Those behind it would move to a page that was read, and be missing for ten minutes."""
    hub.world.per_page_at_most = 3
    for second in range(12):
        hub.world.put(labels=["Todo"], created_at=f"2026-05-01T12:00:{second:02}.000Z")

    def close(request: Any) -> None:
        if request.query.get("state") == "opened" and hub.world.web.issues[1]["state"] != "closed":
            hub.world.put(1, state="closed")
            hub.world.put(2, state="closed")

    hub.server.after = close
    names = {"project": "acme/web", "group": "acme"}
    async with hub.open({"scope": scope}, project=names[scope]) as tracker:
        await tracker.fetch_candidates(STATES)
        found = await tracker.fetch_candidates(STATES)

    assert [issue.identifier for issue in found] == [f"web-{n}" for n in range(3, 13)]


async def test_issues_of_a_group_that_were_made_in_one_instant_are_all_read(hub: Hub) -> None:
    """As by an import: more of them than a page has."""
    hub.world.per_page_at_most = 3
    for second in (1, 2, 2, 2, 2, 2, 2, 2, 3, 3):
        hub.world.put(labels=["Todo"], created_at=f"2026-05-01T12:00:{second:02}.000Z")

    async with hub.open({"scope": "group"}, project="acme") as tracker:
        found = await tracker.fetch_candidates(STATES)

    assert [issue.identifier for issue in found] == [f"web-{n}" for n in range(1, 11)]


async def test_a_dead_token_is_no_empty_project(hub: Hub) -> None:
    """Where everything looks empty, nothing is believed: neither a list nor a re-read."""
    item = hub.world.put(labels=["Todo"])

    async with hub.open() as tracker:
        issue = await read_one(tracker, item)
        hub.world.seen = False
        raised = []
        for call in (
            lambda: tracker.fetch_candidates(STATES),
            lambda: tracker.fetch_by_ids([issue.id]),
            lambda: tracker.transition(issue, "Done"),
            lambda: tracker.comment(issue, "hello", "run:end"),
        ):
            with pytest.raises(TrackerError) as refused:
                await call()
            raised.append(refused.value.kind)
        hub.world.seen, hub.world.token = True, "another"
        with pytest.raises(TrackerError) as dead:
            await tracker.fetch_by_ids([issue.id])

    assert raised == [TrackerErrorKind.CLOSED] * 4
    assert dead.value.kind is TrackerErrorKind.CLOSED


async def test_a_renamed_label_moves_no_issue(hub: Hub) -> None:
    """An issue that lost its state with the label is unreadable, until the settings follow; one
    whose label was taken off is in no state."""
    hub.world.put(labels=["In Progress"])
    hub.world.put(labels=["In Progress"])
    hub.world.put(labels=["Todo"])
    ids = [id_of(item) for item in hub.world.web.issues.values()]

    async with hub.open() as tracker:
        await tracker.fetch_by_ids(ids)
        hub.world.rename_label("In Progress", "Doing")
        hub.world.put(3, labels=[])
        read = await tracker.fetch_by_ids(ids)
        listed = await tracker.fetch_candidates(STATES)
        tracker.configure(TrackerStates(active=("Todo", "Doing"), terminal=("Done",)))
        mended = await tracker.fetch_by_ids(ids)

    assert {i: error.kind for i, error in read.failed.items()} == dict.fromkeys(
        ids[:2], TrackerErrorKind.INVALID
    )
    assert "'In Progress'" in str(read.failed[ids[0]])
    assert [issue.state for issue in read.issues] == ["opened"]
    assert listed == ()
    assert [issue.state for issue in mended.issues] == ["Doing", "Doing", "opened"]


async def test_comments_are_not_read_again_while_an_issue_stays_as_it_is(hub: Hub) -> None:
    """A re-read of many issues costs one request while nothing happens."""
    for _ in range(7):
        hub.world.note(hub.world.put(labels=["Todo"])["iid"], "hello")
    ids = [id_of(item) for item in hub.world.web.issues.values()]
    hub.world.enterprise = False

    async with hub.open() as tracker:
        await tracker.fetch_by_ids(ids)
        before = len(hub.server.asked)
        await tracker.fetch_by_ids(ids)
        quiet = len(hub.server.asked) - before
        hub.world.note(3, "more")
        read = await tracker.fetch_by_ids(ids)

    assert quiet == 1
    assert len(hub.server.asked) - before - quiet == 2
    assert [len(issue.comments) for issue in read.issues] == [1, 1, 2, 1, 1, 1, 1]
