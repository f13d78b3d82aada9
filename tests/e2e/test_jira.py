"""The daemon at work on a Jira project over HTTP, through limits, outages and kills."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Iterator

import pytest
import trio

from tests.e2e.conftest import Start
from tests.e2e.place import PATIENCE, Place
from tests.trackers.jira.rig import contract_of
from tests.trackers.jira.server import API_KEY, PAT, JiraService, Record
from tests.trackers.server.exchange import Received
from tests.trackers.server.faults import Reset
from tests.trackers.server.serving import TestServer, serving

HANDOFF = "Human Review"

READ_WITHIN = 1.0
"""Seconds after which what a daemon has written to its log before a request is known here."""

FULL = pytest.mark.full


@pytest.fixture(
    params=[pytest.param(True, id="cloud"), pytest.param(False, id="data-center", marks=FULL)]
)
def service(request: pytest.FixtureRequest) -> JiraService:
    """A project whose issues are worked on."""
    working = ("Todo", "In Progress", HANDOFF)
    statuses = {**dict.fromkeys(working, "new"), **dict.fromkeys(("Done", "Cancelled"), "done")}
    return JiraService(cloud=request.param, statuses=statuses)


@pytest.fixture
def server(service: JiraService) -> Iterator[TestServer]:
    """Its server, which holds all exchanges to the description."""
    with serving(service, contract_of(service)) as running:
        service.now = running.now
        yield running


@pytest.fixture
def project(place: Place, server: TestServer) -> Place:
    """A place whose issues are those of the project."""
    place.write_workflow(
        tracker={
            "kind": "jira",
            "endpoint": server.url,
            "project": "PROJ",
            "api_key": "$JIRA_KEY",
            "comments": {"on_dispatch": True, "on_completion": True, "on_failure": True},
        },
    )
    return place


def environ(service: JiraService) -> dict[str, str]:
    """Return what the daemon needs in its environment."""
    return {"JIRA_KEY": API_KEY if service.cloud else PAT}


def text(service: JiraService, words: str) -> object:
    """Return a text in the format of the edition."""
    paragraph = {"type": "paragraph", "content": [{"type": "text", "text": words}]}
    return {"type": "doc", "version": 1, "content": [paragraph]} if service.cloud else words


async def until_said(record: Record, count: int) -> list[str]:
    """Wait until so many comments are on an issue, and return which they are."""
    with trio.fail_after(PATIENCE):
        while len(record.comments) < count:
            await trio.sleep(0.02)
    return [comment.properties[0]["value"].partition(":")[2] for comment in record.comments]


async def test_issues_are_worked_on_from_the_first_poll_to_the_last_comment(
    project: Place, service: JiraService, server: TestServer, start: Start
) -> None:
    """Dispatch, in progress, comments, handoff; a blocked issue waits for its blocker to be done,
    whose workspace goes then; the key is seen by nobody."""
    first = service.put(1, priority="High")
    service.put(2, priority="Low", links=[("Blocks", "PROJ-1")])
    key = environ(service)

    async with start("--log-level", "debug", **key) as daemon:
        await daemon.line("issue.moved", issue="PROJ-1", lifecycle="handoff")
        said = await until_said(first, 2)
        early = daemon.lines("run.started", issue="PROJ-2")
        service.edit(1, status="Done")
        await daemon.line("issue.moved", issue="PROJ-2", lifecycle="handoff")
        assert (await project.sortie("refresh", within=PATIENCE, **key)).code == 0
        await daemon.line("workspace.removed", issue="PROJ-1")
        ready, page = await daemon.get("/readyz"), await daemon.get("/metrics")
        state = await daemon.get("/api/v1/state")
        log = json.dumps(daemon.log)

    moves = [line["state"] for line in daemon.lines("issue.moved", issue="PROJ-1")]
    assert moves == ["In Progress", HANDOFF]
    assert (said, early) == (["dispatch", "completion"], [])
    assert service.issues[10002].status == HANDOFF
    for told in (log, page.text, state.text, ready.text):
        assert key["JIRA_KEY"].rpartition(":")[2] not in told


async def test_limits_and_an_outage_leave_runs_alone_and_repeat_nothing(
    project: Place, service: JiraService, server: TestServer, start: Start
) -> None:
    """A run under way goes on while Jira is limited, then down, then back; its end is told and
    its issue is handed off once."""
    issue = service.put(1, description=text(service, "sim: delay 3"))
    key = environ(service)

    async with start("--log-level", "debug", **key) as daemon:
        await daemon.line("agent.launched")
        await until_said(issue, 1)
        service.limited = 1
        await daemon.line("tracker.rests")
        server.stop()
        service.limited = None
        await daemon.line("poll.failed", nth=2)
        service.limited = 2
        server.start()
        await daemon.line("tracker.rests", nth=2)
        service.limited = None
        await daemon.line("issue.moved", issue="PROJ-1", lifecycle="handoff")
        said = await until_said(issue, 2)
        await daemon.ready()

    assert said == ["dispatch", "completion"]
    assert issue.status == HANDOFF
    asked = "history", "--format", "json"
    history = json.loads((await project.sortie(*asked, within=PATIENCE, **key)).out)
    assert [row["status"] for row in history] == ["succeeded"]
    assert server.count("POST", "/transitions$") == 2


@pytest.mark.parametrize(
    ("method", "path", "performed"),
    [
        ("POST", "/transitions$", True),
        pytest.param("POST", "/transitions$", False, marks=FULL),
        pytest.param("POST", "/issue/10001/comment$", True, marks=FULL),
        pytest.param("GET", "/transitions$", False, marks=FULL),
        pytest.param("GET", "/transitions$", True, marks=FULL),
        pytest.param("GET", "/issue/10001$", False, marks=FULL),
        pytest.param("GET", "/issue/10001$", True, marks=FULL),
    ],
)
async def test_a_kill_at_a_request_of_a_handoff_leaves_one_comment_and_one_state(
    project: Place,
    service: JiraService,
    server: TestServer,
    start: Start,
    method: str,
    path: str,
    performed: bool,
) -> None:
    """Killed at each of its requests, performed or not, the next daemon brings it to the same
    end: the issue is handed off once, and the comment is there once."""
    issue = service.put(1, description=text(service, "sim: delay 1"))
    key = environ(service)

    def is_over() -> bool:
        """Tell whether the run is: what is asked from then on is asked for the handoff."""
        ends_at = time.monotonic() + READ_WITHIN
        while not daemon.lines("run.finished"):
            if time.monotonic() > ends_at:
                return False
            time.sleep(0.01)
        return True

    def kill_at(request: Received) -> None:
        if request.method == method and re.search(path, request.path) and is_over():
            server.before = lambda request: None
            server.inject(Reset(performed=performed))
            daemon.kill()  # so that it does nothing more once it is answered

    async with start("--log-level", "debug", **key) as daemon:
        await until_said(issue, 1)
        await daemon.line("turn.started")
        server.before = kill_at
        assert await daemon.exit_code() == -signal.SIGKILL

    async with start("--log-level", "debug", **key) as again:
        with trio.fail_after(PATIENCE):
            while issue.status != HANDOFF:
                await trio.sleep(0.05)
        said = await until_said(issue, 2)
        await again.ready()

    assert said == ["dispatch", "completion"]
    moves = [r for r in server.asked if r.method == "POST" and r.path.endswith("/transitions")]
    assert len(moves) == (3 if (method, path, performed) == ("POST", "/transitions$", False) else 2)
