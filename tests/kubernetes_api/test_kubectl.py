"""The stand-in and a real API server as kubectl finds them: they are the same to it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path

import pytest
import trio

from tests.kubernetes_api.api_server import ApiServer
from tests.kubernetes_api.real_cluster import RealApi, namespace_of
from tests.kubernetes_api.server import Api, cluster_running

LIMIT = 120.0
OLDEST = 31
"""The first minor version whose exec begins with a WebSocket."""

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "one", "labels": {"a": "b"}},
    "spec": {
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "agent",
                "image": "agent:1",
                "env": [],
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
    },
}


@cache
def lacks() -> str | None:
    """Say why there is no kubectl that can be used, or None."""
    if shutil.which("kubectl") is None:
        return "kubectl is not installed"
    told = subprocess.check_output(["kubectl", "version", "--client", "-o", "json"], text=True)
    version = json.loads(told)["clientVersion"]
    if (int(version["major"]), int(version["minor"].rstrip("+"))) < (1, OLDEST):
        return f"kubectl is older than 1.{OLDEST}: {version['gitVersion']}"
    return None


pytestmark = [pytest.mark.full, pytest.mark.skipif(lacks() is not None, reason=str(lacks()))]


@pytest.fixture(params=["stand-in", "real"])
def server(request: pytest.FixtureRequest) -> ApiServer | None:
    """Give a real API server, or None for the stand-in."""
    return request.getfixturevalue("api_server") if request.param == "real" else None


@pytest.fixture
async def api(server: ApiServer | None, tmp_path: Path) -> AsyncIterator[Api | RealApi]:
    """Give a cluster, and a kubeconfig for it."""
    async with cluster_running() if server is None else namespace_of(server) as running:
        running.kubelet.path = os.environ["PATH"]
        (tmp_path / "kubeconfig").write_text(running.kubeconfig())
        yield running


async def kubectl(home: Path, *argv: str, stdin: bytes = b"") -> tuple[int, str, str]:
    """Run kubectl; return its exit status and what it said."""
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": f"{home}/kubeconfig"}
    ran = await trio.run_process(
        ["kubectl", *argv],
        env=env,
        stdin=stdin,
        capture_stdout=True,
        capture_stderr=True,
        check=False,
    )
    return ran.returncode, ran.stdout.decode(), ran.stderr.decode()


async def test_a_pod_from_its_making_to_its_end(api: Api, tmp_path: Path) -> None:
    """It is made, waited for, described, used and deleted."""
    pod = json.dumps(POD).encode()
    with trio.fail_after(LIMIT):
        # Without --validate kubectl asks for a description of all kinds, which is not here.
        made = await kubectl(tmp_path, "create", "--validate=false", "-f", "-", stdin=pod)
        running = "--for=jsonpath={.status.phase}=Running"
        waited = await kubectl(tmp_path, "wait", running, "pod/one")
        listed = await kubectl(tmp_path, "get", "pods", "-l", "a=b", "-o", "name")
        told = await kubectl(tmp_path, "describe", "pod", "one")
        script = "cat; echo bad >&2; exit 3"
        ran = await kubectl(tmp_path, "exec", "-i", "one", "--", "sh", "-c", script, stdin=b"in")
        ended = await kubectl(tmp_path, "delete", "pod", "one")
        left = await kubectl(tmp_path, "get", "pods", "-o", "name")

    assert made == (0, "pod/one created\n", "")
    assert waited == (0, "pod/one condition met\n", "")
    assert listed == (0, "pod/one\n", "")
    assert told[0] == 0
    assert re.search(r"^Node: +node/$", told[1], re.MULTILINE)
    assert re.search(r"^Status: +Running$", told[1], re.MULTILINE)
    assert ran == (3, "in", "bad\ncommand terminated with exit code 3\n")
    assert ended[:2] == (0, 'pod "one" deleted\n')
    assert left == (0, "", "")


async def test_what_is_not_there_and_what_is_refused(api: Api, tmp_path: Path) -> None:
    """The words of errors reach whoever asks."""
    with trio.fail_after(LIMIT):
        absent = await kubectl(tmp_path, "get", "pod", "none")
        pod = json.dumps(POD).encode()
        api.denied = frozenset({("create", "pods")})
        refused = await kubectl(tmp_path, "create", "--validate=false", "-f", "-", stdin=pod)

    assert absent == (1, "", 'Error from server (NotFound): pods "none" not found\n')
    assert refused[0] == 1
    assert 'cannot create resource "pods" in API group ""' in refused[2]
