"""Which issues are listed, and what a list costs."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from trio.testing import MockClock

from sortie.model import IssueId, TrackerError, TrackerErrorKind
from tests.trackers.github.opened import GitHub, github_opened
from tests.trackers.server.faults import Truncate


def fill(hub: GitHub, count: int, label: str = "Todo", first: int = 1) -> None:
    """Add issues with a label."""
    for number in range(first, first + count):
        hub.service.put(number, names=[label])


async def test_pull_requests_are_no_issues(hub: GitHub) -> None:
    """Neither in lists nor under their number."""
    fill(hub, 2)
    names = ("url", "html_url", "diff_url", "patch_url")
    hub.service.change(2, pull_request=dict.fromkeys(names, "https://github.com/x"))

    assert await hub.todo() == ["1"]
    assert await hub.read(2) is None
    assert await hub.tracker.find("hello-world-2") is None
    issue = await hub.read(1)
    assert issue is not None
    with pytest.raises(TrackerError) as refused:
        await hub.tracker.transition(replace(issue, id=IssueId("2")), "Done")
    assert refused.value.kind is TrackerErrorKind.NOT_FOUND


async def test_five_thousand_issues_cost_what_the_page_says(hub: GitHub) -> None:
    """50 requests at first, one a poll whatever has changed, and none that counts where nothing
    has."""
    service, server = hub.service, hub.server
    server.contract = None  # which would take half a minute here
    service.remaining = 5000
    server.skew = timedelta(hours=-1)
    fill(hub, 60)
    fill(hub, 4940, "backlog", first=61)

    server.skew = timedelta()
    service.relabel(5000, "backlog")

    first = await hub.tracker.fetch_candidates(["todo"])
    after_first, counted_first = len(server.asked), service.counted
    again = await hub.tracker.fetch_candidates(["todo"])
    await hub.tracker.fetch_candidates(["todo"])
    after_same, counted_same = len(server.asked), service.counted
    for number in range(41, 61):
        service.relabel(number, "Review")
    changed = await hub.tracker.fetch_candidates(["todo"])

    assert (after_first, counted_first) == (50, 50)
    assert again is first
    assert after_same - after_first == 2
    assert counted_same - counted_first <= 1  # the first question of this kind has no ETag yet
    assert len(server.asked) - after_same == 1
    assert service.counted - counted_same == 1
    assert [issue.id for issue in changed] == [str(n) for n in range(1, 41)]


async def test_the_whole_list_is_asked_for_again_in_time(
    mock_clock: MockClock, tmp_path: Path
) -> None:
    """What was deleted, transferred or hidden is in no list of changes; same pages are free."""
    mock_clock.rate = 1.0
    async with github_opened(tmp_path) as hub:
        fill(hub, 250)
        hub.service.remaining = 5000
        await hub.todo()
        hub.service.remove(250, "transferred")
        before = await hub.todo()
        counted = hub.service.counted
        mock_clock.jump(600)
        after = await hub.todo()

    assert "250" in before
    assert "250" not in after
    assert hub.service.counted - counted == 1


async def test_a_failed_page_fails_the_poll(hub: GitHub) -> None:
    """It is no shorter list, nothing that was known is lost, and the next poll is whole."""
    fill(hub, 250)
    for skip in (1, 2):
        hub.server.inject(Truncate(whole=True), path="/issues$", skip=skip)
        with pytest.raises(TrackerError) as failed:
            await hub.todo()
        assert failed.value.kind is TrackerErrorKind.UNAVAILABLE

    assert len(await hub.todo()) == 250


async def test_an_issue_that_moves_between_two_pages_is_found_at_last(hub: GitHub) -> None:
    """One that is closed shifts those behind it to a page that was read already, which is no
    change of theirs: the whole list is asked for again, once."""
    hub.server.skew = timedelta(hours=-1)
    fill(hub, 201)
    hub.server.skew = timedelta()
    fill(hub, 1, first=202)
    hub.server.before = lambda request: (
        hub.service.change(5, state="closed", state_reason="completed")
        if request.query.get("page") == "2" and hub.service.items[5]["state"] == "open"
        else None
    )

    first = await hub.todo()
    second = await hub.todo()
    third = await hub.todo()
    asked = len(hub.server.asked)
    await hub.todo()

    assert "101" not in first  # it was at the top of the page that was asked for next
    assert "5" not in second
    assert sorted(third, key=int) == [str(n) for n in range(1, 203) if n != 5]
    assert len(hub.server.asked) == asked + 1


async def test_an_issue_with_an_unreadable_time_is_no_old_one(hub: GitHub) -> None:
    """It is left out, told of, and hurts no other."""
    fill(hub, 2)
    hub.service.spoiled.add(1)
    hub.service.change(1, created_at="yesterday")

    assert await hub.todo() == ["2"]
    (unreadable,) = hub.tracker.overview().unreadable
    assert unreadable.names == {"1", "hello-world-1"}
    assert "yesterday" in unreadable.message


async def test_changes_are_asked_for_by_the_servers_clock(hub: GitHub) -> None:
    """A clock of ours that is wrong by hours loses nothing."""
    hub.server.skew = timedelta(hours=-7)
    fill(hub, 3)
    await hub.todo()
    hub.service.relabel(2, "Done")

    assert await hub.todo() == ["1", "3"]


async def test_a_renamed_label_is_told_of(hub: GitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a list that had issues turns empty, the labels are looked at."""
    told: list[tuple[str, dict[str, object]]] = []
    warn = "sortie.trackers.github.tracker.log.warning"
    monkeypatch.setattr(warn, lambda event, **rest: told.append((event, rest)))
    fill(hub, 1)
    await hub.todo()
    hub.service.labels["to do"] = {**hub.service.labels.pop("todo"), "name": "To do"}
    hub.service.change(1, labels=[hub.service.labels["to do"]])

    assert await hub.todo() == []
    ((event, rest),) = told
    assert (event, rest["missing"]) == ("tracker.states_missing", ["Todo"])


async def test_states_of_a_list_are_those_of_the_settings_now(hub: GitHub) -> None:
    """A list of closed issues is another one than that of open issues."""
    fill(hub, 2)
    hub.service.change(2, state="closed", state_reason="completed")

    assert await hub.todo() == ["1"]
    assert [i.id for i in await hub.tracker.fetch_candidates(["Done"])] == ["2"]
    assert await hub.todo() == ["1"]
