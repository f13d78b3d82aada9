"""A process of several workflows over HTTP: each below its path, and all at the root."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

import httpx
import pytest
from prometheus_client import CollectorRegistry, Gauge

from sortie.facts import Fact
from sortie.telemetry.metrics import Exposition, expose
from sortie.telemetry.metrics.several import several_registry
from sortie.web.access import Access
from sortie.web.app import Served, create_app
from sortie.web.base_path import based
from sortie.web.dashboard.routes import Dashboard
from sortie.web.health import Health
from sortie.web.leases import LeaseView
from sortie.web.sessions import BrowserSessions
from sortie.web.several.application import ServedProcess, create_root_app, root_operations
from sortie.web.several.dispatcher import WorkflowDispatcher, base_of_workflow
from sortie.web.several.source import (
    ServedWorkflow,
    SeveralStateView,
    WorkflowStateView,
)
from tests.web.conftest import NOON, World
from tests.web.fixed_daemon import FixedDaemon
from tests.web.leases import GONE, HERE

TOKEN = "a-token-of-the-process"


class Process:
    """Two workflows that work, one that is broken, and one that another daemon leads."""

    def __init__(self) -> None:
        self.worlds = {name: World() for name in ("api", "docs")}
        self.facts: list[Fact] = []
        self.looks = 0
        self.sessions = BrowserSessions(lambda: 0.0)
        access = Access(host="127.0.0.1", loopback=True, token=TOKEN, sessions=self.sessions)
        self.served, apps = [], {}
        for name, world in self.worlds.items():
            daemon = FixedDaemon(world)
            pages = Dashboard(daemon, base_of_workflow(name))
            parts = Served(daemon=daemon, metrics=world.metrics, live=world.live, dashboard=pages)
            apps[name] = create_app(parts, access, self.facts.append)
            self.served.append(ServedWorkflow(name, daemon, pages.painter))
        root = ServedProcess(self, lambda _: Exposition(body=b"all 1\n", content_type="text/plain"))
        self.operations = root_operations(root, access)
        self.app = WorkflowDispatcher(create_root_app(root, access, self.facts.append), apps)

    async def look(self) -> None:
        self.looks += 1

    def state(self) -> SeveralStateView:
        working = [
            WorkflowStateView(
                name=name,
                path=f"/srv/{name}/WORKFLOW.md",
                url=f"/workflows/{name}/",
                status="running",
                ready=True,
                counts=world.state.counts,
                slots=world.state.slots,
            )
            for name, world in self.worlds.items()
        ]
        broken = replace(
            working[0],
            name="web",
            url="/workflows/web/",
            status="broken",
            ready=False,
            errors=("<b>bad</b>",),
            counts=None,
            slots=None,
        )
        far = replace(broken, name="far", url="/workflows/far/", status="standby", errors=())
        lease = LeaseView(workflow="far", is_here=False, token=7, leader="vm:1", since=NOON)
        far = replace(far, lease=lease, counts=working[0].counts)
        every = (*working, broken, far)
        return SeveralStateView(
            generated_at=NOON, slots=5, used=2, workflows=every, daemons=(HERE, GONE)
        )

    def working(self) -> Sequence[ServedWorkflow]:
        return self.served

    def health(self) -> Health:
        return Health(ready=True, details=("web is broken: bad",))

    def secrets(self) -> Set[str]:
        return frozenset()

    def client(self) -> httpx.AsyncClient:
        """Return a client on this machine."""
        transport = httpx.ASGITransport(self.app)
        return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:7678")


async def test_each_workflow_is_below_its_path() -> None:
    """What a workflow alone serves at / is there, pages with addresses below it; a name that is
    none is nothing."""
    process = Process()
    async with process.client() as client:
        state = await client.get("/workflows/docs/api/v1/state")
        page = await client.get("/workflows/docs/")
        nobody = await client.get("/workflows/web/api/v1/state")

    assert state.json()["counts"]["running"] == process.worlds["docs"].state.counts.running
    assert nobody.status_code == 404
    addresses = [part.split('"')[0] for part in page.text.split('href="/')[1:]]
    assert addresses
    assert all(address.startswith("workflows/docs/") for address in addresses)


async def test_the_root_tells_of_all() -> None:
    """State, probes, metrics and a page with the rows of all, each with its workflow's name."""
    process = Process()
    async with process.client() as client:
        state = (await client.get("/api/v1/state")).json()
        ready = await client.get("/readyz")
        page = await client.get("/")
        one = await client.get("/?workflow=docs")
        pieces = (await client.get("/?as=pieces&workflow=docs")).json()
        document = (await client.get("/api/v1/openapi.json")).json()

    assert [(each["name"], each["status"]) for each in state["workflows"]] == [
        ("api", "running"),
        ("docs", "running"),
        ("web", "broken"),
        ("far", "standby"),
    ]
    assert "<small>led by vm:1</small>" in page.text
    assert '<a class="name" href="/workflows/far/">' in page.text
    assert process.looks == 4
    assert (ready.status_code, ready.json()["details"]) == (200, ["web is broken: bad"])
    assert "&lt;b&gt;bad&lt;/b&gt;" in page.text
    assert '<small class="workflow">api</small>' in page.text
    assert 'href="/workflows/api/issues/' in page.text
    assert '<small class="workflow">api</small>' not in one.text
    assert all(not key.startswith("@api/") for key in pieces["set"])
    assert any(key.startswith("@docs/") for key in pieces["set"])
    assert [one["name"] for one in state["daemons"]] == ["east:71", "west:<9>"]
    assert "west:&lt;9&gt;" in page.text
    assert "/api/v1/state" in document["paths"]
    assert "WorkflowStateView" in document["components"]["schemas"]


