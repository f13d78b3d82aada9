"""The stand-in is held to the description of a real API server, and so is who asks it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from sortie.transports.kubernetes.api_errors import ApiRefusal
from sortie.transports.kubernetes.cluster import Cluster, ClusterPlace
from tests.kubernetes_api.server import Api, cluster_running

LIMIT = 60.0
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "one"},
    "spec": {"containers": [{"name": "agent", "image": "agent:1", "env": []}]},
}


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    """Give a cluster on whose violations the test looks itself."""
    async with cluster_running() as running:
        yield running
        running.contract.violations.clear()


@pytest.fixture
async def cluster(api: Api, tmp_path: Path) -> AsyncIterator[Cluster]:
    """Give a client of it."""
    path = tmp_path / "kubeconfig"
    path.write_text(api.kubeconfig())
    connected = Cluster(ClusterPlace(host="east", kubeconfig=str(path)))
    yield connected
    await connected.aclose()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"metadta": {}}, "'metadta' was unexpected"),
        ({"spec": {"containers": [{"image": "agent:1"}]}}, "'name' is a required property"),
        ({"spec": {"containers": "agent"}}, "is not of type 'array'"),
    ],
)
async def test_what_is_asked_has_to_be_described(
    api: Api, cluster: Cluster, change: dict[str, Any], told: str
) -> None:
    """A key that there is not, one that lacks and a wrong type are refused, and noted."""
    with trio.fail_after(LIMIT), pytest.raises(ApiRefusal, match="not as described") as caught:
        await cluster.request("make a pod", "POST", "pods", body={**POD, **change})

    assert told in str(caught.value)
    assert len(api.contract.violations) == 1
    assert ("pods", "agents", "one") not in api.objects.found


async def test_a_parameter_that_there_is_not(api: Api, cluster: Cluster) -> None:
    """An API server would ignore it without a word."""
    with trio.fail_after(LIMIT), pytest.raises(ApiRefusal, match="has no parameter labels"):
        await cluster.request("list the pods", "GET", "pods", params={"labels": "a=b"})

    assert len(api.contract.violations) == 1


async def test_what_is_answered_has_to_be_described(api: Api, cluster: Cluster) -> None:
    """Also in a list, and in the change that a watch tells."""
    made = json.loads(json.dumps(POD))
    made["status"] = {"containerStatuses": [{"name": "agent"}]}
    api.objects.create("pods", "agents", made)
    with trio.fail_after(LIMIT):
        await cluster.request("look at a pod", "GET", "pods/one")
        await cluster.request("list the pods", "GET", "pods")
        since = {"resourceVersion": str(api.objects.version - 1)}
        async with cluster.watch("watch pods", "pods", since) as changes:
            await anext(changes)

    assert ["imageID" in one for one in api.contract.violations] == [True] * 3


async def test_errors_are_described_too(api: Api, cluster: Cluster) -> None:
    """As the Status of the API conventions."""
    with trio.fail_after(LIMIT), pytest.raises(ApiRefusal, match="not found"):
        await cluster.request("look at a pod", "GET", "pods/none")

    assert api.contract.violations == []
