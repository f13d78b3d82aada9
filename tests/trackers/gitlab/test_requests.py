"""How many requests GitLab gets, how it is obeyed, and what it never learns or tells."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sortie.model import TrackerError
from sortie.testing.tracker import context_of
from sortie.trackers.gitlab import ADAPTER
from tests.trackers.gitlab.conftest import Hub, id_of, read_one
from tests.trackers.gitlab.server import gitlab
from tests.trackers.gitlab.world import TOKEN, text_of
from tests.trackers.server.certificates import make_certificate
from tests.trackers.server.faults import Refuse

STATES = ["Todo", "In Progress"]


@pytest.mark.parametrize("enterprise", [False, True])
async def test_a_poll_of_1000_issues_costs_one_request(hub: Hub, enterprise: bool) -> None:
    """And in an Enterprise Edition those that look at what the next ten candidates wait for; of a
    list in which nothing has changed nothing is sent again."""
    hub.world.enterprise = enterprise
    hub.server.contract = None  # 1,000 issues take long to be held to a description
    then = datetime(2026, 5, 1, tzinfo=UTC)
    for number in range(1000):
        at = text_of(then + timedelta(minutes=number))
        hub.world.put(labels=["Todo"], created_at=at, updated_at=at)
    costs, statuses = [], []

    async with hub.open() as tracker:
        for turn in range(4):
            before = len(hub.server.asked)
            if turn == 2:
                for iid in range(100, 120):
                    hub.world.put(iid, title="Changed")
            found = await tracker.fetch_candidates(STATES)
            costs.append(len(hub.server.asked) - before)
            statuses.append(len(found))
            if turn == 2:
                changed = found
        same = found is changed

    links = 10 if enterprise else 0
    assert statuses == [1000] * 4
    assert costs == [12 + links, 1, 1, 1]
    assert same


async def test_what_has_not_changed_is_not_sent_again(hub: Hub) -> None:
    """Lists, comments and links are asked for with the ETag of the last answer."""
    item = hub.world.put(labels=["Todo"])

    async with hub.open() as tracker:
        await tracker.fetch_candidates(STATES)
        await tracker.fetch_candidates(STATES)
        await read_one(tracker, item)
        before = len(hub.server.asked)
        await tracker.fetch_candidates(STATES)
        await read_one(tracker, item)
        asked = hub.server.asked[before:]

    assert asked
    assert all("if-none-match" in request.headers for request in asked)


async def test_a_filter_costs_a_second_request_only_when_something_changed(hub: Hub) -> None:
    """What left the filter has to leave the list."""
    hub.world.enterprise = False
    for labels in (["Todo", "x"], ["Todo", "x"], ["Todo"]):
        hub.world.put(labels=labels, updated_at="2026-05-01T12:00:00.000Z")
    costs = []

    async with hub.open(query_filter="labels=x") as tracker:
        for change in (None, None, (2, ["Todo"]), (3, ["Todo", "x"])):
            before = len(hub.server.asked)
            if change is not None:
                hub.world.put(change[0], labels=change[1])
            found = [issue.identifier for issue in await tracker.fetch_candidates(STATES)]
            costs.append((len(hub.server.asked) - before, found))

    assert [found for _, found in costs] == [
        ["web-1", "web-2"],
        ["web-1", "web-2"],
        ["web-1"],
        ["web-1", "web-3"],
    ]
    assert [cost for cost, _ in costs[1:]] == [2, 2, 2]


async def test_the_token_is_seen_by_nobody(hub: Hub, caplog: pytest.LogCaptureFixture) -> None:
    """It stands in one header, and in no address, error, log or repr; GitLab may even send it
    back."""
    caplog.set_level(logging.DEBUG)
    item = hub.world.put(labels=["Todo"])

    async with hub.open() as tracker:
        await read_one(tracker, item)
        hub.server.inject(Refuse(status=400, body={"message": f"bad {TOKEN}"}))
        with pytest.raises(TrackerError) as refused:
            await tracker.fetch_candidates(STATES)
        told = [str(refused.value), repr(tracker), repr(vars(tracker)), caplog.text]

    assert all(request.headers["private-token"] == TOKEN for request in hub.server.asked)
    assert not [r for r in hub.server.asked if TOKEN in f"{r.path}{r.pairs}"]
    assert not [text for text in told if TOKEN in text]


async def test_gitlab_may_stand_below_a_path_and_behind_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a self-managed one does, with a certificate that this machine trusts."""
    certificate = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    with gitlab(prefix="/git", certificate=certificate) as (world, server):
        for _ in range(5):
            world.put(labels=["Todo"])
        world.per_page_at_most = 2
        keys = {"project": "acme/web", "api_key": TOKEN}
        for endpoint in (f"{server.url}/git", f"{server.url}/git/api/v4/"):
            context = context_of(ADAPTER, {}, tmp_path, endpoint=endpoint, **keys)
            async with ADAPTER.open(context) as tracker:
                assert len(await tracker.fetch_candidates(STATES)) == 5
    assert id_of({"project_id": 1, "iid": 2}) == "1:2"
