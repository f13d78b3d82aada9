"""Who waits for whom at a client whose changes are some time apart, on the virtual clock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise

import httpx2
import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sortie.http.budget import Use
from sortie.http.client import HttpClient, open_client
from sortie.http.credentials import bearer
from sortie.http.requests import HttpRequest
from tests.http.conftest import PROVIDER, TOKEN

GAP = 1.0

ANSWER_TIME = 0.1

READ = HttpRequest(path="/thing", what="cannot read the thing")
CHANGE = HttpRequest(path="/thing", what="cannot change it", method="POST", body=[1], use=Use.WRITE)


class SlowService:
    """Answers each request after a while, and notes when changes came and how many at a time."""

    def __init__(self, answer_time: float = ANSWER_TIME) -> None:
        self.answer_time = answer_time
        self.changes: list[float] = []
        self.most = 0
        self._under_way = 0

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        """Answer a request."""
        if request.method != "GET":
            self.changes.append(trio.current_time())
        self._under_way += 1
        self.most = max(self.most, self._under_way)
        await trio.sleep(self.answer_time)
        self._under_way -= 1
        return httpx2.Response(200, json={})


@asynccontextmanager
async def client_of(service: SlowService) -> AsyncIterator[HttpClient]:
    """Hold a client of the service open that keeps changes apart."""
    provider = replace(PROVIDER, change_gap=GAP, at_once=4)
    async with open_client(provider, "https://tracker.example/api", bearer(TOKEN)) as client:
        client._client = httpx2.AsyncClient(transport=httpx2.MockTransport(service))
        yield client


@pytest.fixture
def clock() -> MockClock:
    """Return a clock on which no time passes but that which everybody waits for."""
    return MockClock(autojump_threshold=0)


async def test_a_read_waits_for_no_change_that_waits_for_its_gap(clock: MockClock) -> None:
    """One read beside 40 changes takes as long as a read alone."""
    service = SlowService()

    async with client_of(service) as client, trio.open_nursery() as nursery:
        for _ in range(40):
            nursery.start_soon(client.ask, CHANGE)
        await trio.sleep(0.05)
        asked_at = trio.current_time()
        await client.ask(READ)
        took = trio.current_time() - asked_at

    assert took == pytest.approx(ANSWER_TIME)
    assert len(service.changes) == 40


async def test_changes_begin_a_gap_apart_though_the_slots_are_taken(clock: MockClock) -> None:
    """Changes that waited for a slot together do not begin together; four requests at most are
    under way."""
    service = SlowService(answer_time=5.0)

    async with client_of(service) as client, trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(client.ask, READ)
        await trio.sleep(0.5)
        for _ in range(3):
            nursery.start_soon(client.ask, CHANGE)

    begun = service.changes
    assert [later - earlier for earlier, later in pairwise(begun)] == pytest.approx([GAP, GAP])
    assert service.most == 4


async def test_a_change_that_is_given_up_frees_its_place(clock: MockClock) -> None:
    """Neither its slot nor the turn is lost where somebody stops waiting for a change."""
    service = SlowService()

    async with client_of(service) as client:
        await client.ask(CHANGE)
        with trio.move_on_after(0.2) as given_up:
            await client.ask(CHANGE)
        for _ in range(8):
            await client.ask(CHANGE)

    assert given_up.cancelled_caught
    assert len(service.changes) == 9
