"""The list of candidates: whole, kept up to date, and not believed where it turns empty."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from sortie.model import Blocker, IssueId, TrackerError, TrackerErrorKind
from sortie.trackers import TrackerStates
from tests.trackers.jira.conftest import Jira
from tests.trackers.server.exchange import Reply
from tests.trackers.server.faults import Instead

ACTIVE = ["Todo", "In Progress"]


async def listed(jira: Jira, states: list[str] = ACTIVE) -> dict[str, str]:
    """Return the states of the candidates by key."""
    return {i.identifier: i.state for i in await jira.tracker.fetch_candidates(states)}


def searches(jira: Jira) -> int:
    """Return how many searches there were since the last call."""
    return sum("/search" in told for told in jira.asked())


async def test_the_numbers_of_requests(jira: Jira) -> None:
    """A hundred issues a page at first; then one search for what has changed, and no issue made
    again that has not."""
    for number in range(1, 501):
        jira.service.put(number)

    first = await jira.tracker.fetch_candidates(ACTIVE)
    of_first = searches(jira)
    same = await jira.tracker.fetch_candidates(ACTIVE)
    of_same = jira.asked()
    for number in range(1, 21):
        jira.service.edit(number, summary="Another")
    changed = await jira.tracker.fetch_candidates(ACTIVE)
    of_changed = jira.asked()

    assert len(first) == len({issue.id for issue in first}) == 500
    assert of_first == (5 if jira.service.cloud else 6)
    assert same is first
    assert len(of_same) == len(of_changed) == 1
    assert sum(issue.title == "Another" for issue in changed) == 20
    assert sum(one is other for one, other in zip(first, changed, strict=True)) == 480


@pytest.mark.parametrize("tells_last", [True, False])
async def test_pages_may_be_shorter_than_asked(jira: Jira, tells_last: bool) -> None:
    """A short page is not the last one, and one that does not say so is none either."""
    jira.service.page_limit, jira.service.tells_last = 40, tells_last
    for number in range(1, 131):
        jira.service.put(number)

    assert len(await listed(jira)) == 130


async def test_issues_that_leave_while_pages_are_read_hide_no_other(jira: Jira) -> None:
    """Pages shift when issues leave the list; all that stay are in it."""
    for number in range(1, 251):
        jira.service.put(number)

    def leave(start: int) -> None:
        if start == 0:
            return
        for number in range(start - 30, start - 22):
            jira.service.edit(number, status="Done")

    jira.service.sees = leave
    found = await listed(jira)

    staying = {record.key for record in jira.service.issues.values() if record.status == "Todo"}
    assert staying <= set(found)


async def test_a_list_that_shrinks_fast_is_read_again(jira: Jira) -> None:
    """Where more leave than pages overlap, nothing is lost either; without end it is an error."""
    for number in range(1, 251):
        jira.service.put(number)
    times = iter([range(1, 41)])

    def leave(start: int) -> None:
        for number in next(times, ()) if start else ():
            jira.service.edit(number, status="Done")

    jira.service.sees = leave
    found = await listed(jira)

    assert set(found) >= {f"PROJ-{number}" for number in range(41, 251)}


async def test_what_enters_and_leaves_is_seen_by_the_next_poll(jira: Jira) -> None:
    """A search for changes is for all statuses."""
    for number, status in enumerate(("Todo", "In Progress", "Review"), 1):
        jira.service.put(number, status=status)
    before = await listed(jira)

    jira.service.edit(1, status="Review")
    jira.service.edit(3, status="Todo")
    jira.service.edit(4)
    after = await listed(jira)

    assert before == {"PROJ-1": "Todo", "PROJ-2": "In Progress"}
    assert after == {"PROJ-2": "In Progress", "PROJ-3": "Todo", "PROJ-4": "Todo"}


async def test_what_was_deleted_or_hidden_is_gone_with_the_next_whole_list(jira: Jira) -> None:
    """A search for changes cannot tell; an issue that is read again is known at once."""
    for number in (1, 2, 3, 4):
        jira.service.put(number)
    await listed(jira)

    jira.service.lose(1)
    jira.service.put(2, hidden=True)
    jira.service.put(3, project="OTHER")
    await jira.tracker.fetch_by_ids([IssueId("10001")])
    soon = await listed(jira)
    jira.tracker.configure(TrackerStates(active=("Todo",)))  # has the list asked for whole
    later = await listed(jira)

    assert "PROJ-1" not in soon
    assert later == {"PROJ-4": "Todo"}


@pytest.mark.parametrize("minutes", [-30, 0, 30])
async def test_clocks_may_differ(jira: Jira, minutes: int) -> None:
    """Changes are asked for by the server's clock, also those that come a little late."""
    jira.server.skew = timedelta(minutes=minutes)
    jira.service.put(1, updated=jira.server.now() - timedelta(seconds=30))
    await listed(jira)

    jira.service.put(2, updated=jira.server.now() - timedelta(minutes=3))
    found = await listed(jira)

    assert set(found) == {"PROJ-1", "PROJ-2"}
    minutes_asked = re.findall(r"updated >= -(\d+)m", jira.service.searches[-1])
    assert [int(text) in (7, 8) for text in minutes_asked] == [True]


