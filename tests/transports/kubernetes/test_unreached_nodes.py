"""Nodes that count as ready, and whose pods the API server cannot reach."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from sortie.model import HostError, HostTrouble, OccupiedError, RunId
from sortie.transports import COOKIE
from sortie.transports.kubernetes.transport import KubernetesTransport
from sortie.transports.remote import carried_program
from sortie.transports.remote.launch import Bounds
from sortie.workspaces import Workspaces
from tests.kubernetes_api.pods import pods_of
from tests.kubernetes_api.server import Api
from tests.transports.kubernetes.test_links import command, until

pytestmark = [pytest.mark.stand_in]
LIMIT = 90.0


async def prepare(api: Api, transport: KubernetesTransport, root: Path, *names: str) -> list[str]:
    """Make workspaces, each in a pod on a node that is called after it; return their paths."""
    paths = []
    for name in names:
        api.kubelet.node = f"node-{name}"
        workspaces = Workspaces(str(root), transport)
        workspace = await workspaces.prepare(name)
        await workspaces.complete(workspace)
        paths.append(workspace.path)
    return paths


def pods(api: Api, *, leaving: bool = False) -> set[str]:
    """Return the workspaces of the pods that are there, or of those that are being deleted."""
    return {
        one["metadata"]["annotations"]["sortie.dev/workspace"]
        for one in api.objects.items("pods", "agents")
        if not leaving or "deletionTimestamp" in one["metadata"]
    }


async def test_a_run_does_not_begin_in_a_pod_that_cannot_be_reached_and_others_do(
    api: Api, transport: KubernetesTransport, root: Path
) -> None:
    """Its workspace is occupied, and its pod stays: it is used again when it can be reached."""
    with trio.fail_after(LIMIT):
        await prepare(api, transport, root, "A", "B")
        api.kubelet.unreached.add("node-A")
        transport.forget("A")  # what was kept of it is not trusted for long
        workspaces = Workspaces(str(root), transport)
        with pytest.raises(OccupiedError) as refused:
            await workspaces.prepare("A")
        other = await workspaces.prepare("C")
        api.kubelet.unreached.clear()
        again = await workspaces.prepare("A")

    assert "reach the kubelet of its node (node-A)" in str(refused.value)
    assert other.created
    assert not again.created
    assert pods(api) == {"A", "B", "C"}


async def test_a_namespace_without_any_pod_that_answers_is_in_trouble(
    api: Api, transport: KubernetesTransport, root: Path
) -> None:
    """So it is rested, and no pod is ended for it."""
    with trio.fail_after(LIMIT):
        await prepare(api, transport, root, "A", "B")
        api.kubelet.unreached |= {"node-A", "node-B"}
        transport.forget("A")
        with pytest.raises(HostError) as refused:
            await transport.files.make_directory(str(root), "A")
        api.kubelet.unreached.clear()

    assert refused.value.trouble is not HostTrouble.DISRUPTED
    assert pods(api, leaving=True) == set()


async def test_a_run_on_a_node_that_stays_unreached_is_interrupted(
    api: Api, tmp_path: Path, root: Path
) -> None:
    """Its pod is ended by its node, and the namespace is not in trouble."""
    bounds, away = Bounds(reattach=2.0, beat=0.5), list[bool]()
    async with pods_of(api, tmp_path, root, bounds=bounds) as transport:
        with trio.fail_after(LIMIT):
            path, _ = await prepare(api, transport, root, "A", "B")
            given = command(path, "echo here; sleep 1000")
            following = transport.following_links(RunId(given.env[COOKIE]), away.append)
            with pytest.raises(HostError) as lost, following:
                async with transport.process(given) as process:
                    await until(process.output(), b"here")
                    api.kubelet.unreached.add("node-A")
                    api.cut_links()
                    await process.wait()
            while "A" in pods(api):
                await trio.sleep(0.05)

    assert lost.value.trouble is HostTrouble.DISRUPTED
    assert "though pods of other nodes are" in str(lost.value)
    assert away == [True, False]


async def test_a_node_that_falls_silent_is_noticed_behind_an_api_server_that_answers(
    api: Api,
    transport: KubernetesTransport,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its link counts as lost, and is there again, with what was said, when the node is back."""
    monkeypatch.setattr(carried_program, "TRIED_AFTER", 1.0)
    monkeypatch.setattr(carried_program, "TRIAL_BOUND", 2.0)
    changes: list[bool] = []
    with trio.fail_after(LIMIT):
        (path,) = await prepare(api, transport, root, "A")
        gate = root.parent / "gate"
        given = command(path, f"echo here; while [ ! -e {gate} ]; do sleep 0.1; done; echo back")
        with transport.following_links(RunId(given.env[COOKIE]), changes.append):
            async with transport.process(given) as process:
                output = process.output()
                await until(output, b"here")
                await trio.sleep(3.0)  # the agent is silent, and its node is there
                before = list(changes)
                api.kubelet.silent.add("node-A")
                while not changes:
                    await trio.sleep(0.05)
                gate.touch()
                api.kubelet.silent.clear()
                await until(output, b"back")
                exit_ = await process.wait()

    assert before == []
    assert changes == [True, False]
    assert exit_.status == 0
