"""The list of candidates: one request a poll, and whole again every ten minutes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from sortie.model import Issue, TrackerError
from sortie.trackers import Tracker
from tests.trackers.linear.rig import opened
from tests.trackers.linear.service import LinearService, text_of
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
