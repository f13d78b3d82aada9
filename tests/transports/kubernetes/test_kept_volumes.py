"""Volumes with rescued work are read in pods of their own, and go when they are old."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import trio

from sortie.config.kubernetes import KubernetesSettings
from sortie.daemon.workspace_sizes import _forget_volumes
from sortie.model import HostError
from sortie.transports.kubernetes.cluster import ClusterPlace
from sortie.transports.kubernetes.kept_volumes import open_kept_volumes
from sortie.transports.kubernetes.transport import KubernetesTransport
from tests.config.sample import GOOD, settings_of
from tests.kubernetes_api.pods import pods_of
from tests.kubernetes_api.server import Api

LIMIT = 60.0
DATA = "persistentvolumeclaims"
DAY = 86_400.0


async def keep(transport: KubernetesTransport, key: str) -> None:
    """Have a volume with a file that is kept, and another workspace that is not."""
    root = transport.root
    for one in (key, f"{key}-other"):
        await transport.files.make_directory(root, one)
    await transport.files.write_file(f"{root}/{key}/{key}", "work", b"mine")
    transport.forget(key)
    await transport.keeper.keep_volume(key)


async def test_a_volume_is_read_in_a_pod_of_no_instance(
    api: Api, tmp_path: Path, root: Path
) -> None:
    """While a daemon has its own pods, which ends none of it; no variable of a Secret is there."""
    env = {"KEY": {"secret": "agent", "key": "key"}}
    pods = KubernetesSettings.model_validate({"image": "agent:1", "root": str(root), "env": env})
    place = ClusterPlace(host="cluster", kubeconfig=str(tmp_path / "kubeconfig"))
    async with pods_of(api, tmp_path, root) as transport:
        with trio.fail_after(LIMIT):
            await keep(transport, "T-1")
            async with open_kept_volumes(place, pods, str(root)) as volumes:
                known = await volumes.workspaces()
                async with volumes.opened("T-1") as (inside, directory):
                    (reader,) = [
                        pod
                        for pod in api.objects.items("pods", "agents")
                        if "reads" in pod["metadata"]["name"]
                    ]
                    work = await inside.files.read_file(f"{directory}/T-1", "work", 10)
                    former = await transport.keeper.end_former()
                with pytest.raises(HostError, match="gone meanwhile"):
                    async with volumes.opened("T-2"):
                        pass
            left = api.objects.items("pods", "agents")

    assert (known, work, former) == (("T-1",), b"mine", 0)
    assert "sortie.dev/instance" not in reader["metadata"]["labels"]
    assert reader["spec"]["activeDeadlineSeconds"] == 3600
    assert [one["name"] for one in reader["spec"]["containers"][0]["env"]] == ["HOME"]
    assert [
        pod["metadata"]["annotations"]["sortie.dev/workspace"]
        for pod in left
        if "deletionTimestamp" not in pod["metadata"]
    ] == ["T-1-other"]


@pytest.mark.parametrize("kind", ["claim", "emptyDir"])
async def test_a_volume_goes_when_it_was_kept_long_enough(
    api: Api, tmp_path: Path, root: Path, kind: str
) -> None:
    """Another one's stays."""
    given = {"image": "agent:1", "root": str(root), "volume": {"kind": kind}}
    pods = KubernetesSettings.model_validate(given)
    place = ClusterPlace(host="cluster", kubeconfig=str(tmp_path / "kubeconfig"))
    async with pods_of(api, tmp_path, root, volume={"kind": kind}) as transport:
        with trio.fail_after(LIMIT):
            await keep(transport, "T-1")
            async with open_kept_volumes(place, pods, str(root)) as volumes:
                early = await volumes.forget(time.time() - DAY)
                there = await volumes.workspaces()
                late = await volumes.forget(time.time() + DAY)
            resource = DATA if kind == "claim" else "pods"
            while len(left := api.objects.items(resource, "agents")) > 1:
                await trio.sleep(0.02)

    assert (early, there, late) == (0, ("T-1",), 1)
    assert left[0]["metadata"]["annotations"]["sortie.dev/workspace"] == "T-1-other"


@pytest.mark.parametrize("kind", ["claim", "emptyDir"])
async def test_a_volume_whose_issue_runs_again_is_kept_for_it_only(
    api: Api, tmp_path: Path, root: Path, kind: str
) -> None:
    """The daemon forgets what is old, and nothing that is used."""
    settings = settings_of(
        GOOD
        + "worker:\n"
        + f"  kubeconfig: {tmp_path / 'kubeconfig'}\n"
        + "  kubernetes:\n"
        + "    image: agent:1\n"
        + f"    root: {root}\n"
        + f"    volume: {{kind: {kind}}}\n"
    )
    resource = DATA if kind == "claim" else "pods"

    def known() -> set[str]:
        found = api.objects.items(resource, "agents")
        return {one["metadata"]["annotations"]["sortie.dev/workspace"] for one in found}

    async with pods_of(api, tmp_path, root, volume={"kind": kind}) as transport:
        with trio.fail_after(LIMIT):
            await keep(transport, "T-1")
            await keep(transport, "T-2")
            await transport.pod("T-1", make=True)
            await _forget_volumes(settings, time.time() + DAY)
            while "T-2" in known():
                await trio.sleep(0.02)

    assert known() == {"T-1", "T-1-other", "T-2-other"}
