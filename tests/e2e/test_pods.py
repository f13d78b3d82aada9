"""Agents in pods: real daemons, and a cluster of the tests, whose pods run on this machine."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import trio

from tests.e2e.conftest import Start
from tests.e2e.place import PATIENCE, SORTIE, Place
from tests.e2e.test_tools import add, kiro_blocks
from tests.e2e.test_tools import blocks as tool_blocks
from tests.kubernetes_api.api_server import ApiServer
from tests.kubernetes_api.real_cluster import RealApi, namespace_of
from tests.kubernetes_api.server import Api, cluster_running

SLOW = 150.0
"""Seconds: the lease of a daemon that was killed has to be over, and a controller that makes one
request to a real API server after the other has to see to Sandboxes."""


TEXT: dict[str, Any] = {"prompt": "{{ issue.description }}", "trust": {"fences": False}}


@pytest.fixture(params=["stand-in", pytest.param("real", marks=pytest.mark.full)])
def server(request: pytest.FixtureRequest) -> ApiServer | None:
    """Give a real API server, or None for the stand-in."""
    return request.getfixturevalue("api_server") if request.param == "real" else None


@pytest.fixture
async def api(place: Place, server: ApiServer | None) -> AsyncIterator[Api | RealApi]:
    """Give a cluster whose nodes have the agent's program, and a kubeconfig for it."""
    async with cluster_running() if server is None else namespace_of(server) as running:
        (place.root / "kubeconfig").write_text(running.kubeconfig())
        running.kubelet.path = f"{os.path.dirname(SORTIE)}:{os.environ['PATH']}"
        yield running


def write_workflow(
    place: Place,
    worker: dict[str, Any] | None = None,
    blocks: Mapping[str, Any] | None = None,
    **pods: Any,
) -> None:
    """Have runs in pods whose volumes are mounted below the place."""
    kubernetes = {"image": "agent:1", "root": str(place.root / "pods"), **pods}
    place.write_workflow(
        **(blocks or {}),
        worker={
            "kubernetes": kubernetes,
            "kubeconfig": str(place.root / "kubeconfig"),
            "ssh_pass_env": ["KIRO_SIM_LOG"],
            **(worker or {}),
        },
    )


def left(api: Api) -> list[str]:
    """Return the names of pods and claims."""
    kinds = ("pods", "persistentvolumeclaims")
    return [name for kind, _, name in api.objects.found if kind in kinds]


async def remain(api: Api, *names: str) -> None:
    """Wait until only these pods and claims are left: claims go a moment after their pods."""
    with trio.fail_after(PATIENCE):
        while left(api) != list(names):
            await trio.sleep(0.05)


async def test_each_issue_has_a_pod_until_it_is_done(place: Place, start: Start, api: Api) -> None:
    """Runs work in pods of their own, a later one in the same, and nothing is left at the end."""
    write_workflow(place)
    names = ["P-1", "P-2", "P-3"]
    for name in names:
        place.add_issue(name, "delay=1")

    async with start() as daemon:
        await daemon.line("issue.moved", lifecycle="handoff", nth=len(names))
        pods = Counter(
            pod["metadata"]["annotations"]["sortie.dev/workspace"]
            for pod in api.objects.items("pods", "agents")
        )
        place.add_issue("P-1", "delay=1")
        await daemon.line("issue.moved", lifecycle="handoff", issue="P-1", nth=2)
        made = len(left(api))
        for name in names:
            place.add_issue(name, "hang=1")
        await daemon.line("turn.started", nth=len(names) + 4)
        for name in names:
            place.add_issue(name, state="Done")
        await daemon.line("workspace.removed", nth=len(names))
    rows = [row for row in await place.history() if row["status"] == "succeeded"]

    assert pods == dict.fromkeys(names, 1)
    assert {(row["status"], row["host"]) for row in rows} == {("succeeded", "kubernetes")}
    assert Counter(row["issue"] for row in rows) == {"P-1": 2, "P-2": 1, "P-3": 1}
    assert {row["workspace"] for row in rows if row["issue"] == "P-1"} == {
        f"{place.root}/pods/P-1/P-1"
    }
    assert made == 6
    await remain(api)
    assert place.processes() == []


