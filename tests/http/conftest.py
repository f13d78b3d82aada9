"""A small service and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from sortie.http.budget import BudgetHeaders, Reset
from sortie.http.client import HttpClient, open_client
from sortie.http.credentials import Credential, bearer
from sortie.http.requests import Provider
from tests.trackers.server.exchange import Received, Reply
from tests.trackers.server.serving import TestServer, serving

TOKEN = "token-7c0ffee-of-a-test"

PROVIDER = Provider(
    name="Example",
    budgets=[
        BudgetHeaders(
            limit="x-limit", remaining="x-left", reset="x-reset", unit=Reset.EPOCH_SECONDS
        )
    ],
)


@dataclass
class Things:
    """Answers what it was given for a path, with an ETag, and notes what was posted."""

    replies: dict[str, Reply] = field(default_factory=dict)
    posted: list[Any] = field(default_factory=list)

    def answer(self, request: Received) -> Reply:
        """See Service."""
        if request.method != "GET":
            self.posted.append(request.json)
            return Reply(status=201, body={"id": len(self.posted)})
        reply = self.replies.get(request.path)
        if reply is None:
            return Reply(status=404, body={"message": "Not Found"})
        if request.headers.get("if-none-match") == reply.headers.get("ETag", 0):
            return Reply(status=304, headers=reply.headers)
        return reply


@pytest.fixture
def things() -> Things:
    """The service."""
    return Things({"/api/thing": Reply(body={"id": 7}, headers={"ETag": '"one"'})})


@pytest.fixture
def server(things: Things) -> Iterator[TestServer]:
    """The service behind a socket."""
    with serving(things) as running:
        yield running


Opened = Callable[..., AbstractAsyncContextManager[HttpClient]]


@pytest.fixture
def opened(server: TestServer) -> Opened:
    """How a client of the service is opened."""

    @asynccontextmanager
    async def _opened(
        provider: Provider = PROVIDER, credential: Credential | None = None
    ) -> AsyncIterator[HttpClient]:
        endpoint = f"{server.url}/api"
        async with open_client(provider, endpoint, credential or bearer(TOKEN)) as client:
            yield client

    return _opened