async def test_an_index_that_is_behind_brings_nothing_back(jira: Jira) -> None:
    """An issue that Sortie has moved is not listed as it was, while the index still has that."""
    jira.service.put(1)
    jira.service.put(2)
    (issue, _) = await jira.tracker.fetch_candidates(ACTIVE)

    jira.service.lagging = True
    await jira.tracker.transition(issue, "Review")
    soon = await listed(jira)
    jira.tracker.configure(TrackerStates(active=("Todo",)))
    whole = await listed(jira)
    jira.service.lagging = False
    jira.service.index()
    later = await listed(jira)

    assert soon == whole == later == {"PROJ-2": "Todo"}


async def test_a_late_change_is_seen_when_the_index_has_it(jira: Jira) -> None:
    """A change that comes into the index after others, a few minutes late, is not missed."""
    jira.service.put(1, updated=jira.server.now() - timedelta(minutes=4))
    jira.service.put(2, updated=jira.server.now() - timedelta(seconds=5))
    jira.service.issues.pop(10001)
    jira.service.index()
    before = await listed(jira)
    jira.service.put(1, updated=jira.server.now() - timedelta(minutes=3))

    after = await listed(jira)

    assert (set(before), set(after)) == ({"PROJ-2"}, {"PROJ-1", "PROJ-2"})


async def test_a_filter_costs_a_second_search_where_something_has_changed(jira: Jira) -> None:
    """An issue that is edited out of the filter leaves, one that is edited into it comes; what the
    filter was asked about as it is now costs nothing more. Blockers need not pass it."""
    jira.service.put(1, labels=["agent"], links=[("Blocks", "PROJ-3")])
    jira.service.put(2)
    jira.service.put(3)
    async with jira.opened(query_filter="labels = agent OR labels = bot") as tracker:
        first = await tracker.fetch_candidates(ACTIVE)
        jira.asked()
        jira.service.edit(3, status="Done")
        (waiting,) = await tracker.fetch_candidates(ACTIVE)
        of_blocker = searches(jira)
        await tracker.fetch_candidates(ACTIVE)
        of_nothing = searches(jira)
        jira.service.edit(1, labels=[])
        jira.service.edit(2, labels=["bot"])
        second = await tracker.fetch_candidates(ACTIVE)
        of_both = searches(jira)
        third = await tracker.fetch_candidates(ACTIVE)

    assert [issue.identifier for issue in first] == ["PROJ-1"]
    assert [blocker.state for blocker in waiting.blocked_by] == ["Done"]
    assert [issue.identifier for issue in second] == ["PROJ-2"]
    assert third is second
    assert (of_blocker, of_nothing, of_both) == (2, 1, 2)


async def test_a_state_with_quotes_is_a_state_like_any_other(jira: Jira) -> None:
    """No name of a status breaks the query."""
    name = 'To "do" \\ now) OR (status = Done'
    jira.service.statuses[name] = "new"
    jira.service.put(1, status=name)
    jira.service.put(2, status="Done")

    assert await listed(jira, [name]) == {"PROJ-1": name}


@pytest.mark.parametrize("checked", [True, False])
async def test_a_status_that_is_not_there_is_told(jira: Jira, checked: bool) -> None:
    """Whether Jira refuses a search for it or finds nothing, and also when it was renamed."""
    jira.service.statuses_checked = checked
    jira.service.put(1)
    before = await listed(jira, ["Todo"])

    del jira.service.statuses["Todo"]
    jira.service.statuses["To Do"] = "new"
    jira.service.edit(1, status="To Do")
    with pytest.raises(TrackerError) as told:
        for _ in range(2):
            await jira.tracker.fetch_candidates(["Todo"])

    assert before == {"PROJ-1": "Todo"}
    assert told.value.kind is TrackerErrorKind.INVALID
    assert 'no status "Todo"' in str(told.value)
    assert "To Do" in str(told.value)


