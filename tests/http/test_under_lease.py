"""What a daemon with a lease may change over HTTP, and until when what it sent may arrive."""

from __future__ import annotations

import math
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import trio

from sortie.http import under_lease
from sortie.http.budget import Use
from sortie.http.client import open_client
from sortie.http.credentials import bearer
from sortie.http.requests import HttpRequest
from sortie.model import TrackerError
from sortie.resources.lease import LEASE, Lease, boot_time
from sortie.scheduler.lease_times import AHEAD, UNTAKEN_LIMIT
from tests.http.conftest import PROVIDER, TOKEN, Opened
from tests.trackers.server.faults import Fault, Hang, Refuse, Reset
from tests.trackers.server.serving import TestServer

READ = HttpRequest(path="/thing", what="cannot read the thing")
CHANGE = HttpRequest(path="/thing", what="cannot change it", method="POST", body=[1], use=Use.WRITE)


@pytest.fixture
def lease() -> Iterator[Lease]:
    """A lease for the test's task."""
    given = Lease("team", 7, "here:1", boot_time() + 600)
    token = LEASE.set(given)
    yield given
    LEASE.reset(token)


@pytest.mark.parametrize("left", [-1.0, AHEAD / 2])
async def test_nothing_is_changed_once_a_lease_is_nearly_over(
    opened: Opened, server: TestServer, lease: Lease, left: float
) -> None:
    """The request is not even sent; what only reads still is."""
    async with opened() as client:
        await client.ask(CHANGE)
        lease.valid_until = boot_time() + left
        with pytest.raises(TrackerError, match=r"cannot change it .*token 7.* is over"):
            await client.ask(CHANGE)
        await client.ask(READ)

    assert [asked.method for asked in server.asked] == ["POST", "GET"]


async def test_what_is_not_taken_in_time_never_arrives(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, lease: Lease
) -> None:
    """The kernel gives each new connection up where the other side does not answer its packets."""
    limits: list[int] = []
    bound = under_lease._bound

    def bounded(made: Any) -> None:
        bound(made)
        limits.append(made.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT))

    monkeypatch.setattr(under_lease, "_bound", bounded)
    async with opened() as client:
        await client.ask(READ)

    assert lease.is_valid
    assert limits == [UNTAKEN_LIMIT * 1000]


async def test_nothing_is_sent_on_a_connection_that_outlived_the_lease(
    opened: Opened, server: TestServer, monkeypatch: pytest.MonkeyPatch, lease: Lease
) -> None:
    """The process was stopped while it connected; then what only reads is sent, and no change."""
    bound = under_lease._bound

    def stopped(made: Any) -> None:
        bound(made)
        lease.valid_until = -1.0

    monkeypatch.setattr(under_lease, "_bound", stopped)
    async with opened() as client:
        with pytest.raises(TrackerError, match=r"cannot change it .*token 7.* is over"):
            await client.ask(CHANGE)
    async with opened() as client:
        await client.ask(READ)

    assert [asked.method for asked in server.asked] == ["GET"]


@pytest.mark.parametrize(
    ("asked", "fault", "is_left"),
    [
        pytest.param(CHANGE, Hang(performed=False), True, id="cut while its answer is awaited"),
        pytest.param(CHANGE, Reset(performed=True), True, id="its answer was lost"),
        pytest.param(CHANGE, Refuse(status=422), False, id="it was refused"),
        pytest.param(CHANGE, None, False, id="it was answered"),
        pytest.param(READ, Hang(performed=False), False, id="it changes nothing"),
    ],
)
async def test_a_lease_knows_of_a_change_without_an_answer(
    opened: Opened,
    server: TestServer,
    lease: Lease,
    asked: HttpRequest,
    fault: Fault | None,
    is_left: bool,
) -> None:
    """It may arrive for some seconds; what was answered, for better or worse, does not."""
    if fault is not None:
        server.inject(fault)
    began = boot_time()

    async with opened() as client, trio.open_nursery() as nursery:

        async def ask() -> None:
            with suppress(TrackerError):
                await client.ask(asked)
            nursery.cancel_scope.cancel()

        async def cut() -> None:
            while not server.asked:
                await trio.sleep(0.01)
            if isinstance(fault, Hang):
                nursery.cancel_scope.cancel()

        nursery.start_soon(ask)
        nursery.start_soon(cut)

    if is_left:
        assert lease.unanswered_until >= began + UNTAKEN_LIMIT
    else:
        assert lease.unanswered_until == -math.inf


async def test_what_was_never_sent_is_not_waited_for(lease: Lease) -> None:
    """Where there is no connection, no change can arrive."""
    async with open_client(PROVIDER, "http://127.0.0.1:1/api", bearer(TOKEN)) as client:
        with pytest.raises(TrackerError, match="it cannot be reached"):
            await client.ask(CHANGE)

    assert lease.unanswered_until == -math.inf


async def test_without_a_lease_nothing_is_asked_of_the_connection(opened: Opened) -> None:
    """A daemon with a file works as ever."""
    async with opened() as client:
        answer = await client.ask(CHANGE)

    assert answer.ok
    assert under_lease.extensions("x", is_change=True) == {}