async def test_one_sign_in_is_for_all() -> None:
    """A code of one workflow signs a browser in everywhere, and leads back to that workflow; a
    command from another site is refused."""
    process = Process()
    async with process.client() as client:
        head = {"Authorization": f"Bearer {TOKEN}"}
        made = await client.post("/workflows/api/api/v1/sign-in", headers=head)
        welcome = await client.get(f"/workflows/api{made.json()['path']}")
        assert 'url=/workflows/api/"' in welcome.text
        assert "signed in" in (await client.get("/")).text
        own = {"Origin": "http://127.0.0.1:7678"}
        answer = await client.post("/workflows/docs/pause", headers=own)
        strange = await client.post("/workflows/docs/pause", headers={"Origin": "http://evil"})
        client.cookies.clear()
        stranger = await client.post("/workflows/docs/api/v1/pause")

    assert answer.headers["location"] == "/workflows/docs/?done=pause"
    assert (strange.status_code, stranger.status_code) == (403, 401)
    assert process.worlds["docs"].commands == ["pause"]
    assert process.worlds["api"].commands == []


def test_metrics_have_the_workflow() -> None:
    """Each time series is there once for each workflow, and those of the process once."""
    registries = {name: CollectorRegistry() for name in ("api", "docs")}
    for number, registry in enumerate(registries.values()):
        Gauge("sortie_runs", "Runs.", ("host",), registry=registry).labels("h").set(number)
        Gauge("sortie_process_threads", "Threads.", registry=registry).set(1)

    page = expose(several_registry(lambda: registries), "").body.decode()

    assert 'sortie_runs{host="h",workflow="api"} 0.0' in page
    assert 'sortie_runs{host="h",workflow="docs"} 1.0' in page
    assert page.count("# TYPE sortie_runs ") == 1
    assert "sortie_process_threads" not in page
    assert "sortie_process_cpu_seconds_total " in page


@pytest.mark.parametrize(
    ("html", "seen"),
    [
        ('<a href="/lists">', '<a href="/workflows/x/lists">'),
        ('<form action="/stop">', '<form action="/workflows/x/stop">'),
        ('<a href="//other/">', '<a href="//other/">'),
        ('<a href="#top">', '<a href="#top">'),
        ("<a href='/'>", "<a href='/'>"),
        ("&#34;href=&#34;/x", "&#34;href=&#34;/x"),
    ],
)
def test_addresses_of_sortie_get_the_path(html: str, seen: str) -> None:
    """Those of others, and texts, stay as they are."""
    assert based(html, "/workflows/x") == seen
    assert based(html, "") == html