async def test_a_dead_key_is_no_empty_project(jira: Jira) -> None:
    """Where a Jira answers everybody, an empty list and missing issues are not believed."""
    jira.service.put(1)
    before = await listed(jira)

    jira.service.anonymous = True
    kinds = []
    for call in (
        lambda: jira.tracker.fetch_by_ids([IssueId("10001")]),
        lambda: jira.tracker.find("PROJ-1"),
        lambda: _swept(jira),
    ):
        with pytest.raises(TrackerError) as told:
            await call()
        kinds.append(told.value.kind)
    jira.service.anonymous = False

    assert before
    assert kinds == [TrackerErrorKind.CLOSED] * 3
    assert await listed(jira) == before


async def _swept(jira: Jira) -> None:
    jira.tracker.configure(TrackerStates(active=("Todo",)))
    await listed(jira)


async def test_an_empty_project_is_empty(jira: Jira) -> None:
    """It is looked into once, and polled like any other then."""
    assert await listed(jira) == {}
    jira.asked()
    assert await listed(jira) == {}
    assert len(jira.asked()) == 1


SPOILED: dict[str, Callable[[Any], Any]] = {
    "no summary": lambda item: {**item, "fields": {**item["fields"], "summary": None}},
    "no fields": lambda item: {**item, "fields": None},
    "a time that is none": lambda item: {**item, "fields": {**item["fields"], "updated": "soon"}},
    "no time": lambda item: {**item, "fields": {**item["fields"], "created": None}},
    "no status": lambda item: {**item, "fields": {**item["fields"], "status": {}}},
    "no key": lambda item: {**item, "key": None},
    "no id": lambda item: {**item, "id": None},
    "no issue": lambda item: "what",
}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
async def test_one_bad_record_hurts_no_other(jira: Jira, spoil: Callable[[Any], Any]) -> None:
    """It is left out, told of, and no time is made up for it."""
    for number in (1, 2, 3):
        jira.service.put(number)

    def spoiled(reply: Reply) -> Reply:
        one, *others = reply.body["issues"]
        return Reply(body={**reply.body, "issues": [spoil(one), *others]}, sound=False)

    jira.server.inject(Instead(spoiled), method="POST", path="search")
    found = await listed(jira)

    assert set(found) == {"PROJ-2", "PROJ-3"}
    assert len(jira.tracker.overview().unreadable) == 1


async def test_only_what_blocks_blocks(jira: Jira) -> None:
    """The inward end of the link that is called so; a finished issue blocks no more, whatever its
    project calls that; and what happens to blockers is seen without the waiting one changing."""
    jira.service.statuses["Shipped it"] = "done"
    jira.service.put(2)
    jira.service.put(3, project="OTHER", status="Shipped it")
    jira.service.put(1, links=[("Blocks", "PROJ-2"), ("Blocks", "PROJ-3"), ("Relates", "PROJ-4")])
    jira.service.put(4, blocks=["PROJ-1"])

    first = await jira.tracker.fetch_candidates(["Todo"])
    jira.service.edit(2, status="Done")
    second = await jira.tracker.fetch_candidates(["Todo"])

    def blockers(issues: Any) -> Any:
        return next(i.blocked_by for i in issues if i.identifier == "PROJ-1")

    done = Blocker(identifier="PROJ-3", id=IssueId("10003"), state="Done")
    open_ = Blocker(identifier="PROJ-2", id=IssueId("10002"), state="Todo")
    assert blockers(first) == (open_, done)
    assert blockers(second) == (replace(open_, state="Done"), done)
    assert next(i.blocked_by for i in first if i.identifier == "PROJ-4") == ()


async def test_links_and_priorities_of_ones_own(jira: Jira) -> None:
    """Both have names that a Jira may change."""
    jira.service.put(2)
    jira.service.put(1, links=[("Relates", "PROJ-2")], priority="Now")

    async with jira.opened({"blocked_by": "Relates to", "priorities": {"now": 1}}) as tracker:
        issues = await tracker.fetch_candidates(ACTIVE)

    (issue,) = (issue for issue in issues if issue.identifier == "PROJ-1")
    assert (issue.priority, [b.identifier for b in issue.blocked_by]) == (1, ["PROJ-2"])


async def test_the_cloud_is_asked_to_bring_written_issues_up_to_date(jira: Jira) -> None:
    """The same ids on every page, for as long as its index may be behind."""
    if not jira.service.cloud:
        pytest.skip("a data center has no such thing")
    jira.service.page_limit = 2
    for number in range(1, 6):
        jira.service.put(number)
    (issue, *_) = await jira.tracker.fetch_candidates(ACTIVE)
    await jira.tracker.transition(issue, "In Progress")
    jira.tracker.configure(TrackerStates(active=("Todo",)))
    jira.asked()

    await listed(jira)
    bodies = [r.json for r in jira.server.asked if r.path.endswith("/search/jql")]

    assert [body["reconcileIssues"] for body in bodies] == [[10001]] * 3
