"""Changes in GitLab: made once, seen to be made, and no orders in them."""

from __future__ import annotations

import pytest

from sortie.model import TrackerError, TrackerErrorKind
from sortie.trackers.gitlab.issues import IssueKey
from tests.trackers.gitlab.conftest import Hub, id_of, read_one


async def test_a_move_is_one_request_that_keeps_other_labels(hub: Hub) -> None:
    """It takes off every spelling of other states, and leaves what others put on meanwhile."""
    item = hub.world.put(labels=["Todo", "todo", "backend"])

    async with hub.open() as tracker:
        issue = await read_one(tracker, item)
        hub.world.put(1, labels=["Todo", "todo", "backend", "urgent"])
        moved = await tracker.transition(issue, "Review")
        done = await tracker.transition(moved, "Done")

    assert hub.server.count("PUT") == 2
    assert (moved.state, moved.labels) == ("Review", ("backend", "urgent"))
    assert (done.state, hub.world.web.issues[1]["state"]) == ("Done", "closed")
    assert hub.world.web.issues[1]["labels"] == ["backend", "urgent", "Done"]


async def test_a_label_is_written_as_the_project_spells_it(hub: Hub) -> None:
    """GitLab would make a second one of another spelling."""
    hub.world.web.labels.append("REVIEW")
    item = hub.world.put(labels=["Todo"])

    async with hub.open() as tracker:
        moved = await tracker.transition(await read_one(tracker, item), "review")

    assert moved.state == "Review"
    assert hub.world.web.issues[1]["labels"] == ["REVIEW"]
    assert "Review" not in hub.world.web.labels


async def test_a_locked_issue_is_tried_again(hub: Hub) -> None:
    """ "Resource lock" means that somebody else writes it now; what it became is looked at."""
    item = hub.world.put(labels=["In Progress"])
    hub.world.locks = 2

    async with hub.open() as tracker:
        issue = await read_one(tracker, item)
        moved = await tracker.transition(issue, "Review")
        hub.world.locks = 9
        with pytest.raises(TrackerError, match="Resource lock") as refused:
            await tracker.transition(moved, "Done")

    assert moved.state == "Review"
    assert refused.value.kind is TrackerErrorKind.UNAVAILABLE
    assert hub.server.count("PUT") == 6


async def test_a_change_that_is_dropped_without_a_word_is_an_error(hub: Hub) -> None:
    """A role that may not change labels is told 200; the labels stay."""
    item = hub.world.put(labels=["In Progress"])
    hub.world.may_write = False

    async with hub.open() as tracker:
        issue = await read_one(tracker, item)
        with pytest.raises(TrackerError, match="role") as refused:
            await tracker.transition(issue, "Review")

    assert refused.value.kind is TrackerErrorKind.PERMISSION


async def test_a_scope_that_is_missing_is_about_all_issues(hub: Hub) -> None:
    """A project that is archived is about its own."""
    item = hub.world.put(labels=["In Progress"])
    kinds = []

    async with hub.open() as tracker:
        issue = await read_one(tracker, item)
        for scopes, archived in ((("read_api",), False), (("api",), True)):
            hub.world.scopes, hub.world.web.archived = scopes, archived
            with pytest.raises(TrackerError) as refused:
                await tracker.transition(issue, "Review")
            kinds.append(refused.value.kind)

    assert kinds == [TrackerErrorKind.CLOSED, TrackerErrorKind.PERMISSION]


async def test_there_is_no_move_to_a_state_that_nobody_named(hub: Hub) -> None:
    """Unless labels have a prefix, by which each is known for a state."""
    item = hub.world.put(labels=["Todo"])

    async with hub.open() as tracker:
        with pytest.raises(TrackerError) as refused:
            await tracker.transition(await read_one(tracker, item), "Elsewhere")
    hub.world.put(1, labels=["status::Todo"])
    async with hub.open({"label_prefix": "status::"}) as tracker:
        moved = await tracker.transition(await read_one(tracker, item), "Elsewhere")

    assert refused.value.kind is TrackerErrorKind.INVALID
    assert moved.state == "Elsewhere"
    assert hub.world.web.issues[1]["labels"] == ["status::Elsewhere"]


@pytest.mark.parametrize("licensed", [True, False])
async def test_scoped_labels_need_no_licence(hub: Hub, licensed: bool) -> None:
    """With one they exclude each other by themselves; without, we take the former off."""
    hub.world.licensed = licensed
    item = hub.world.put(labels=["status::Todo", "priority::2"])

    async with hub.open({"label_prefix": "status::"}) as tracker:
        moved = await tracker.transition(await read_one(tracker, item), "Review")

    assert moved.state == "Review"
    assert sorted(hub.world.web.issues[1]["labels"]) == ["priority::2", "status::Review"]


async def test_a_note_is_no_order(hub: Hub) -> None:
    """Neither closes the issue nor calls anybody, and arrives as it was written."""
    item = hub.world.put(labels=["Todo"])
    text = "/close\n\n```\n/label ~done\n```\r/assign @root\n@all look at /close"

    async with hub.open() as tracker:
        issue = await read_one(tracker, item)
        await tracker.comment(issue, text, "run-1:failure")
        after = await read_one(tracker, item)

    assert (hub.world.orders, hub.world.mentioned) == ([], [])
    assert after.state == "Todo"
    assert after.comments[0].body == text.replace("\r", "\n")


async def test_the_test_server_obeys_orders(hub: Hub) -> None:
    """Else the test above would prove nothing."""
    hub.world.put(labels=["Todo"])

    async with hub.open() as tracker:
        with pytest.raises(TrackerError, match="made no comment"):
            await tracker.api.add_note(IssueKey(hub.world.web.id, 1), "/close")

    assert hub.world.orders == ["close"]
    assert hub.world.web.issues[1]["state"] == "closed"


async def test_an_issue_of_another_project_is_not_ours(hub: Hub) -> None:
    """A number from before the settings changed does not open another project's issue."""
    other = hub.world.add_project("acme/api")
    item = hub.world.put(project=other, labels=["Todo"])

    async with hub.open(project="acme/api") as tracker:
        issue = await read_one(tracker, item)
    async with hub.open() as tracker:
        read = await tracker.fetch_by_ids([id_of(item)])
        with pytest.raises(TrackerError) as refused:
            await tracker.transition(issue, "Done")

    assert (read.issues, dict(read.failed)) == ((), {})
    assert refused.value.kind is TrackerErrorKind.NOT_FOUND
