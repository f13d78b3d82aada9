"""The list of candidates: one request a poll, and whole again every ten minutes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest
from trio.testing import MockClock

from sortie.model import Issue, TrackerError
from sortie.trackers import Tracker
from tests.trackers.linear.rig import opened
from tests.trackers.linear.service import LinearService, text_of
from tests.trackers.server.exchange import Received
from tests.trackers.server.faults import Refuse
from tests.trackers.server.serving import TestServer

TODO = ("Todo",)


def ids(issues: Sequence[Issue]) -> list[str]:
    return sorted(issue.id for issue in issues)


async def test_a_poll_costs_one_request_whatever_has_changed(
    service: LinearService, server: TestServer
) -> None:
    """The first one takes a request for the team and one for each page; 500 issues of which 20
    changed take one, and so does nothing at all."""
    nodes = [service.put() for _ in range(500)]
    for age, node in enumerate(nodes):
        node["updatedAt"] = text_of(server.now() - timedelta(minutes=5 + age))
    async with opened(server, {"page_size": 50}) as tracker:
        costs = []
        for changed in (0, 20, 0):
            for node in nodes[:changed]:
                service.put(node["id"], title="changed")
            before = len(server.asked)
            found = await tracker.fetch_candidates(TODO)
            costs.append(len(server.asked) - before)

    assert costs == [11, 1, 1]
    assert len(found) == 500
    assert sum(issue.title == "changed" for issue in found) == 20


async def test_nothing_new_is_the_same_tuple(service: LinearService, tracker: Tracker) -> None:
    """Who compares by identity is spared all else; what has not changed is the same object."""
    first_id = service.put()["id"]
    service.put()

    first = await tracker.fetch_candidates(TODO)
    again = await tracker.fetch_candidates(TODO)
    service.put(first_id, title="another")
    third = await tracker.fetch_candidates(TODO)

    assert again is first
    assert third is not first
    assert sum(any(one is other for other in first) for one in third) == 1


async def test_what_comes_goes_and_moves_is_seen_by_the_next_poll(
    service: LinearService, tracker: Tracker
) -> None:
    """New, moved, archived, put into the trash, sent to another team."""
    service.add_team("OPS")
    stays, done, archived, trashed, sent = (service.put()["id"] for _ in range(5))
    await tracker.fetch_candidates(TODO)

    service.put(done, state="Done")
    service.put(archived, archivedAt=service.now())
    service.trash(trashed)
    service.move(sent, "OPS")
    new = service.put()["id"]
    found = await tracker.fetch_candidates(TODO)

    # One that was sent to another team is told by no change of this one.
    assert set(ids(found)) - {sent} == {stays, new}


async def test_what_no_change_tells_of_is_gone_after_ten_minutes(
    service: LinearService, server: TestServer, mock_clock: MockClock
) -> None:
    """Deleted for good, sent to another team: the whole list is asked for again."""
    service.add_team("OPS")
    stays, deleted, sent = (service.put()["id"] for _ in range(3))
    async with opened(server) as tracker:
        await tracker.fetch_candidates(TODO)
        del service.issues[deleted]
        service.move(sent, "OPS")
        mock_clock.jump(599)
        await tracker.fetch_candidates(TODO)
        whole_before = service.operations.count("SortieIssues")
        mock_clock.jump(2)
        found = await tracker.fetch_candidates(TODO)

    assert ids(found) == [stays]
    assert service.operations.count("SortieIssues") == whole_before + 1


async def test_a_blocker_that_moves_unblocks_with_the_next_poll(
    service: LinearService, tracker: Tracker
) -> None:
    """Though nothing has touched the issue that waits for it, and whatever team it is in."""
    service.add_team("OPS")
    ours, theirs, gone = service.put(), service.put(team="OPS"), service.put(state="Backlog")
    waiting = service.put()
    for blocker in (ours, theirs, gone):
        service.block(waiting["id"], blocker["id"])

    async def blockers() -> list[str | None]:
        found = {issue.id: issue for issue in await tracker.fetch_candidates(TODO)}
        return [blocker.state for blocker in found[waiting["id"]].blocked_by]

    before = await blockers()
    service.put(ours["id"], state="Done")
    first = await blockers()
    service.put(theirs["id"], state="Done")
    second = await blockers()
    service.trash(gone["id"])
    third = await blockers()

    assert before == ["Todo", "Todo", "Backlog"]
    assert (first, second) == (["Done", "Todo", "Backlog"], ["Done", "Done", "Backlog"])
    assert third == ["Done", "Done"]
    assert service.operations.count("SortieIssues") == 1


async def test_an_issue_that_changes_between_two_pages_is_there_once(
    service: LinearService, server: TestServer
) -> None:
    """Nothing is lost or doubled where issues come and change while the list is read."""
    old = [service.put()["id"] for _ in range(12)]
    async with opened(server, {"page_size": 5}) as tracker:

        def meddle(request: Received) -> None:
            if b"SortieIssues" in request.body and b"cursor:" in request.body:
                server.before = lambda request: None
                service.put(old[0], title="changed")
                service.put()

        server.before = meddle
        first = await tracker.fetch_candidates(TODO)
        second = await tracker.fetch_candidates(TODO)

    assert len(ids(first)) == len(set(ids(first)))
    assert set(ids(first)) >= set(old)
    assert len(second) == 13
    assert "changed" in {issue.title for issue in second}


async def test_a_page_that_fails_changes_nothing(
    service: LinearService, server: TestServer
) -> None:
    """It is a failed poll and no shorter list; the next one has all."""
    every = [service.put()["id"] for _ in range(12)]
    async with opened(server, {"page_size": 5}) as tracker:
        server.inject(Refuse(status=503), body="SortieIssues", skip=1)
        with pytest.raises(TrackerError):
            await tracker.fetch_candidates(TODO)
        whole = await tracker.fetch_candidates(TODO)
        for issue_id in every:
            service.put(issue_id, title="changed")
        server.inject(Refuse(status=503), body="SortieChanges", skip=1)
        with pytest.raises(TrackerError):
            await tracker.fetch_candidates(TODO)
        known = tracker.overview().issues
        after = await tracker.fetch_candidates(TODO)

    assert len(whole) == len(known) == 12
    assert {issue.title for issue in known} != {"changed"}
    assert {issue.title for issue in after} == {"changed"}


async def test_a_page_that_comes_twice_is_an_error_and_no_endless_list(
    service: LinearService, server: TestServer
) -> None:
    """Nor is it the end of the list."""
    for _ in range(12):
        service.put()
    service.stuck = True
    async with opened(server, {"page_size": 5}) as tracker:
        with pytest.raises(TrackerError) as told:
            await tracker.fetch_candidates(TODO)

    assert "the same page comes twice" in str(told.value)


async def test_a_list_that_is_too_complex_is_asked_for_in_smaller_pages(
    service: LinearService, server: TestServer
) -> None:
    """Where complexity counts what is asked for, pages are halved once and stay so."""
    service.counts_asked = True
    for _ in range(60):
        service.put()
    async with opened(server, {"page_size": 250}) as tracker:
        found = await tracker.fetch_candidates(TODO)
        refused = sum(points > 10_000 for points in service.points)
        await tracker.fetch_candidates(TODO)
        read = await tracker.fetch_by_ids([issue.id for issue in found])

    assert len(found) == len(read.issues) == 60
    assert refused > 0
    assert max(p for p in service.points[refused + 1 :] if p <= 10_000) > 1000


async def test_comments_touch_no_list(service: LinearService, tracker: Tracker) -> None:
    """Lists have none, and what is said on an issue does not make it another one."""
    issue_id = service.put()["id"]
    first = await tracker.fetch_candidates(TODO)
    service.say(issue_id, "hello")
    again = await tracker.fetch_candidates(TODO)

    assert first[0].comments == ()
    assert again is first
