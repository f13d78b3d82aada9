"""The daemon at work on a GitHub repository over HTTP, through limits, outages and kills."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator

import pytest
import trio

from sortie.trackers.http.comments import key_in, without_mark
from tests.e2e.conftest import Start
from tests.e2e.place import PATIENCE, Place
from tests.trackers.github.rig import github, keys_of
from tests.trackers.github.service import TOKEN, GitHubService
from tests.trackers.server.exchange import Received
from tests.trackers.server.faults import Reset
from tests.trackers.server.serving import TestServer

ENVIRON = {"GITHUB_KEY": TOKEN}
HANDOFF = "Human Review"


@pytest.fixture
def pair() -> Iterator[tuple[GitHubService, TestServer]]:
    with github() as (service, server):
        service.remaining = 5000
        yield service, server


@pytest.fixture
def service(pair: tuple[GitHubService, TestServer]) -> GitHubService:
    """A repository whose issues are worked on."""
    return pair[0]


@pytest.fixture
def repository(place: Place, pair: tuple[GitHubService, TestServer]) -> Place:
    """A place whose issues are those of the repository."""
    place.write_workflow(
        tracker={
            "kind": "github",
            **keys_of(pair[1]),
            "api_key": "$GITHUB_KEY",
            "comments": {"on_dispatch": True, "on_completion": True, "on_failure": True},
        },
        github={"change_gap_ms": 0, "priority_labels": {"p1": 1}},
    )
    return place


def said(service: GitHubService, number: int) -> list[str]:
    """Return the first words of each comment."""
    bodies = [without_mark(comment["body"]) for comment in service.comments[number]]
    return [" ".join(body.split()[:2]) for body in bodies]


async def until(condition: object) -> None:
    """Wait until something is so."""
    assert callable(condition)
    with trio.fail_after(PATIENCE):
        while not condition():
            await trio.sleep(0.02)


async def test_issues_are_worked_on_from_the_first_poll_to_the_last_comment(
    repository: Place, service: GitHubService, start: Start
) -> None:
    """Dispatch, in progress, comments, handoff; a blocked issue waits for its blocker to be
    closed, whose workspace goes then; a pull request is left alone; the token is seen by nobody."""
    service.put(1, names=["Todo", "p1"])
    service.put(2, names=["Todo"])
    service.block(2, 1)
    names = ("url", "html_url", "diff_url", "patch_url")
    service.put(3, names=["Todo"], pull_request=dict.fromkeys(names, "https://github.com/x"))

    async with start("--log-level", "debug", **ENVIRON) as daemon:
        await daemon.line("issue.moved", issue="hello-world-1", lifecycle="handoff")
        await until(lambda: len(service.comments[1]) == 2)
        early = daemon.lines("run.started", issue="hello-world-2")
        service.change(1, state="closed", state_reason="completed")
        assert (await repository.sortie("refresh", within=PATIENCE, **ENVIRON)).code == 0
        await daemon.line("issue.moved", issue="hello-world-2", lifecycle="handoff")
        await daemon.line("workspace.removed", issue="hello-world-1")
        ready, page = await daemon.get("/readyz"), await daemon.get("/metrics")
        state = await daemon.get("/api/v1/state")
        log = json.dumps(daemon.log)
        started = daemon.lines("run.started", issue="hello-world-3")

    moves = [line["state"] for line in daemon.lines("issue.moved", issue="hello-world-1")]
    assert moves == ["In Progress", HANDOFF]
    assert (said(service, 1), early, started) == (["Sortie started", "The run"], [], [])
    assert service.names(2) == [HANDOFF]
    assert 'sortie_tracker_budget_limit{budget="core"} 5000.0' in page.text
    for text in (log, page.text, state.text, ready.text):
        assert TOKEN not in text


async def test_limits_and_an_outage_leave_runs_alone_and_repeat_nothing(
    repository: Place, pair: tuple[GitHubService, TestServer], start: Start
) -> None:
    """A run under way goes on while GitHub is limited, then down, then back; its end is told and
    its issue is handed off once."""
    service, server = pair
    service.put(1, names=["Todo"], body="sim: delay 3")

    async with start("--log-level", "debug", **ENVIRON) as daemon:
        await daemon.line("agent.launched")
        await until(lambda: len(service.comments[1]) == 1)
        service.retry_after = 1
        await daemon.line("tracker.rests")
        server.stop()
        service.retry_after = None
        await daemon.line("poll.failed", nth=2)
        service.retry_after = 2
        server.start()
        await daemon.line("tracker.rests", nth=2)
        service.retry_after = None
        await daemon.line("issue.moved", issue="hello-world-1", lifecycle="handoff")
        await until(lambda: len(service.comments[1]) == 2)
        await daemon.ready()

    assert said(service, 1) == ["Sortie started", "The run"]
    assert service.names(1) == [HANDOFF]
    asked = "history", "--format", "json"
    history = json.loads((await repository.sortie(*asked, within=PATIENCE, **ENVIRON)).out)
    assert [row["status"] for row in history] == ["succeeded"]


FULL = pytest.mark.full


@pytest.mark.parametrize(
    ("method", "performed"),
    [
        pytest.param("POST", False, marks=FULL),
        pytest.param("POST", True, marks=FULL),
        pytest.param("DELETE", False, marks=FULL),
        ("DELETE", True),
    ],
)
async def test_a_kill_at_any_change_of_a_handoff_leaves_one_state(
    repository: Place,
    pair: tuple[GitHubService, TestServer],
    start: Start,
    method: str,
    performed: bool,
) -> None:
    """Killed at each of them, performed or not, the next daemon brings the issue to the same end:
    it has the label of one state, and each comment is there once."""
    service, server = pair
    service.put(1, names=["Todo", "bug"])

    def kill_at(request: Received) -> None:
        moving = "labels" in request.segments and "In Progress" in service.names(1)
        beginning = "Todo" in service.names(1)
        if request.method == method and moving and not beginning and len(service.comments[1]) == 2:
            server.before = lambda request: None
            server.inject(Reset(performed=performed))
            daemon.signal(signal.SIGKILL)
            daemon.process._proc.wait()  # so that it does nothing more once it is answered

    def wait_for_comment(request: Received) -> None:
        """Have the end be told before the issue is moved, so that a kill loses no comment."""
        is_move = request.method == "POST" and request.segments[-1] == "labels"
        if is_move and b"Review" in request.body and len(service.comments[1]) == 1:
            server.inject(Reset(performed=False))
        else:
            kill_at(request)

    async with start("--log-level", "debug", **ENVIRON) as daemon:
        await until(lambda: len(service.comments[1]) == 1)
        server.before = wait_for_comment
        assert await daemon.exit_code() == -signal.SIGKILL

    async with start("--log-level", "debug", **ENVIRON) as again:
        await until(lambda: sorted(service.names(1)) == [HANDOFF, "bug"])
        await again.ready()

    assert said(service, 1) == ["Sortie started", "The run"]
    keys = [key_in(comment["body"]) for comment in service.comments[1]]
    assert len(set(keys)) == 2
