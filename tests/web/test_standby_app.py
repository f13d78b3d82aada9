"""A daemon that stands by over HTTP: the leader answers, and nobody's token leaves the machine."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Set
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import httpx
import pytest
import trio
from starlette.types import ASGIApp

from sortie.facts import Fact
from sortie.store.relay import RelayedAnswer, RelayedRequest, Unanswered
from sortie.telemetry.metrics import Exposition
from sortie.web import relayed_requests, standby_app
from sortie.web.access import Access
from sortie.web.app import Served, create_app
from sortie.web.dashboard.routes import Dashboard
from sortie.web.event_stream import StreamRoom
from sortie.web.health import Health
from sortie.web.relayed_requests import relayed_answer
from sortie.web.sessions import BrowserSessions
from sortie.web.standby_app import RelayedFeed, ServedStandby, StandbyServer
from tests.web.conftest import World
from tests.web.drains import FakeDrains
from tests.web.fixed_daemon import FixedDaemon
from tests.web.leases import HERE, LEASE

URL = "http://localhost:7678"
TOKEN = "a-token-of-the-standby"
HOLDER = {"authorization": f"Bearer {TOKEN}"}


class Leader:
    """A leader below ``base``, with the requests that it was put; ``gone``: it does not answer."""

    def __init__(self, world: World, base: str = "") -> None:
        self.asked: list[RelayedRequest] = []
        self.facts: list[Fact] = []
        self.gone = ""
        self.base = base
        daemon = FixedDaemon(world)
        served = Served(
            daemon=daemon,
            metrics=world.metrics,
            live=world.live,
            dashboard=Dashboard(daemon, base),
        )
        self._app: ASGIApp = create_app(
            served,
            Access(host="10.0.0.9", loopback=False, token="of-the-leader"),
            self.facts.append,
        )

    async def ask(self, request: RelayedRequest) -> RelayedAnswer:
        self.asked.append(request)
        if self.gone:
            raise Unanswered(self.gone)
        return await relayed_answer(self._app, request, self.base, self.facts.append)

    def health(self) -> Health:
        return Health(ready=True, standby=True, details=("vm:1 leads the workflow",))

    def secrets(self) -> Set[str]:
        return frozenset({"of-the-standby-alone"})


@pytest.fixture
def leader(world: World) -> Leader:
    return Leader(world)


@asynccontextmanager
async def standing_by(leader: Leader, base: str = "") -> AsyncIterator[httpx.AsyncClient]:
    """Give a client of a standby that is served below a path."""
    access = Access(
        host="127.0.0.1", loopback=True, token=TOKEN, sessions=BrowserSessions(lambda: 0.0)
    )
    served = ServedStandby(
        leader=leader,
        metrics=lambda _: Exposition(body=b"mine 1\n", content_type="text/plain"),
        drains=FakeDrains(),
        room=StreamRoom(8),
    )
    server = StandbyServer(served, access, leader.facts.append, base)
    app = server.app if not base else _below(server.app, base)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.follow)
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url=URL) as client:
            yield client
        nursery.cancel_scope.cancel()


def _below(app: ASGIApp, base: str) -> ASGIApp:
    async def based(scope, receive, send):  # type: ignore[no-untyped-def]
        await app({**scope, "sortie.base": base}, receive, send)

    return based


@pytest.fixture
async def client(leader: Leader) -> AsyncIterator[httpx.AsyncClient]:
    async with standing_by(leader) as client:
        yield client


@pytest.mark.parametrize(
    "path", ["/api/v1/state", "/api/v1/history", "/", "/issues/DEMO-1", "/api/v1/issues/a%2Fb"]
)
async def test_reads_are_answered_by_the_leader(
    client: httpx.AsyncClient, leader: Leader, path: str
) -> None:
    """Byte for byte as it would answer a client of its own, whoever may read."""
    answer = await client.get(path)
    direct = await leader.ask(leader.asked[0])

    assert answer.status_code == direct.status
    assert answer.headers["content-type"] == direct.headers["content-type"]
    assert leader.asked[0].target == path
    assert leader.asked[0].caller == "anybody"
    if path.startswith("/api"):
        assert answer.content == direct.body


async def test_a_command_is_given_with_the_rights_of_its_sender(
    client: httpx.AsyncClient, leader: Leader, world: World
) -> None:
    """Neither the token nor anything else of the sender's leaves the standby."""
    answer = await client.post("/api/v1/issues/group%2Fp%237/stop", headers=HOLDER)

    assert answer.status_code == 200
    assert world.commands == ["stop group/p#7"]
    assert [(each.method, each.caller) for each in leader.asked] == [("POST", "token")]
    assert TOKEN not in repr(leader.asked)


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("POST", "/api/v1/pause", {}, 401),
        ("POST", "/api/v1/pause", {"authorization": "Bearer of-the-leader"}, 401),
        ("GET", "/api/v1/state", {"host": "evil.example"}, 403),
        ("GET", "/api/v1/state", {"x-forwarded-for": "10.0.0.1"}, 401),
        ("PUT", "/api/v1/state", HOLDER, 405),
    ],
)
async def test_what_is_refused_never_reaches_the_leader(
    client: httpx.AsyncClient,
    leader: Leader,
    method: str,
    path: str,
    headers: dict[str, str],
    status: int,
) -> None:
    """The rules are those of the daemon that is asked."""
    answer = await client.request(method, path, headers=headers)

    assert answer.status_code == status
    assert leader.asked == []


