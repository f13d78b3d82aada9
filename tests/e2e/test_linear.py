"""The daemon at work on a Linear team over HTTP, through limits, outages and kills."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator

import pytest
import trio

from tests.e2e.conftest import Start
from tests.e2e.place import PATIENCE, Place
from tests.trackers.linear.rig import linear
from tests.trackers.linear.service import API_KEY, STATES, LinearService
from tests.trackers.server.exchange import Received
from tests.trackers.server.faults import Reset
from tests.trackers.server.serving import TestServer

ENVIRON = {"LINEAR_API_KEY": API_KEY}
HANDOFF = "Human Review"


@pytest.fixture
def pair() -> Iterator[tuple[LinearService, TestServer]]:
    with linear() as (service, server):
        service.add_team("ENG", (*STATES, (HANDOFF, "started")))
        yield service, server


@pytest.fixture
def service(pair: tuple[LinearService, TestServer]) -> LinearService:
    """A team whose issues are worked on."""
    return pair[0]


@pytest.fixture
def team(place: Place, pair: tuple[LinearService, TestServer]) -> Place:
    """A place whose issues are those of the team."""
    place.write_workflow(
        tracker={
            "kind": "linear",
            "endpoint": f"{pair[1].url}/graphql",
            "project": "ENG",
            "api_key": "$LINEAR_API_KEY",
            "comments": {"on_dispatch": True, "on_completion": True, "on_failure": True},
        },
    )
    return place


def state_of(service: LinearService, issue_id: str) -> str:
    """Return the state in which an issue is."""
    return str(service.issues[issue_id]["state"]["name"])


async def until_said(service: LinearService, issue_id: str, count: int) -> list[str]:
    """Wait until so many comments are on an issue, and return the first words of each."""
    with trio.fail_after(PATIENCE):
        while len(service.said(issue_id)) < count:
            await trio.sleep(0.02)
    return [" ".join(body.split()[:2]) for body in service.said(issue_id)]


async def test_issues_are_worked_on_from_the_first_poll_to_the_last_comment(
    team: Place, service: LinearService, start: Start
) -> None:
    """Dispatch, in progress, comments, handoff; a blocked issue waits for its blocker to be done,
    whose workspace goes then; the key is seen by nobody."""
    first, second = service.put(priority=1.0), service.put(priority=2.0)
    service.block(second["id"], first["id"])

    async with start("--log-level", "debug", **ENVIRON) as daemon:
        await daemon.line("issue.moved", issue="ENG-1", lifecycle="handoff")
        said = await until_said(service, first["id"], 2)
        early = daemon.lines("run.started", issue="ENG-2")
        service.put(first["id"], state="Done")
        await daemon.line("issue.moved", issue="ENG-2", lifecycle="handoff")
        assert (await team.sortie("refresh", within=PATIENCE, **ENVIRON)).code == 0
        await daemon.line("workspace.removed", issue="ENG-1")
        ready, page = await daemon.get("/readyz"), await daemon.get("/metrics")
        state = await daemon.get("/api/v1/state")
        log = json.dumps(daemon.log)

    moves = [line["state"] for line in daemon.lines("issue.moved", issue="ENG-1")]
    assert moves == ["In Progress", HANDOFF]
    assert (said, early) == (["Sortie started", "The run"], [])
    assert state_of(service, second["id"]) == HANDOFF
    assert "the tracker's budget of requests" in ready.text
    assert 'sortie_tracker_budget_limit{budget="requests"} 5000.0' in page.text
    for text in (log, page.text, state.text, ready.text):
        assert API_KEY not in text


async def test_limits_and_an_outage_leave_runs_alone_and_repeat_nothing(
    team: Place, service: LinearService, pair: tuple[LinearService, TestServer], start: Start
) -> None:
    """A run under way goes on while Linear is limited, then down, then back; its end is told and
    its issue is handed off once."""
    server = pair[1]
    issue = service.put(description="sim: delay 3")

    async with start("--log-level", "debug", **ENVIRON) as daemon:
        await daemon.line("agent.launched")
        await until_said(service, issue["id"], 1)
        service.retry_after = 1
        await daemon.line("tracker.rests")
        server.stop()
        service.retry_after = None
        await daemon.line("poll.failed", nth=2)
        service.retry_after = 2
        server.start()
        await daemon.line("tracker.rests", nth=2)
        service.retry_after = None
        await daemon.line("issue.moved", issue="ENG-1", lifecycle="handoff")
        said = await until_said(service, issue["id"], 2)
        await daemon.ready()

    assert said == ["Sortie started", "The run"]
    assert state_of(service, issue["id"]) == HANDOFF
    asked = "history", "--format", "json"
    history = json.loads((await team.sortie(*asked, within=PATIENCE, **ENVIRON)).out)
    assert [row["status"] for row in history] == ["succeeded"]
    assert service.operations.count("SortieMove") == 2


FULL = pytest.mark.full


@pytest.mark.parametrize(
    ("request_of", "performed"),
    [
        pytest.param("The run ended", False, marks=FULL),
        pytest.param("The run ended", True, marks=FULL),
        pytest.param("SortieRereadWithStates", False, marks=FULL),
        pytest.param("SortieRereadWithStates", True, marks=FULL),
        pytest.param("SortieMove", False, marks=FULL),
        ("SortieMove", True),
    ],
)
async def test_a_kill_at_any_request_of_a_handoff_leaves_one_comment_and_one_state(
    team: Place,
    service: LinearService,
    pair: tuple[LinearService, TestServer],
    start: Start,
    performed: bool,
    request_of: str,
) -> None:
    """Killed at each of its requests, performed or not, the next daemon brings it to the same end:
    the issue is handed off once, and the comment is there once."""
    server = pair[1]
    issue = service.put()

    def kill_at(request: Received) -> None:
        variables = request.json["variables"]
        begins = variables.get("state") == service.state("In Progress")["id"]
        begins |= "SortieRereadWithStates" in request.body.decode() and not issue["moves"]
        if request_of in request.body.decode() and not begins:
            server.before = lambda request: None
            server.inject(Reset(performed=performed))
            daemon.signal(signal.SIGKILL)
            daemon.process._proc.wait()  # so that it does nothing more once it is answered

    async with start("--log-level", "debug", **ENVIRON) as daemon:
        await until_said(service, issue["id"], 1)
        server.before = kill_at
        assert await daemon.exit_code() == -signal.SIGKILL

    async with start("--log-level", "debug", **ENVIRON) as again:
        with trio.fail_after(PATIENCE):
            while state_of(service, issue["id"]) != HANDOFF:
                await trio.sleep(0.05)
        said = await until_said(service, issue["id"], 2)
        await again.ready()

    assert said == ["Sortie started", "The run"]
    assert service.issues[issue["id"]]["moves"] == ["In Progress", HANDOFF]
