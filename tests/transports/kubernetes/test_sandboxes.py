"""Pods are made by the controller of agent-sandbox, and end with their Sandboxes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import trio

from sortie.config.kubernetes import KubernetesSettings
from sortie.model import HostError, HostTrouble, TransportError
from sortie.transports.kubernetes.cluster import ClusterPlace
from sortie.transports.kubernetes.kept_volumes import open_kept_volumes
from sortie.transports.kubernetes.manifests import sandbox_of
from sortie.transports.kubernetes.transport import KubernetesTransport
from sortie.workspaces import Workspaces
from tests.contract.transport.launching import everything
from tests.kubernetes_api.objects import Json, Refused
from tests.kubernetes_api.pods import pods_of
from tests.kubernetes_api.real_cluster import RealApi
from tests.kubernetes_api.sandbox_controller import NAME_HASH, SandboxController
from tests.kubernetes_api.server import Api
from tests.transports.kubernetes.test_pods import RUN, in_workspace, kinds, refusal, remain

LIMIT = 120.0
CLAIMS = "persistentvolumeclaims"
FOREVER = "while :; do sleep 0.1; done"


@pytest.fixture
def controller(api: Api | RealApi) -> SandboxController:
    """Give the controller of a cluster that has Sandboxes."""
    return api.have_sandboxes()


@pytest.fixture
async def transport(
    api: Api, controller: SandboxController, tmp_path: Path, root: Path
) -> AsyncIterator[KubernetesTransport]:
    """Give a transport whose pods are made so."""
    async with pods_of(api, tmp_path, root, sandboxes="always", start_timeout_ms=60_000) as made:
        yield made


def only(api: Api, kind: str) -> Json:
    """Return the only object of a kind."""
    (one,) = api.objects.items(kind, "agents")
    return one


async def prepared(transport: KubernetesTransport, root: Path, work: bytes = b"mine") -> str:
    """Have a workspace with a file; return its path."""
    path = (await Workspaces(str(root), transport).prepare("T-1")).path
    await transport.files.write_file(path, "work", work)
    return path


async def test_a_workspace_has_a_sandbox_until_it_is_removed(
    api: Api, transport: KubernetesTransport, root: Path
) -> None:
    """Its pod has all that one has that is made directly; nothing is left of it."""
    with trio.fail_after(LIMIT):
        path = await prepared(transport, root)
        async with transport.process(in_workspace(path, "cat", "work")) as process:
            said = await everything(process)
            await process.wait()
        made, sandbox, pod = kinds(api), only(api, "sandboxes"), only(api, "pods")
        removed = await Workspaces(str(root), transport).remove("T-1")

    assert said[1] == b"mine"
    assert made == [CLAIMS, "pods", "sandboxes"]
    assert (sandbox_of(pod) or {})["uid"] == sandbox["metadata"]["uid"]
    labels = dict(pod["metadata"]["labels"])
    assert labels.pop(NAME_HASH)
    assert labels.pop("sortie.dev/run") == RUN
    assert labels == {
        key: value
        for key, value in sandbox["metadata"]["labels"].items()
        if key != "sortie.dev/run"
    }
    assert sandbox["metadata"]["labels"]["sortie.dev/run"] == RUN
    assert pod["metadata"]["annotations"]["sortie.dev/workspace"] == "T-1"
    assert pod["metadata"]["name"] == sandbox["metadata"]["name"]
    assert removed
    await remain(api)


async def test_a_sandbox_of_an_earlier_life_is_deleted_and_the_volume_stays(
    api: Api, controller: SandboxController, tmp_path: Path, root: Path
) -> None:
    """Also one whose controller has not made a pod; no pod comes back behind it."""
    async with pods_of(api, tmp_path, root, sandboxes="auto") as first:
        with trio.fail_after(LIMIT):
            path = await prepared(first, root)
            old = only(api, "pods")
            controller.away = True
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial(first.pod, "T-2", make=True))
                while len(api.objects.items("sandboxes", "agents")) < 2:
                    await trio.sleep(0.05)
                nursery.cancel_scope.cancel()
    assert len(api.objects.items("sandboxes", "agents")) == 2
    async with pods_of(api, tmp_path, root, sandboxes="auto") as second:
        with trio.fail_after(LIMIT):
            await second.end_former()
            controller.away = False
            left = [api.objects.items(kind, "agents") for kind in ("sandboxes", "pods")]
            work = await second.files.read_file(path, "work", 10)
    new = only(api, "pods")

    assert (left, work) == ([[], []], b"mine")
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    assert (
        new["metadata"]["labels"]["sortie.dev/daemon"]
        != (old["metadata"]["labels"]["sortie.dev/daemon"])
    )


async def test_a_pod_that_is_deleted_comes_back_and_its_run_is_interrupted(
    api: Api, transport: KubernetesTransport, root: Path
) -> None:
    """The controller makes it anew; the run is told what became of the one that it had."""
    with trio.fail_after(LIMIT):
        path = await prepared(transport, root)
        old = only(api, "pods")["metadata"]
        command = in_workspace(path, "sh", "-c", f"echo here; {FOREVER}")
        with pytest.raises(HostError, match=f"pod {old['name']} (was deleted|has ended)"):
            async with transport.process(command) as process:
                async for _ in process.output():
                    _delete_pod(api, old["name"])
                await process.wait()
        work = await transport.files.read_file(path, "work", 10)
        new = only(api, "pods")["metadata"]

        ended = await transport.keeper.end_runs(frozenset({RUN}))

    assert work == b"mine"
    assert (new["name"], new["uid"] != old["uid"]) == (old["name"], True)
    assert new["labels"]["sortie.dev/run"] == RUN
    assert (ended, api.objects.items("sandboxes", "agents")) == (1, [])


async def test_what_a_person_suspends_runs_again_with_the_next_run(
    api: Api, transport: KubernetesTransport, root: Path
) -> None:
    """With what was in its volume."""
    with trio.fail_after(LIMIT):
        path = await prepared(transport, root)
        name = only(api, "sandboxes")["metadata"]["name"]
        suspended = {"spec": {"operatingMode": "Suspended"}}
        api.objects.merge("sandboxes", "agents", name, suspended)
        while api.objects.items("pods", "agents"):
            await trio.sleep(0.05)
        transport.forget("T-1")
        work = await transport.files.read_file(path, "work", 10)

    assert work == b"mine"
    assert only(api, "sandboxes")["spec"]["operatingMode"] == "Running"


async def test_a_sandbox_that_a_person_deletes_takes_no_work_with_it(
    api: Api, controller: SandboxController, transport: KubernetesTransport, root: Path
) -> None:
    """The volume is none of its own; the pod is not used any more, also where the cluster has not
    deleted it yet."""

    async def come_back() -> None:
        while not api.objects.items("sandboxes", "agents"):
            await trio.sleep(0.05)
        controller.away = False

    with trio.fail_after(LIMIT):
        path = await prepared(transport, root)
        old = only(api, "pods")["metadata"]
        controller.away = True
        api.objects.remove("sandboxes", "agents", old["name"])
        transport.forget("T-1")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(come_back)
            work = await transport.files.read_file(path, "work", 10)
            nursery.cancel_scope.cancel()
        new = only(api, "pods")["metadata"]

    assert work == b"mine"
    assert new["uid"] != old["uid"]


async def test_a_pod_that_has_failed_is_made_anew(
    api: Api, transport: KubernetesTransport, root: Path
) -> None:
    """The controller leaves it as it is."""
    with trio.fail_after(LIMIT):
        path = await prepared(transport, root)
        old = only(api, "pods")["metadata"]
        await api.kubelet.fail("agents", old["name"], reason="Evicted", message="low on memory")
        with pytest.raises(TransportError):
            async with transport.process(in_workspace(path, "true")) as process:
                await process.wait()
        work = await transport.files.read_file(path, "work", 10)

    assert work == b"mine"
    assert only(api, "pods")["metadata"]["uid"] != old["uid"]


async def test_an_image_that_cannot_be_pulled_leaves_no_sandbox(
    api: Api, transport: KubernetesTransport, root: Path
) -> None:
    """The next one is made with the settings of then."""
    api.kubelet.unpullable = 'Back-off pulling image "agent:1"'
    error = await refusal(transport, root)
    left = api.objects.items("sandboxes", "agents")
    api.kubelet.unpullable = None
    with trio.fail_after(LIMIT):
        assert await transport.pod("T-1", make=True) is not None

    assert "ImagePullBackOff" in str(error)
    assert left == []


async def test_quotas_count_for_pods_that_the_controller_makes(
    api: Api, controller: SandboxController, tmp_path: Path, root: Path
) -> None:
    """What the cluster says to the controller is told, and so is max_pods."""
    api.quota = 0
    async with pods_of(api, tmp_path, root, max_pods=1, sandboxes="always") as transport:
        quota = await refusal(transport, root)
        left = api.objects.items("sandboxes", "agents")
        api.quota = None
        with trio.fail_after(LIMIT):
            await transport.pod("T-0", make=True)
        most = await refusal(transport, root)

    assert (quota.trouble, most.trouble) == (HostTrouble.BUSY, HostTrouble.BUSY)
    assert "exceeded quota: agents" in str(quota)
    assert left == []
    assert "has 1 pods, and worker.kubernetes.max_pods allows no more" in str(most)


async def test_a_controller_that_does_not_run_is_told(
    api: Api, controller: SandboxController, tmp_path: Path, root: Path
) -> None:
    """When the time is over; a Sandbox counts for max_pods before it has its pod."""
    controller.away = True
    given: Json = {"sandboxes": "always", "token": "life", "max_pods": 1}
    async with pods_of(api, tmp_path, root, start_timeout_ms=5000, **given) as transport:
        error = await refusal(transport, root)
        with trio.fail_after(LIMIT), pytest.raises(HostError, match="allows no more"):
            await transport.pod("T-2", make=True)
    before = only(api, "sandboxes")["metadata"]["uid"]
    controller.away = False
    async with pods_of(api, tmp_path, root, **given) as transport:
        with trio.fail_after(LIMIT):
            assert await transport.pod("T-1", make=True) is not None

    assert "its Sandbox has no pod after 5 s: its controller has told nothing" in str(error)
    assert "look whether the controller of agent-sandbox runs" in str(error)
    assert only(api, "sandboxes")["metadata"]["uid"] == before


async def test_pods_are_made_directly_where_that_is_set(
    api: Api, controller: SandboxController, tmp_path: Path, root: Path
) -> None:
    """With ``never`` they are, also where there are Sandboxes; one of before is deleted with its
    pod."""
    async with pods_of(api, tmp_path, root, sandboxes="always") as first:
        with trio.fail_after(LIMIT):
            path = await prepared(first, root)
    async with pods_of(api, tmp_path, root) as second:
        with trio.fail_after(LIMIT):
            work = await second.files.read_file(path, "work", 10)

    assert work == b"mine"
    assert kinds(api) == [CLAIMS, "pods"]
    assert sandbox_of(only(api, "pods")) is None


async def test_a_cluster_without_sandboxes(api: Api | RealApi, tmp_path: Path, root: Path) -> None:
    """``auto`` makes pods directly there, and ``always`` says what to install."""
    if isinstance(api, RealApi):
        api.drop_sandboxes()
    async with pods_of(api, tmp_path, root, sandboxes="auto") as transport:
        with trio.fail_after(LIMIT):
            await transport.pod("T-1", make=True)
    made = kinds(api)
    async with pods_of(api, tmp_path, root, sandboxes="always") as transport:
        error = await refusal(transport, root)
        api.have_sandboxes()
        with trio.fail_after(LIMIT):
            assert await transport.pod("T-2", make=True) is not None

    assert made == [CLAIMS, "pods"]
    assert "the cluster has no agents.x-k8s.io/v1beta1; install agent-sandbox" in str(error)
    assert error.trouble is HostTrouble.UNREACHABLE


@pytest.mark.stand_in
async def test_a_right_that_is_missing_is_named(
    api: Api, transport: KubernetesTransport, root: Path
) -> None:
    """By the words of the API server."""
    api.denied = frozenset({("create", "sandboxes")})

    told = str(await refusal(transport, root))
    assert 'cannot create resource "sandboxes" in API group "agents.x-k8s.io"' in told


async def test_a_pod_that_the_namespace_does_not_take_is_told_at_once(
    api: Api, tmp_path: Path, controller: SandboxController, root: Path
) -> None:
    """The controller is refused, and goes on trying; nobody waits for that."""

    def refuse(namespace: str, pod: Json) -> None:
        raise Refused(403, "Forbidden", f'pods "{pod["metadata"]["name"]}" is forbidden: violates')

    controller.make_pod = refuse
    async with pods_of(api, tmp_path, root, sandboxes="always") as transport:
        error = await refusal(transport, root)

    assert "is forbidden: violates" in str(error)
    assert api.objects.items("sandboxes", "agents") == []


@pytest.mark.parametrize("kind", ["claim", "emptyDir"])
async def test_rescued_work_is_kept(
    api: Api, controller: SandboxController, tmp_path: Path, root: Path, kind: str
) -> None:
    """With a claim nothing runs any more; without one the Sandbox stays, until its time is over."""
    volume = {"kind": kind}
    given = {"image": "agent:1", "root": str(root), "volume": volume}
    pods = KubernetesSettings.model_validate(given)
    place = ClusterPlace(host="cluster", kubeconfig=str(tmp_path / "kubeconfig"))
    async with pods_of(api, tmp_path, root, volume=volume, sandboxes="always") as transport:
        with trio.fail_after(LIMIT):
            await prepared(transport, root)
            transport.forget("T-1")
            await transport.keeper.keep_volume("T-1")
            kept = kinds(api)
            if kind == "emptyDir":
                await _rescued_label(api, there=True)
                assert await transport.pod("T-1", make=True) is not None
                await _rescued_label(api, there=False)
                transport.forget("T-1")
                await transport.keeper.keep_volume("T-1")
            async with open_kept_volumes(place, pods, str(root)) as volumes:
                async with volumes.opened("T-1") as (inside, directory):
                    work = await inside.files.read_file(f"{directory}/T-1", "work", 10)
                forgotten = await volumes.forget(time.time() + 60)
            await remain(api)

    assert kept == ([CLAIMS] if kind == "claim" else ["pods", "sandboxes"])
    assert (work, forgotten) == (b"mine", 1)


async def _rescued_label(api: Api, *, there: bool) -> None:
    """Wait until a pod and its template have the label of rescued work, or not."""
    found = {not there}
    while found != {there}:
        await trio.sleep(0.05)
        template = only(api, "sandboxes")["spec"]["podTemplate"]
        found = {
            "sortie.dev/rescued" in one["metadata"]["labels"]
            for one in (only(api, "pods"), template)
        }


def _delete_pod(api: Api | RealApi, name: str) -> None:
    if isinstance(api, RealApi):
        api.objects.delete("pods", "agents", name)
    else:
        api.delete_pod("agents", name)
