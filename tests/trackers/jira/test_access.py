"""Which Jira is asked, with which key, and that the key is nowhere else."""

from __future__ import annotations

import logging
from base64 import b64encode
from pathlib import Path

import pytest

from sortie.http.client import segment
from sortie.model import IssueId, TrackerError, TrackerErrorKind
from sortie.testing.tracker import context_of
from sortie.trackers.jira import ADAPTER
from tests.trackers.jira.conftest import Jira
from tests.trackers.jira.contracts import CloudContract
from tests.trackers.jira.server import API_KEY, PAT, JiraService
from tests.trackers.server.exchange import Received, Reply
from tests.trackers.server.faults import Refuse
from tests.trackers.server.serving import serving


async def test_the_edition_is_asked_for_once(jira: Jira) -> None:
    """By a route that both have; then all is asked in its own version."""
    jira.service.put(1)
    await jira.tracker.fetch_candidates(["Todo"])
    await jira.tracker.fetch_candidates(["Todo"])

    paths = [request.path for request in jira.server.asked]
    assert paths.count("/rest/api/2/serverInfo") == 1
    version = jira.service.api
    assert all(path.startswith(version) for path in paths if path != "/rest/api/2/serverInfo")


class Gateway:
    """A service below a path, as Atlassian's gateway has it, and proxies do."""

    def __init__(self, service: JiraService, prefix: str) -> None:
        self.service = service
        self.prefix = prefix

    def answer(self, request: Received) -> Reply:
        """Answer what is below the path."""
        from dataclasses import replace

        if not request.path.startswith(self.prefix):
            return Reply(status=404, body=b"nothing here", sound=False)
        return self.service.answer(replace(request, path=request.path.removeprefix(self.prefix)))


@pytest.mark.parametrize("prefix", ["/ex/jira/11223344-a1b2-3b33-c444-def123456789", "/jira"])
async def test_a_jira_below_a_path(tmp_path: Path, prefix: str) -> None:
    """The path stays before each route, and people are sent to the address that Jira tells."""
    service = JiraService()
    service.put(1)
    with serving(Gateway(service, prefix), CloudContract(prefix)) as server:
        keys = {"endpoint": f"{server.url}{prefix}/", "project": "PROJ", "api_key": API_KEY}
        context = context_of(ADAPTER, {"deployment": "cloud"}, tmp_path, **keys)
        async with ADAPTER.open(context) as tracker:
            (issue,) = await tracker.fetch_candidates(["Todo"])
            await tracker.transition(issue, "Review")

    assert issue.url == "https://jira.example.org/browse/PROJ-1"
    assert service.issues[10001].status == "Review"


@pytest.mark.parametrize("key", [API_KEY, PAT])
async def test_keys_are_sent_as_what_they_are(jira: Jira, key: str) -> None:
    """With a colon as a user's, without one as a token."""
    async with jira.opened(api_key=f" {key}\n") as tracker:
        await tracker.fetch_candidates(["Todo"])

    sent = {request.headers["authorization"] for request in jira.server.asked}
    basic = f"Basic {b64encode(key.encode()).decode()}"
    assert sent == {basic if ":" in key else f"Bearer {key}"}


