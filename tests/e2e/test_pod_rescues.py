"""Work that was rescued in pods: real daemons and commands, and a cluster of the tests."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.e2e.conftest import Start
from tests.e2e.place import SORTIE, Place
from tests.e2e.test_delivery_ways import Ways
from tests.kubernetes_api.server import Api, cluster_running
from tests.workspaces.remotes import git


@pytest.fixture
async def api(place: Place) -> AsyncIterator[Api]:
    """Give a cluster whose nodes have the agent's program, and a kubeconfig for it."""
    async with cluster_running() as running:
        (place.root / "kubeconfig").write_text(running.kubeconfig())
        running.kubelet.path = f"{os.path.dirname(SORTIE)}:{os.environ['PATH']}"
        yield running


@pytest.mark.parametrize("kind", ["claim", "emptyDir"])
@pytest.mark.full
async def test_unpushed_work_in_a_pod_is_rescued(
    place: Place, start: Start, api: Api, kind: str
) -> None:
    """It stays in its volume, where it is listed, shown and restored from, also while a daemon
    runs, and no pod is left by who reads."""
    ways = Ways(place)
    kubernetes: dict[str, Any] = {
        "image": "agent:1",
        "root": str(place.root / "pods"),
        "volume": {"kind": kind},
    }
    ways.write(
        worker={"kubernetes": kubernetes, "kubeconfig": str(place.root / "kubeconfig")},
    )
    ways.do("WORD=blocked; echo 1 >out.txt; mkdir -p .sortie; echo blocked >.sortie/status; exit 1")
    async with start() as daemon:
        await daemon.line("run.finished", within=150)
        place.add_issue("T-1", state="Done")
        await daemon.line("workspace.removed", within=150)
        before = api.objects.items("pods", "agents")
        listed = await place.sortie("rescue", "list", "--format", "json")
    shown = await place.sortie("rescue", "show", "T-1")
    done = await place.sortie("rescue", "restore", "T-1", "--into", str(ways.seed))
    after = api.objects.items("pods", "agents")

    (kept,) = json.loads(listed.out)
    assert (kept["issue"], kept["host"]) == ("T-1", "kubernetes/T-1")
    assert "+1" in shown.out
    assert done.code == 0, done
    assert git(ways.seed, "show", f"rescued/T-1-{kept['run_id']}:out.txt") == "1"
    assert len(before) == (0 if kind == "claim" else 1)
    assert [pod["metadata"]["name"] for pod in after] == [pod["metadata"]["name"] for pod in before]
