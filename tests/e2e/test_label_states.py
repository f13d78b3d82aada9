"""Three stages on a Jira that has no states for them: two are labels, and the daemon is killed."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from typing import Any

import pytest
import trio

from tests.e2e.conftest import Start
from tests.e2e.place import PATIENCE, Place
from tests.trackers.jira.rig import contract_of
from tests.trackers.jira.server import API_KEY, JiraService
from tests.trackers.server.exchange import Received
from tests.trackers.server.faults import Reset
from tests.trackers.server.serving import TestServer, serving

FRONT = """\
---
tracker:
  kind: jira
  endpoint: {url}
  project: PROJ
  api_key: $JIRA_KEY
  active_states: [Todo, In Progress]
  terminal_states: [Done]
  label_states: [check, build]
  in_progress_state: In Progress
  handoff_state: Review
polling: {{interval_ms: 200}}
workspace: {{root: workspaces}}
kiro: {{trust_all_tools: true}}
trust: {{fences: false}}
agent:
  command: sortie-kiro-sim
  max_turns: 1
  stop_grace_ms: 500
  read_timeout_ms: 20000
  status_instructions: false
rules:
  - name: plan
    when: {{states: [Todo, In Progress]}}
    tracker: {{handoff_state: build}}
    prompt: plan
  - name: build
    tracker: {{active_states: [build], in_progress_state: null, handoff_state: check}}
    prompt: build
  - name: check
    tracker: {{active_states: [check], in_progress_state: null}}
    prompt: check
---
sim: say=none
--- prompt: plan
sim: write='.sortie/result.md planned'
--- prompt: build
sim: delay=0.5 write='.sortie/result.md {{{{ stage.previous.result }}}}-built'
--- prompt: check
{{% set last = stage.previous %}}
sim: say='after {{{{ last and last.result }}}}: {{{{ issue.labels | join("+") }}}}'
"""


@pytest.fixture
def service() -> JiraService:
    """A project with the statuses that Jira gives to everybody."""
    statuses = {"Todo": "new", "In Progress": "indeterminate", "Review": "indeterminate"}
    return JiraService(statuses={**statuses, "Done": "done"})


@pytest.fixture
def server(service: JiraService) -> Iterator[TestServer]:
    """Its server, which holds all exchanges to the description."""
    with serving(service, contract_of(service)) as running:
        service.now = running.now
        yield running


@pytest.mark.full
@pytest.mark.parametrize("performed", [False, True])
@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/transitions$"), ("POST", "/transitions$"), ("PUT", "/10001$")]
)
async def test_a_kill_at_a_request_of_a_handoff_leaves_one_state(
    place: Place,
    service: JiraService,
    server: TestServer,
    start: Start,
    method: str,
    path: str,
    performed: bool,
) -> None:
    """From a label to a status there are two changes: killed at each, performed or not, the next
    daemon makes what is left of the move and begins no other run."""
    place.write_text(FRONT.format(url=server.url))
    issue = service.put(1, labels=["check", "bug"])
    key: dict[str, Any] = {"JIRA_KEY": API_KEY}

    def kill_at(request: Received) -> None:
        if request.method == method and re.search(path, request.path):
            server.before = lambda _request: None
            server.inject(Reset(performed=performed))
            daemon.kill()  # so that it does nothing more once it is answered

    async with start(**key) as daemon:
        server.before = kill_at
        assert await daemon.exit_code() == -signal.SIGKILL
    async with start(**key) as daemon:
        with trio.fail_after(PATIENCE):
            while issue.labels != ["bug"] or issue.status != "Review":
                await trio.sleep(0.05)
        await daemon.ready()
    rows = await place.history()

    changes = {"POST": server.count("POST", "/transitions$"), "PUT": server.count("PUT", "")}
    assert changes == {"POST": 1, "PUT": 1} | ({method: 2 - performed} if method in changes else {})
    assert [row["status"] for row in rows] == ["succeeded"]


async def test_an_issue_goes_through_stages_that_are_labels(
    place: Place, service: JiraService, server: TestServer, start: Start
) -> None:
    """Its status is that of people all the while; one that a person has labelled begins there, one
    that is done is left alone, and a kill in the second stage repeats neither the first nor a
    label."""
    place.write_text(FRONT.format(url=server.url))
    service.put(1, labels=["bug"])
    service.put(2, labels=["check"], status="Review")
    service.put(3, labels=["build"], status="Done")
    key: dict[str, Any] = {"JIRA_KEY": API_KEY}

    async with start(**key) as daemon:
        await daemon.line("run.started", issue="PROJ-1", rule="build")
        under_way = service.issues[10001].status, list(service.issues[10001].labels)
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
        log = daemon.log
    async with start(**key) as daemon:
        await daemon.line("issue.moved", issue="PROJ-1", state="Review")
        with trio.fail_after(PATIENCE):
            while service.issues[10002].labels:
                await trio.sleep(0.05)
        log += daemon.log
        doctor = await place.sortie("doctor", **key)
    rows = await place.history()

    assert under_way == ("In Progress", ["bug", "build"])
    first, second, third = (service.issues[10000 + number] for number in (1, 2, 3))
    assert (first.status, first.labels) == ("Review", ["bug"])
    assert (second.status, second.labels) == ("Review", [])
    assert (third.status, third.labels) == ("Done", ["build"])
    ended = [row for row in rows if row["status"] == "succeeded"]
    by_rule = sorted((row["issue"], row["rule"]) for row in ended)
    assert by_rule == [
        ("PROJ-1", "build"),
        ("PROJ-1", "check"),
        ("PROJ-1", "plan"),
        ("PROJ-2", "check"),
    ]
    (answer,) = (r["answer"] for r in ended if (r["issue"], r["rule"]) == ("PROJ-1", "check"))
    assert "after planned-built: bug+check" in answer
    moves = [line["state"] for line in log if line["event"] == "issue.moved"]
    assert sorted(moves) == sorted(["In Progress", "build", "check", "Review", "Review"])
    assert server.count("PUT", "/issue/10001$") == 3
    assert "or labels: check, build" in doctor.out