async def test_a_wrong_key_is_told_and_shown_to_nobody(
    jira: Jira, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in an error, not in a repr, and not in the log of the library."""
    caplog.set_level(logging.DEBUG)
    secret = "jira-secret-7c0ffee"
    jira.server.inject(
        Refuse(status=401, body={"errorMessages": [f"who is {secret}?"]}), path="serverInfo"
    )
    async with jira.opened(api_key=f"me@example.org:{secret}") as tracker:
        with pytest.raises(TrackerError) as echoed:
            await tracker.find("PROJ-1")
        with pytest.raises(TrackerError) as told:
            await tracker.fetch_candidates(["Todo"])
        shown = f"{tracker!r} {vars(tracker)!r} {echoed.value} {told.value}"

    encoded = b64encode(f"me@example.org:{secret}".encode()).decode()
    assert told.value.kind is TrackerErrorKind.CLOSED
    for text in (shown, caplog.text, repr(told.value.__cause__)):
        assert secret not in text
        assert encoded not in text
    assert all(secret not in f"{r.path}{r.query}" for r in jira.server.asked)


async def test_a_captcha_is_told(jira: Jira) -> None:
    """It is no wrong key, and a person has to solve it."""
    denied = {"X-Seraph-LoginReason": "AUTHENTICATION_DENIED"}
    jira.server.inject(Refuse(status=403, headers=denied), path="serverInfo")

    with pytest.raises(TrackerError, match="CAPTCHA"):
        await jira.tracker.fetch_candidates(["Todo"])


async def test_budgets_are_told(jira: Jira) -> None:
    """By the headers of each edition; a bucket that is short has lists wait."""
    if jira.service.cloud:
        reset = jira.server.now().replace(microsecond=0)
        jira.service.budget = {
            "X-RateLimit-Limit": "100",
            "X-RateLimit-Remaining": "60",
            "X-RateLimit-Reset": reset.replace(year=reset.year + 1).isoformat(),
        }
        block = {"deployment": "cloud"}
    else:
        jira.service.budget = {
            "X-RateLimit-Limit": "100",
            "X-RateLimit-Remaining": "60",
            "X-RateLimit-Interval-Seconds": "60",
            "X-RateLimit-FillRate": "10",
            "Retry-After": "0",
        }
        block = {"deployment": "data-center"}
    jira.service.put(1)
    async with jira.opened(block) as tracker:
        await tracker.fetch_candidates(["Todo"])
        (budget,) = tracker.budgets()
        jira.service.budget["X-RateLimit-Remaining"] = "3"
        (issue,) = await tracker.fetch_candidates(["Todo"])
        with pytest.raises(TrackerError) as told:
            await tracker.fetch_candidates(["Todo"])
        moved = await tracker.transition(issue, "Review")

    assert (budget.remaining, budget.limit) == (60, 100)
    assert told.value.lists_only
    assert moved.state == "Review"


async def test_names_that_are_no_keys_are_not_asked_for(jira: Jira) -> None:
    """What is no key and no id is not there, and reaches no path."""
    await jira.tracker.find("PROJ-1")
    jira.asked()

    names = ("..", "PROJ-1/../..", "x y", "PROJ", "-1", "", "PROJ-1?x=1", "1" * 40)
    found = [await jira.tracker.find(name) for name in names]

    assert found == [None] * len(names)
    assert jira.asked() == []
    assert segment("..") == "%2E%2E"


async def test_an_issue_that_the_cloud_cannot_read_now_has_failed(jira: Jira) -> None:
    """It is not gone."""
    if not jira.service.cloud:
        pytest.skip("a data center reads one by one")
    jira.service.put(1)
    jira.service.put(2)
    jira.service.bulk_errors = {10001: "try again"}

    read = await jira.tracker.fetch_by_ids([IssueId("10001"), IssueId("10002"), IssueId("10003")])

    assert [issue.id for issue in read.issues] == ["10002"]
    assert {i: error.kind for i, error in read.failed.items()} == {
        "10001": TrackerErrorKind.UNAVAILABLE
    }


@pytest.mark.parametrize("refused", [True, False])
async def test_many_are_read_though_one_is_missing(jira: Jira, refused: bool) -> None:
    """Also where an unknown id fails a whole search, and where the index is behind."""
    jira.service.missing_ids_refused = refused
    for number in range(1, 26):
        jira.service.put(number)
    jira.service.lose(7)
    jira.service.lagging = True
    jira.service.put(26)

    ids = [IssueId(str(10000 + number)) for number in range(1, 27)]
    read = await jira.tracker.fetch_by_ids(ids)

    assert {issue.id for issue in read.issues} == set(ids) - {"10007"}