def images(api: Api) -> list[str]:
    """Return the images of all pods."""
    pods = api.objects.items("pods", "agents")
    return [pod["spec"]["containers"][0]["image"] for pod in pods]


async def test_an_issue_takes_a_pod_that_waits(place: Place, start: Start, api: Api) -> None:
    """It is there before any issue; another follows, is replaced where the settings change, and the
    end of the daemon ends that."""
    write_workflow(place, warm=1)
    async with start() as daemon:
        await daemon.line("pods.warm", ready=1)
        (waiting,) = api.objects.items("pods", "agents")
        place.add_issue("P-1")
        ready = await daemon.line("pod.ready", host="kubernetes")
        await daemon.line("issue.moved", lifecycle="handoff", issue="P-1")
        await daemon.line("pods.warm", ready=1, nth=2)
        doctor = await place.sortie("doctor", "--host", "kubernetes")
        write_workflow(place, warm=1, image="agent:2")
        with trio.fail_after(PATIENCE):
            while not any(image == "agent:2" for image in images(api)):
                await trio.sleep(0.05)
    rows = await place.history()

    assert waiting["metadata"]["labels"]["sortie.dev/workflow"] == place.root.name
    assert (ready["pod"], ready["origin"]) == (waiting["metadata"]["name"], "warm")
    assert [row["status"] for row in rows] == ["succeeded"]
    assert "1 of 1 warm pods wait for an issue" in doctor.out
    await remain(api, *[waiting["metadata"]["name"]] * 2)


async def test_no_run_meets_the_lease_of_a_daemon_that_was_killed(
    place: Place, start: Start, api: Api
) -> None:
    """Its namespace rests before any run is tried there, also where that daemon has left no run."""
    spec = {"holderIdentity": "killed"}
    api.objects.create("leases", "agents", {"metadata": {"name": "sortie-sortie"}, "spec": spec})
    write_workflow(place)
    place.add_issue("P-1")
    async with start() as daemon:
        rested = await daemon.line("host.rested")
        with trio.fail_after(PATIENCE):
            while "(killed)" not in (await place.sortie("explain", "P-1")).out:
                await trio.sleep(0.05)
    rows = await place.history()

    assert "another daemon (killed) has it, or has ended just now" in rested["error"]
    assert rows == []


@pytest.mark.full
async def test_a_daemon_that_was_killed_finds_the_volume_again(
    place: Place, start: Start, api: Api
) -> None:
    """What its agent left ends with its pod, before the issue runs again on the same volume."""
    write_workflow(place)
    place.add_issue("P-1", "hang=1")
    async with start() as daemon:
        await daemon.line("turn.started", issue="P-1")
        with trio.fail_after(PATIENCE):
            while not place.agents():
                await trio.sleep(0.05)
        (before,) = api.objects.items("pods", "agents")
        (place.root / "pods/P-1/P-1/work").write_text("mine")
        place.add_issue("P-1")
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
    async with start() as daemon:
        # The lease of the one that was killed has to be over first.
        await daemon.line("issue.moved", within=SLOW, lifecycle="handoff", issue="P-1")
        (after,) = api.objects.items("pods", "agents")

    assert before["metadata"]["uid"] != after["metadata"]["uid"]
    assert (place.root / "pods/P-1/P-1/work").read_text() == "mine"
    assert len(place.agents()) == 2
    assert place.processes() == []


async def test_each_issue_has_a_sandbox_until_it_is_done(
    place: Place, start: Start, api: Api
) -> None:
    """Its pod is made for it by the controller, and nothing is left at the end."""
    api.have_sandboxes()
    write_workflow(place, sandboxes="auto")
    place.add_issue("P-1", "hang=1")
    async with start() as daemon:
        await daemon.line("turn.started", within=SLOW, issue="P-1")
        made = (len(api.objects.items("sandboxes", "agents")), len(left(api)))
        place.add_issue("P-1", state="Done")
        await daemon.line("workspace.removed", within=SLOW, issue="P-1")
    await remain(api)

    assert made == (1, 2)
    assert api.objects.items("sandboxes", "agents") == []
    assert place.processes() == []


