"""What is read of one issue, and what it means that it is not there."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from sortie.model import Blocker, IssueId, TrackerError, TrackerErrorKind
from sortie.trackers import IssuesRead
from tests.trackers.github.opened import GitHub, github_opened
from tests.trackers.github.shapes import an_issue


async def settled(hub: GitHub) -> None:
    """List the issues, and let another one be the latest that has changed, by far."""
    for number in hub.service.items:
        hub.service.changed[number] = hub.server.now() - timedelta(hours=1)
        hub.service.items[number]["updated_at"] = "2026-01-01T00:00:00Z"
    hub.service.put(99, names=["Todo"])
    await hub.todo()


@pytest.mark.parametrize("how", ["deleted", "hidden", "transferred"])
async def test_an_issue_that_is_gone_is_not_there(hub: GitHub, how: str) -> None:
    """However it went: its run ends, and the other's does not."""
    hub.service.put(1, names=["Todo"])
    hub.service.put(2, names=["Todo"])
    hub.service.remove(1, how)

    read = await hub.tracker.fetch_by_ids([IssueId("1"), IssueId("2")])

    assert [issue.id for issue in read.issues] == ["2"]
    assert read.failed == {}
    assert await hub.read(1) is None


async def test_a_hidden_repository_is_not_a_repository_without_issues(hub: GitHub) -> None:
    """GitHub answers "not found" for "not allowed": that ends no run."""
    hub.service.put(1, names=["Todo"])
    await hub.todo()
    hub.service.visible = False

    for ask in (hub.todo(), hub.read(1), hub.tracker.find("hello-world-1")):
        with pytest.raises(TrackerError) as refused:
            await ask
        assert refused.value.kind in (TrackerErrorKind.CLOSED, TrackerErrorKind.NOT_FOUND)
    with pytest.raises(TrackerError) as refused:
        await hub.read(1)
    assert "tracker.project" in str(refused.value)


async def test_comments_beyond_the_first_page_are_read(hub: GitHub) -> None:
    """All of them, in order, and again for nothing where none was added."""
    hub.service.put(1, names=["Todo"])
    for number in range(250):
        hub.service.say(1, "ann", f"remark {number}")
    hub.service.remaining = 5000

    issue = await hub.read(1)
    counted = hub.service.counted
    again = await hub.read(1)

    assert issue is not None
    assert [c.body for c in issue.comments] == [f"remark {n}" for n in range(250)]
    assert again == issue
    assert hub.service.counted == counted == 4


async def test_blockers_beyond_the_first_page_block(hub: GitHub) -> None:
    """All of them are read."""
    for number in range(1, 131):
        hub.service.put(number, names=["Todo"])
    hub.service.block(1, *range(2, 131))

    issue = await hub.read(1)

    assert issue is not None
    assert [blocker.id for blocker in issue.blocked_by] == [str(n) for n in range(2, 131)]


async def test_a_blocker_of_another_repository_blocks_until_it_is_closed(hub: GitHub) -> None:
    """Its labels mean nothing here; it is named by its repository."""
    elsewhere = f"{hub.service.base}/repos/octo-org/other"
    blocker = {**an_issue(elsewhere, 9, hub.server.now()), "labels": []}
    del blocker["state_reason"]
    hub.service.put(1, names=["Todo"])
    hub.service.block(1, blocker)
    is_open = await hub.read(1)
    hub.service.block(1, {**blocker, "state": "closed"})
    is_closed = await hub.read(1)

    assert is_open is not None
    assert is_closed is not None
    assert is_open.blocked_by == (Blocker(identifier="octo-org/other#9", state="open"),)
    assert is_closed.blocked_by == (Blocker(identifier="octo-org/other#9", state="Done"),)


