"""Links as blockers."""

from __future__ import annotations

import pytest
import trio

from sortie.model import Blocker, IssueId
from sortie.trackers.gitlab.links import BLOCKED_FOR, LINKS_A_LIST
from tests.trackers.gitlab.conftest import Hub, read_one

STATES = ["Todo", "In Progress"]


async def test_only_what_an_issue_is_blocked_by_blocks_it(hub: Hub) -> None:
    """Seen from the issue that was asked for: neither what it blocks, nor what it relates to."""
    items = [hub.world.put(labels=["Todo"]) for _ in range(4)]
    hub.world.link(1, "is_blocked_by", 2)
    hub.world.link(1, "blocks", 3)
    hub.world.link(1, "relates_to", 4)
    place = hub.world.web.id

    async with hub.open() as tracker:
        found = {i.identifier: i.blocked_by for i in await tracker.fetch_candidates(STATES)}
        read = await read_one(tracker, items[0])

    two = Blocker(identifier="web-2", id=IssueId(f"{place}:2"), state="Todo")
    one = Blocker(identifier="web-1", id=IssueId(f"{place}:1"), state="Todo")
    assert found == {"web-1": (two,), "web-2": (), "web-3": (one,), "web-4": ()}
    assert read.blocked_by == (two,)


async def test_a_blocker_of_another_project_can_be_finished(hub: Hub) -> None:
    """Its labels may mean nothing here; closed is closed."""
    other = hub.world.add_project("acme/api")
    hub.world.put(labels=["Todo"])
    hub.world.put(project=other, labels=["whatever"], state="closed")
    hub.world.link(1, "is_blocked_by", 1, other)

    async with hub.open() as tracker:
        (issue,) = await tracker.fetch_candidates(STATES)

    blocker = Blocker(identifier="acme--api-1", id=IssueId(f"{other.id}:1"), state="Done")
    assert issue.blocked_by == (blocker,)


async def test_a_blocker_is_seen_to_be_finished_by_the_next_list(hub: Hub) -> None:
    """Without a request of its own: the list tells that it was closed."""
    hub.world.put(labels=["Todo"])
    hub.world.put(labels=["In Progress"])
    hub.world.link(1, "is_blocked_by", 2)

    async with hub.open() as tracker:
        await tracker.fetch_candidates(STATES)
        hub.world.put(2, state="closed", labels=["Done"])
        before = len(hub.server.asked)
        (issue,) = await tracker.fetch_candidates(STATES)

    assert [blocker.state for blocker in issue.blocked_by] == ["Done"]
    assert len(hub.asked(before)) == 1


async def test_a_link_that_changes_no_issue_is_noticed_in_time(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A blocked candidate is looked at every minute, and any issue when it is about to start."""
    hub.world.put(labels=["Todo"])
    item = hub.world.put(labels=["Todo"])
    hub.world.link(1, "is_blocked_by", 2)

    async with hub.open() as tracker:
        await tracker.fetch_candidates(STATES)
        hub.world.web.links[1].clear()
        hub.world.link(2, "is_blocked_by", 1)
        early = {i.identifier: bool(i.blocked_by) for i in await tracker.fetch_candidates(STATES)}
        about_to_start = await read_one(tracker, item)
        now = trio.current_time()
        monkeypatch.setattr(trio, "current_time", lambda: now + BLOCKED_FOR)
        late = {i.identifier: bool(i.blocked_by) for i in await tracker.fetch_candidates(STATES)}

    assert early == {"web-1": True, "web-2": False}
    assert [blocker.identifier for blocker in about_to_start.blocked_by] == ["web-1"]
    assert late == {"web-1": False, "web-2": True}


async def test_few_links_are_asked_for_and_those_first_that_are_served_first(hub: Hub) -> None:
    """What is blocked is passed over for the next, at a bounded cost for each list."""
    for number in range(40):
        labels = ["Todo", "priority::1"] if number >= 20 else ["Todo"]
        hub.world.put(labels=labels, created_at=f"2026-05-01T12:00:{number:02}.000Z")
    asked = []

    async with hub.open() as tracker:
        for number in range(20, 30):
            hub.world.link(number + 1, "is_blocked_by", 1)
        for _ in range(3):
            before = len(hub.server.asked)
            await tracker.fetch_candidates(STATES)
            asked.append([line for line in hub.asked(before) if line.endswith("/links")])

    numbers = [[int(line.split("/")[4]) for line in lines] for lines in asked]
    assert numbers == [list(range(21, 31)), list(range(31, 41)), []]
    assert LINKS_A_LIST == 10


@pytest.mark.parametrize("way", ["community", "off", "unlicensed"])
async def test_without_links_nothing_blocks(hub: Hub, way: str) -> None:
    """A Community Edition has none, and is not asked; without a licence GitLab gives none."""
    item = hub.world.put(labels=["Todo"])
    hub.world.put(labels=["Todo"])
    hub.world.link(1, "is_blocked_by", 2)
    hub.world.enterprise, hub.world.licensed = way != "community", way != "unlicensed"

    async with hub.open({"blockers": way != "off"}) as tracker:
        found = await tracker.fetch_candidates(STATES)
        read = await read_one(tracker, item)

    assert [issue.blocked_by for issue in (*found, read)] == [()] * 3
    links = hub.server.count("GET", "/links$")
    assert links == (3 if way == "unlicensed" else 0)