@pytest.mark.full
async def test_a_daemon_that_was_killed_replaces_its_sandbox(
    place: Place, start: Start, api: Api
) -> None:
    """The next life deletes it, and has a new one on the same volume; the doctor finds no fault."""
    api.have_sandboxes()
    write_workflow(place, sandboxes="auto")
    place.add_issue("P-1", "hang=1")
    async with start() as daemon:
        await daemon.line("turn.started", within=SLOW, issue="P-1")
        with trio.fail_after(PATIENCE):
            while not place.agents():
                await trio.sleep(0.05)
        (before,) = api.objects.items("sandboxes", "agents")
        (place.root / "pods/P-1/P-1/work").write_text("mine")
        place.add_issue("P-1")
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
    doctor = await place.sortie("doctor", "--host", "kubernetes")
    async with start() as daemon:
        # The lease of the one that was killed has to be over first.
        await daemon.line("issue.moved", within=SLOW, lifecycle="handoff", issue="P-1")
        (after,) = api.objects.items("sandboxes", "agents")

    assert "the daemon may make, watch and delete Sandboxes in the namespace" in doctor.out
    assert before["metadata"]["uid"] != after["metadata"]["uid"]
    assert (place.root / "pods/P-1/P-1/work").read_text() == "mine"
    assert len(place.agents()) == 2
    assert place.processes() == []


@pytest.mark.full
async def test_a_run_outlives_a_link_that_is_cut(place: Place, start: Start, api: Api) -> None:
    """Both the loss and the new link are told, and the run ends as if nothing had been."""
    write_workflow(place)
    place.add_issue("P-1", "delay=4")
    async with start() as daemon:
        await daemon.line("turn.started", issue="P-1")
        with trio.fail_after(PATIENCE):
            while not place.agents():
                await trio.sleep(0.05)
        api.cut_links()
        lost = await daemon.line("host.link_lost", host="kubernetes")
        back = await daemon.line("host.link_restored", host="kubernetes")
        await daemon.line("issue.moved", lifecycle="handoff", issue="P-1")
    rows = await place.history()

    assert lost["run"] == back["run"] == rows[0]["run_id"]
    assert [(row["status"], row["attempt"]) for row in rows] == [("succeeded", 0)]
    assert len(place.agents()) == 1


async def left_of_tools(place: Place, issue: str) -> None:
    """Wait until nothing is left of the channel of an issue's tools."""
    with trio.fail_after(PATIENCE):
        while (place.root / "pods" / issue / issue / ".sortie" / "tools").exists():
            await trio.sleep(0.05)


CALLS: tuple[tuple[str, dict[str, str]], ...] = (
    ("note", {"text": "I begin."}),
    ("comment", {"text": "From a pod."}),
    ("history", {}),
)


@pytest.mark.parametrize(
    ("blocks", "line"),
    [
        pytest.param(tool_blocks(), "call {0} {1}", id="MCP"),
        pytest.param(
            kiro_blocks(trust_tools=["shell"]),
            "sim: call='{0} {1}'",
            id="kiro",
            marks=pytest.mark.full,
        ),
    ],
)
async def test_agents_in_pods_have_tools(
    place: Place, start: Start, api: Api, blocks: dict[str, Any], line: str
) -> None:
    """As they have them here, by MCP and by commands, and nothing of them is left."""
    write_workflow(place, blocks=TEXT | blocks)
    add(
        place,
        "P-1",
        *(line.format(name, json.dumps(arguments)) for name, arguments in CALLS),
        line.format("set_status", json.dumps({"status": "needs_review"})),
    )
    async with start() as daemon:
        await daemon.line("run.finished", within=SLOW, issue="P-1", status="succeeded")
        await daemon.line("comment.made", within=SLOW, issue="P-1", lifecycle="agent")
        called = [(line["tool"], line["result"]) for line in daemon.lines("tool.called")]
        lost = daemon.lines("tools.lost") + daemon.lines("tools.client_lost")
        await left_of_tools(place, "P-1")

    assert called == [*((name, "ok") for name, _ in CALLS), ("set_status", "ok")]
    assert lost == []
    assert (place.issues / "P-1.md").read_text().count("> From a pod.") == 1


