"""Issues that are read again together: what comes, what it costs, and where it is not had."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from sortie.http.github import graphql_path
from sortie.model import IssueId, TrackerError, TrackerErrorKind
from sortie.trackers.github import batches
from sortie.trackers.github.tracker import BATCH_FROM
from tests.trackers.github.graphql_service import PATH
from tests.trackers.github.opened import GitHub, github_opened
from tests.trackers.github.shapes import a_user
from tests.trackers.server.exchange import Reply
from tests.trackers.server.faults import Instead, Refuse


def ids(*numbers: int) -> list[IssueId]:
    """Return the ids of these issues."""
    return [IssueId(str(number)) for number in numbers]


def fill(hub: GitHub, count: int) -> None:
    """Put so many issues with a comment each into the repository."""
    for number in range(1, count + 1):
        hub.service.put(number, names=["Todo", f"label {number % 3}"], body=f"Do {number}")
        hub.service.say(number, "ann", f"about {number}")


def requests(hub: GitHub, since: int = 0) -> tuple[int, int]:
    """Return how many questions were asked by GraphQL and by REST."""
    asked = hub.server.asked[since:]
    together = sum(request.path == PATH for request in asked)
    return together, len(asked) - together


async def test_a_poll_of_a_hundred_issues_costs_what_the_page_says(tmp_path: Path) -> None:
    """One request for changes, one for a hundred re-reads, and one for each that waits for
    others; a server without GraphQL is asked twice for each issue."""
    async with github_opened(tmp_path) as hub:
        fill(hub, 100)
        hub.service.block(1, 2)
        await hub.todo()
        began = len(hub.server.asked)
        await hub.todo()
        polled = requests(hub, began)
        read = await hub.tracker.fetch_by_ids(ids(*range(1, 101)))
        reread = requests(hub, began + sum(polled))
    async with github_opened(tmp_path / "x") as hub:
        hub.service.graphql = "none"
        fill(hub, 20)
        await hub.tracker.fetch_by_ids(ids(*range(1, 21)))
        alone = requests(hub)

    assert polled == (0, 1)
    assert reread == (1, 1)
    assert len(read.issues) == 100
    assert alone == (1, 40)


async def test_issues_read_together_are_as_read_alone(tmp_path: Path) -> None:
    """Whole: labels, assignee, type, parent, blockers, comments of people, Apps and ghosts."""
    async with github_opened(tmp_path, {"priority_labels": {"urgent": 1}}) as hub:
        repository = hub.service.repository
        fill(hub, 6)
        hub.service.change(
            1,
            assignees=[a_user("ann"), a_user("ben")],
            type={"id": 1, "node_id": "T_1", "name": "Bug", "description": None},
            parent_issue_url=f"{repository}/issues/5",
            title="With {{ braces }}",
        )
        hub.service.change(2, parent_issue_url="https://api.github.com/repos/else/where/issues/7")
        hub.service.relabel(3, "In Progress", "urgent")
        hub.service.change(4, state="closed", state_reason="completed", body=None)
        hub.service.block(5, 1, 4)
        hub.service.block(6, hidden=2)
        hub.service.say(1, "dependabot[bot]", "bump")
        hub.service.say(1, "ann", "done\n\n<!-- sortie:RUN:completion -->")
        hub.service.comments[2][0]["user"] = None
        together = await hub.tracker.fetch_by_ids(ids(*range(1, 7)))
        asked = requests(hub)
        alone = [await hub.read(number) for number in range(1, 7)]

    assert list(together.issues) == alone
    assert together.failed == {}
    assert asked[0] == 1
    assert together.issues[0].comments[1].author == "dependabot[bot]"


async def test_what_is_not_there_is_missing_and_what_cannot_be_read_fails(
    tmp_path: Path,
) -> None:
    """Each by itself: pull requests, issues that are gone, and one that makes no sense."""
    async with github_opened(tmp_path) as hub:
        fill(hub, 6)
        hub.service.items[2]["pull_request"] = {"url": "x"}
        hub.service.remove(3, "deleted")
        hub.service.items[4]["created_at"] = "yesterday"
        read = await hub.tracker.fetch_by_ids([*ids(*range(1, 7), 99), IssueId("A-1")])
        asked = requests(hub)

    assert [issue.id for issue in read.issues] == ids(1, 5, 6)
    assert {i: error.kind for i, error in read.failed.items()} == {
        IssueId("4"): TrackerErrorKind.INVALID
    }
    assert asked == (1, 0)


async def test_an_issue_of_which_a_part_may_not_be_seen_is_read_alone(tmp_path: Path) -> None:
    """Such as a parent in another repository; the others come together all the same."""
    async with github_opened(tmp_path) as hub:
        fill(hub, 6)

        def forbid(reply: Reply) -> Reply:
            error = {"type": "FORBIDDEN", "path": ["repository", "i3", "parent"], "message": "no"}
            return replace(reply, body={**reply.body, "errors": [error]}, sound=False)

        hub.server.inject(Instead(forbid), path="graphql$")
        read = await hub.tracker.fetch_by_ids(ids(*range(1, 7)))

    assert [issue.id for issue in read.issues] == ids(*range(1, 7))
    assert requests(hub) == (1, 2)


async def test_a_repository_that_is_hidden_is_an_outage_and_no_end_of_its_issues(
    tmp_path: Path,
) -> None:
    """As where they are read alone."""
    async with github_opened(tmp_path) as hub:
        fill(hub, 5)
        hub.service.visible = False
        with pytest.raises(TrackerError) as hidden:
            await hub.tracker.fetch_by_ids(ids(*range(1, 6)))

    assert hidden.value.kind is TrackerErrorKind.CLOSED


async def test_few_issues_are_read_alone(tmp_path: Path) -> None:
    """What has not changed costs nothing then."""
    async with github_opened(tmp_path) as hub:
        fill(hub, BATCH_FROM)
        await hub.tracker.fetch_by_ids(ids(*range(1, BATCH_FROM)))
        few = requests(hub)
        await hub.tracker.fetch_by_ids(ids(*range(1, BATCH_FROM + 1)))

    assert few == (0, 2 * (BATCH_FROM - 1))
    assert requests(hub, sum(few)) == (1, 0)


@pytest.mark.parametrize("lack", ["none", "old", "forbidden"])
async def test_a_server_without_it_is_asked_by_rest_from_then_on(tmp_path: Path, lack: str) -> None:
    """It is found out once, and every issue comes all the same."""
    async with github_opened(tmp_path) as hub:
        fill(hub, 6)
        if lack == "forbidden":
            body = {"message": "Resource not accessible by personal access token"}
            hub.server.inject(Refuse(status=403, body=body), path="graphql$", times=float("inf"))
        else:
            hub.service.graphql = lack
        reads = [await hub.tracker.fetch_by_ids(ids(*range(1, 7))) for _ in range(2)]

    assert [len(read.issues) for read in reads] == [6, 6]
    assert requests(hub)[0] == 1


async def test_a_budget_that_is_used_up_is_left_alone_until_its_reset(tmp_path: Path) -> None:
    """REST has a budget of its own, and nothing rests meanwhile."""
    async with github_opened(tmp_path) as hub:
        fill(hub, 6)
        hub.service.graphql_remaining, hub.service.reset_in = 0, timedelta(seconds=30)
        reads = [await hub.tracker.fetch_by_ids(ids(*range(1, 7))) for _ in range(3)]
        names = {budget.name: budget.remaining for budget in hub.tracker.budgets()}

    assert [len(read.issues) for read in reads] == [6, 6, 6]
    assert requests(hub)[0] == 1
    assert names["graphql"] == 0


async def test_a_secondary_limit_is_left_alone(tmp_path: Path) -> None:
    """It is one for all requests: REST is not asked instead."""
    async with github_opened(tmp_path) as hub:
        fill(hub, 6)
        hub.service.retry_after = 40
        with pytest.raises(TrackerError) as limited:
            await hub.tracker.fetch_by_ids(ids(*range(1, 7)))
        asked = requests(hub)
        hub.service.retry_after = None
        again = await hub.tracker.fetch_by_ids(ids(*range(1, 7)))

    assert limited.value.retry_after == 40.0
    assert asked == (1, 0)
    assert len(again.issues) == 6
    assert requests(hub)[0] == 2


async def test_too_much_at_once_is_asked_in_halves(tmp_path: Path) -> None:
    """Down to what is answered; and more than a hundred in several requests."""
    async with github_opened(tmp_path) as hub:
        fill(hub, 120)
        read = await hub.tracker.fetch_by_ids(ids(*range(1, 121)))
        in_two = requests(hub)
        hub.service.graphql_most = 30
        again = await hub.tracker.fetch_by_ids(ids(*range(1, 101)))

    assert len(read.issues) == 120
    assert in_two == (2, 0)
    assert len(again.issues) == 100
    assert requests(hub, 2) == (7, 0)


async def test_what_does_not_fit_is_asked_for(tmp_path: Path) -> None:
    """Comments beyond the first ones, and an issue with more labels than a page has."""
    async with github_opened(tmp_path) as hub:
        fill(hub, 5)
        for number in range(batches.COMMENTS):
            hub.service.say(1, "ann", f"more {number}")
        hub.service.relabel(2, "Todo", *(f"l{number}" for number in range(120)))
        read = await hub.tracker.fetch_by_ids(ids(*range(1, 6)))
        asked = requests(hub)

    assert len(read.issues[0].comments) == batches.COMMENTS + 1
    assert len(read.issues[1].labels) == 120
    assert asked == (1, 3)


@pytest.mark.parametrize(
    ("base", "path"),
    [
        ("https://api.github.com", "/graphql"),
        ("https://ghe.example.org/api/v3", "/api/graphql"),
        ("https://api.octo.ghe.com", "/graphql"),
    ],
)
def test_it_is_beside_rest(base: str, path: str) -> None:
    """On github.com, on an Enterprise Server, and with data residency."""
    assert graphql_path(base) == path