@pytest.mark.parametrize("touches", [True, False])
async def test_a_new_blocker_is_known_when_the_issue_is_read(hub: GitHub, touches: bool) -> None:
    """Whether it changes the time of the issue or not, which nobody knows for certain."""
    hub.service.put(1, names=["Todo"])
    hub.service.put(2, names=["Todo"])
    hub.service.touches = touches
    await settled(hub)
    hub.service.block(1, 2)

    listed = await hub.tracker.fetch_candidates(["todo"])
    read = await hub.read(1)

    blocked = (Blocker(identifier="hello-world-2", id=IssueId("2"), state="Todo"),)
    assert read is not None
    assert read.blocked_by == blocked
    assert listed[0].blocked_by == (blocked if touches else ())
    again = await hub.tracker.fetch_candidates(["todo"])  # the re-read told the list
    assert again[0].blocked_by == blocked


async def test_a_blocker_that_is_finished_is_known_from_the_list(hub: GitHub) -> None:
    """It costs no request of its own."""
    hub.service.put(1, names=["Todo"])
    hub.service.put(2, names=["In Progress"])
    hub.service.block(1, 2)
    await settled(hub)
    asked = hub.server.count(path="blocked_by")
    hub.service.change(2, state="closed", state_reason="completed")

    issue, _ = await hub.tracker.fetch_candidates(["todo"])

    assert [b.state for b in issue.blocked_by] == ["Done"]
    assert hub.server.count(path="blocked_by") == asked == 1


async def test_a_server_without_dependencies_blocks_nothing(tmp_path: Path) -> None:
    """It is found out once, and not by each issue."""
    async with github_opened(tmp_path) as hub:
        hub.service.has_dependencies = False
        for number in range(1, 20):
            hub.service.put(number, names=["Todo"])
        await hub.todo()
        first = hub.server.count(path="blocked_by")
        for number in range(1, 20):
            hub.service.touch(number)
        issues = await hub.tracker.fetch_candidates(["todo"])

        assert len(issues) == 19
        assert not any(issue.blocked_by for issue in issues)
        assert hub.server.count(path="blocked_by") == first <= 8


async def test_an_old_description_of_labels_is_read_too(hub: GitHub) -> None:
    """Labels may be texts, people may be gone, bodies may be absent."""
    hub.service.put(1, names=[])
    hub.service.change(1, labels=["Todo", "bug"], body=None)
    hub.service.say(1, "ann", "hello")
    hub.service.comments[1][0]["user"] = None

    issue = await hub.read(1)

    assert issue is not None
    assert (issue.state, issue.labels, issue.description) == ("Todo", ("bug",), "")
    assert [comment.author for comment in issue.comments] == ["ghost"]


async def test_priorities_are_those_of_labels(tmp_path: Path) -> None:
    """The lowest number of those that an issue has; none without such a label."""
    block = {"priority_labels": {"Urgent": 1, "later": 4}}
    async with github_opened(tmp_path, block) as hub:
        hub.service.put(1, names=["Todo", "later", "urgent"])
        hub.service.put(2, names=["Todo"])
        first, second = await hub.tracker.fetch_candidates(["todo"])

    assert (first.priority, second.priority) == (1, None)


async def test_nothing_that_is_no_number_is_asked_for(hub: GitHub) -> None:
    """Names of other trackers, paths and signs lead nowhere."""
    names = ["A-1", "hello-world-0", "hello-world-", "1/comments", "..", "-1", "१", "99999999999"]

    found = [await hub.tracker.find(name) for name in names]
    read = await hub.tracker.fetch_by_ids([IssueId(name) for name in names])

    assert found == [None] * len(names)
    assert read == IssuesRead()
    issues = [r.segments[-1] for r in hub.server.asked if "issues" in r.segments]
    assert set(issues) == {"99999999999"}


async def test_what_was_remembered_survives_a_skewed_clock(hub: GitHub) -> None:
    """Nothing is answered from memory without the server being asked."""
    hub.server.skew = timedelta(hours=5)
    hub.service.put(1, names=["Todo"])
    await hub.read(1)
    asked = len(hub.server.asked)
    hub.service.relabel(1, "Review")

    assert await hub.state(1) == "Review"
    assert len(hub.server.asked) > asked