async def test_who_is_signed_in_here_may_give_commands(
    client: httpx.AsyncClient, leader: Leader, world: World
) -> None:
    """The code and the session stay here, and the leader's page has buttons."""
    made = (await client.post("/api/v1/sign-in", headers=HOLDER)).json()
    await client.get(made["path"])
    page = await client.get("/")
    done = await client.post("/pause", headers={"origin": URL})

    assert "/refresh" in page.text
    assert (done.status_code, done.headers["location"]) == (303, "/?done=pause")
    assert world.commands == ["pause"]
    assert {each.caller for each in leader.asked} == {"session"}
    assert not any("sign-in" in each.target for each in leader.asked)


async def test_what_concerns_the_process_is_answered_here(
    client: httpx.AsyncClient, leader: Leader
) -> None:
    """Probes, metrics and drain are never the leader's."""
    ready = await client.get("/readyz")
    alive = await client.get("/livez")
    metrics = await client.get("/metrics")
    before = await client.get("/api/v1/drain/status")
    drained = await client.post("/api/v1/drain", headers=HOLDER)
    cancelled = await client.post("/api/v1/drain/cancel", headers=HOLDER)

    assert (ready.status_code, ready.json()["status"]) == (200, "standby")
    assert (alive.status_code, metrics.text) == (200, "mine 1\n")
    found = [answer.json()["status"] for answer in (before, drained, cancelled)]
    assert found == ["standby", "drained", "standby"]
    assert leader.asked == []


async def test_files_of_pages_are_had_here_and_those_of_another_version_there(
    client: httpx.AsyncClient, leader: Leader
) -> None:
    """A page of a newer leader names files that a standby does not have."""
    page = await client.get("/")
    ours = page.text.split('rel="stylesheet" href="')[1].split('"')[0]

    answers = [await client.get(path) for path in (ours, "/static/sortie.0123.css")]

    assert [answer.status_code for answer in answers] == [200, 404]
    assert [each.target for each in leader.asked] == ["/", "/static/sortie.0123.css"]


async def test_without_an_answer_it_is_said_what_is_known(
    client: httpx.AsyncClient, leader: Leader
) -> None:
    """For programs, commands and people, who may ask again soon."""
    leader.gone = "no daemon <leads> it"

    state = await client.get("/api/v1/state")
    command = await client.post("/api/v1/pause", headers=HOLDER)
    page = await client.get("/", headers={"accept": "text/html"})

    assert [each.status_code for each in (state, command, page)] == [503, 503, 503]
    assert all(each.headers["retry-after"] == "2" for each in (state, command, page))
    assert state.json()["error"] == {"code": "unavailable", "message": "no daemon <leads> it"}
    assert "no daemon &lt;leads&gt; it" in page.text


async def test_what_is_too_large_is_refused(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With words, and never in part."""
    monkeypatch.setattr(relayed_requests, "LARGEST_ANSWER", 100)

    answer = await client.get("/api/v1/state")

    assert answer.status_code == 502
    assert "more than" in answer.json()["error"]["message"]


async def test_a_defect_of_the_leader_stays_there(
    client: httpx.AsyncClient, leader: Leader, world: World
) -> None:
    """Its log has the traceback, and the client a sentence."""
    world.broken = True

    answer = await client.get("/api/v1/state")

    assert answer.status_code == 500
    assert "a detail" not in answer.text
    assert any("a detail" in getattr(fact, "traceback", "") for fact in leader.facts)


@pytest.mark.parametrize(
    ("theirs", "ours"), [("", "/workflows/docs"), ("/workflows/docs", ""), ("/w/a", "/w/b")]
)
async def test_addresses_are_those_of_the_daemon_that_is_asked(
    world: World, theirs: str, ours: str
) -> None:
    """Where one of the two serves several workflows, or under another name."""
    leader = Leader(world, theirs)
    async with standing_by(leader, ours) as client:
        page = await client.get("/")
        pieces = await client.get("/?as=pieces")
        done = await client.post("/pause", headers=HOLDER)

    painted = "".join(json.loads(pieces.text)["set"].values())
    shown = page.text + painted
    assert f'href="{ours}/issues/DEMO-1"' in page.text
    assert f'href="{ours}/issues/DEMO-1"' in painted
    assert done.headers["location"] == f"{ours}/?done=pause"
    if theirs:
        assert f'"{theirs}/' not in shown


@pytest.mark.parametrize(("path", "event"), [("/api/v1/events", "state"), ("/live", "page")])
async def test_live_events_are_made_of_looks_at_the_leader(
    leader: Leader, monkeypatch: pytest.MonkeyPatch, path: str, event: str
) -> None:
    """The first has everything; without followers the leader is left alone."""
    monkeypatch.setattr(standby_app, "LOOK", 0.01)
    monkeypatch.setattr("sortie.web.event_stream.STREAM_SECONDS", 0.05)
    async with standing_by(leader) as client:
        await trio.sleep(0.05)
        idle = list(leader.asked)

        answer = await client.get(path)

    assert idle == []
    assert answer.text.count("event: ") >= 1
    assert f"event: {event}\n" in answer.text
    assert "DEMO-1" in answer.text


async def test_time_that_passes_at_the_leader_is_no_news(leader: Leader, world: World) -> None:
    """A renewal of the lease wakes no follower of the standby; another leader does."""
    feed = RelayedFeed(leader, "state", "/api/v1/state", "generated_at")
    world.state = replace(world.state, lease=LEASE, daemons=(HERE,))
    first = await feed.look()
    renewed = replace(LEASE, seconds_left=15.0, seconds_since_renewal=0.0)
    heard = replace(HERE, heard_at=HERE.heard_at + timedelta(seconds=5))
    world.state = replace(world.state, lease=renewed, daemons=(heard,))
    second = await feed.look()
    world.state = replace(world.state, lease=replace(renewed, leader="west:9"))
    third = await feed.look()

    assert (first, second, third) == (True, False, True)
    assert json.loads(feed.whole()[0].data)["lease"]["seconds_left"] == 15.0