@pytest.mark.full
async def test_tools_of_a_pod_outlive_a_link_that_is_cut(
    place: Place, start: Start, api: Api
) -> None:
    """Calls of one client before and after, each answered once."""
    write_workflow(place, blocks=TEXT | tool_blocks())
    notes = [f'call note {{"text": "note {number}"}}' for number in range(40)]
    add(place, "P-1", *(line for note in notes for line in (note, "shell sleep 0.2")),
        'call set_status {"status": "done"}')  # fmt: skip
    async with start() as daemon:
        await daemon.line("agent.noted", within=SLOW, issue="P-1", text="note 3")
        api.cut_links()
        await daemon.line("host.link_restored", within=SLOW, host="kubernetes")
        await daemon.line("run.finished", within=SLOW, issue="P-1", status="succeeded")
        noted = [line["text"] for line in daemon.lines("agent.noted")]
        lost = daemon.lines("tools.lost") + daemon.lines("tools.client_lost")

    assert noted == [f"note {number}" for number in range(40)]
    assert lost == []


@pytest.mark.full
async def test_a_daemon_that_was_killed_gives_a_pod_its_tools_again(
    place: Place, start: Start, api: Api
) -> None:
    """The next one ends what is left of the run, and its tools are those of the new one."""
    write_workflow(place, blocks=TEXT | tool_blocks())
    add(place, "P-1", 'call comment {"text": "Before."}', "stop")
    async with start() as daemon:
        await daemon.line("tool.called", within=SLOW, tool="comment", result="ok")
        daemon.signal(signal.SIGKILL)
        await daemon.exit_code()
    add(place, "P-1", 'call note {"text": "After."}', 'call set_status {"status": "done"}')
    async with start() as daemon:
        # The lease of the one that was killed has to be over first.
        await daemon.line("run.finished", within=SLOW, issue="P-1", status="succeeded")
        noted = [line["text"] for line in daemon.lines("agent.noted")]

    assert noted == ["After."]


async def test_what_is_in_the_way_of_pods_is_a_gate_in_words(
    place: Place, start: Start, api: Api
) -> None:
    """The issue waits, and loses no attempt, until the quota lets its pod be made."""
    write_workflow(place)
    api.quota = 0
    place.add_issue("P-1")
    async with start() as daemon:
        told = await daemon.line("host.rested", host="kubernetes")
        api.quota = None
        await daemon.line("issue.moved", lifecycle="handoff", issue="P-1")
    rows = await place.history()

    assert "exceeded quota: agents" in told["error"]
    assert [(row["status"], row["attempt"]) for row in rows][-1] == ("succeeded", 0)


async def test_the_doctor_tells_how_pods_are_made(place: Place, api: Api) -> None:
    """Whether the cluster has Sandboxes, and what the daemon may not do with them."""
    if isinstance(api, RealApi):
        api.drop_sandboxes()
    asked = ("doctor", "--host", "kubernetes")
    write_workflow(place, sandboxes="auto")
    auto = await place.sortie(*asked)
    write_workflow(place, sandboxes="always")
    none = await place.sortie(*asked)
    api.have_sandboxes()
    api.denied = frozenset({("create", "sandboxes")})
    denied = await place.sortie(*asked)

    assert "the cluster has no agents.x-k8s.io/v1beta1, so pods are made directly" in auto.out
    assert "and worker.kubernetes.sandboxes is always" in none.out
    assert "install agent-sandbox 0.5 or newer" in none.out
    assert "the daemon may not create sandboxes in the namespace" in denied.out
    assert "deploy/kubernetes/agents/sandboxes/role.yaml" in denied.out
    assert (auto.code, none.code != 0, denied.code != 0) == (0, True, True)
    assert left(api) == []


async def test_the_doctor_tells_what_the_daemon_may_not_do(place: Place, api: Api) -> None:
    """Nothing is made; a right that is missing is named with the Role that gives it."""
    write_workflow(place)
    api.denied = frozenset({("create", "pods/exec"), ("get", "secrets")})

    ran = await place.sortie("doctor", "--host", "kubernetes")
    api.denied = frozenset({("get", "secrets")})
    write_workflow(place, warm=2)
    well = await place.sortie("doctor", "--host", "kubernetes")

    assert "the daemon may not create pods/exec in the namespace agents" in ran.out
    assert "deploy/kubernetes/agents/pods.yaml" in ran.out
    assert ran.code != 0
    assert (well.code, left(api)) == (0, [])
    assert f"an API server {api.version} answers" in well.out
    assert "the daemon makes 2 warm pods while it runs; none is there" in well.out
