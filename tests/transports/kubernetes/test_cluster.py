"""What goes wrong on the way to an API server is told in words, with what to do about it."""

from __future__ import annotations

import base64
import json
import os
import tempfile
from pathlib import Path

import pytest
import trio

from sortie.model import HostError, HostTrouble
from sortie.transports.kubernetes.cluster import Cluster, ClusterPlace
from tests.kubernetes_api.objects import Refused
from tests.kubernetes_api.server import Api, Fault
from tests.ports import free_port


async def told(place: ClusterPlace) -> HostError:
    """Return why a namespace cannot be looked at."""
    cluster = Cluster(place)
    try:
        with trio.fail_after(60), pytest.raises(HostError) as caught:
            await cluster.request("list the pods", "GET", "pods")
    finally:
        await cluster.aclose()
    return caught.value


def kubeconfig(api: Api, directory: Path, **user: str) -> ClusterPlace:
    """Write a kubeconfig, where given with another ``user``; return how it is named."""
    config = json.loads(api.kubeconfig())
    config["users"][0]["user"] |= user
    path = directory / "kubeconfig"
    path.write_text(json.dumps(config))
    return ClusterPlace(host="east", kubeconfig=str(path))


async def test_an_api_server_that_is_not_there(api: Api, tmp_path: Path) -> None:
    """Refused connections are no fault of the settings alone."""
    config = json.loads(api.kubeconfig())
    config["clusters"][0]["cluster"]["server"] = f"http://127.0.0.1:{free_port()}"
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    error = await told(ClusterPlace(host="east", kubeconfig=str(path)))

    assert error.trouble is HostTrouble.UNREACHABLE
    assert str(error).startswith("could not list the pods on host east: the API server cannot be")


async def test_a_token_that_counts_no_more(api: Api, tmp_path: Path) -> None:
    """The server's word is told."""
    place = kubeconfig(api, tmp_path, token="another")

    assert "Unauthorized (401)" in str(await told(place))


@pytest.mark.parametrize("context", [None, "nowhere"])
async def test_a_kubeconfig_that_names_nothing(
    api: Api, tmp_path: Path, context: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a cluster, and with a context that is not in it, the settings are named."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    place = kubeconfig(api, tmp_path)
    if context is None:
        place = ClusterPlace(host="east", kubeconfig=str(tmp_path / "absent"))
    else:
        place = ClusterPlace(host="east", kubeconfig=place.kubeconfig, context=context)

    assert "check worker.kubeconfig and the context" in str(await told(place))


@pytest.mark.stand_in
async def test_a_server_that_puts_off_for_ever_is_busy(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some times it is told, and the host is rested."""
    monkeypatch.setattr("sortie.transports.kubernetes.api_errors._LONGEST_PAUSE", 0.01)
    later = Refused(429, "TooManyRequests", "try again later", retry_after=60)
    api.faults.append(Fault("GET", "/pods$", later, times=100))
    error = await told(kubeconfig(api, tmp_path))

    assert error.trouble is HostTrouble.BUSY
    assert "has put it off 6 times: try again later" in str(error)


@pytest.mark.stand_in
async def test_an_error_of_the_server(api: Api, tmp_path: Path) -> None:
    """Its message and its code."""
    api.faults.append(Fault("GET", "/pods$", Refused(500, "InternalError", "etcd is away")))

    assert "etcd is away (500)" in str(await told(kubeconfig(api, tmp_path)))


@pytest.mark.stand_in
async def test_no_key_of_a_kubeconfig_stays_in_a_file(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither while a cluster is used nor afterwards, also where credentials are read anew."""
    key = base64.b64encode(api.certificate.read_bytes()).decode()
    data = {"client-key-data": key, "client-certificate-data": key}
    place = kubeconfig(api, tmp_path, **data)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    api.faults.append(Fault("GET", "pods", Refused(401, "Unauthorized", "Unauthorized")))
    cluster = Cluster(place)
    try:
        with trio.fail_after(60):
            found = await cluster.request("list the pods", "GET", "pods")
        used = os.listdir(temporary)
    finally:
        await cluster.aclose()

    assert found["items"] == []
    assert (api.faults, used, os.listdir(temporary)) == ([], [], [])
