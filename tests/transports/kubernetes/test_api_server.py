"""What only a real API server does: it is restarted, and holds the daemon to its Role."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from sortie.daemon.doctor.pods import CLAIM_RIGHTS, POD_RIGHTS, SANDBOX_RIGHTS
from sortie.transports import COOKIE, Command
from sortie.transports.kubernetes.transport import KubernetesTransport
from sortie.workspaces import Workspaces
from tests.contract.transport.launching import everything
from tests.kubernetes_api.api_server import ApiServer
from tests.kubernetes_api.pods import pods_of
from tests.kubernetes_api.real_cluster import ACCOUNT, RealApi, namespace_of
from tests.run_ids import own_run_id

pytestmark = pytest.mark.full
LIMIT = 300.0


@pytest.fixture
async def api(api_server: ApiServer) -> AsyncIterator[RealApi]:
    """Give a namespace of a real API server."""
    async with namespace_of(api_server) as namespace:
        yield namespace


def command(path: str, script: str) -> Command:
    env = {"PATH": os.environ["PATH"], COOKIE: own_run_id("run")}
    return Command(argv=("sh", "-c", script), cwd=path, env=env, grace=1.0)


async def test_a_program_outlives_a_restart_of_the_api_server(
    api: RealApi, transport: KubernetesTransport, root: Path
) -> None:
    """It goes on in its pod, and its output and its exit are known afterwards."""
    server = api.server
    with trio.fail_after(LIMIT):
        path = (await Workspaces(str(root), transport).prepare("T-1")).path
        script = "echo begun; until [ -e go ]; do sleep 0.1; done; echo done; exit 3"
        async with transport.process(command(path, script)) as process:
            output = process.output()
            said = (await anext(output))[1]
            await trio.to_thread.run_sync(server.stop_api)
            Path(path, "go").touch()
            await trio.to_thread.run_sync(server.start_api)
            async for _, chunk in output:
                said += chunk
            exit_ = await process.wait()

    assert (said, exit_.status) == (b"begun\ndone\n", 3)


async def test_the_role_of_the_manifests_is_what_the_daemon_needs(
    api: RealApi, tmp_path: Path, root: Path
) -> None:
    """All that it does is allowed, by that Role alone, and each right is used."""
    async with pods_of(api, tmp_path, root, warm=1, start_timeout_ms=60_000) as transport:
        with trio.fail_after(LIMIT):
            workspaces = Workspaces(str(root), transport)
            for name in ("T-1", "T-2"):
                path = (await workspaces.prepare(name)).path
                async with transport.process(command(path, "echo here")) as process:
                    said = await everything(process)
                    await process.wait()
            await transport.sweep([own_run_id("run")], grace=0)
            await workspaces.remove("T-1")
            await workspaces.remove("T-2")
    asked = list(_asked(api))
    used = {(one["resource"], one["verb"]) for one in asked if one["code"] < 400}
    role = {*POD_RIGHTS, *CLAIM_RIGHTS}

    assert said[1] == b"here\n"
    assert [one for one in asked if one["code"] == 403] == []
    assert used - role == set()
    # A WebSocket counts as the one verb for the log, and is held to both.
    assert role - used <= {("pods/exec", "create"), ("pods/exec", "get")}


async def test_the_role_of_sandboxes_is_what_the_daemon_needs(
    api: RealApi, tmp_path: Path, root: Path
) -> None:
    """Each right to Sandboxes is used, and besides those of pods no other is needed."""
    api.have_sandboxes()
    given: dict[str, Any] = {"sandboxes": "always", "start_timeout_ms": 60_000}
    async with pods_of(api, tmp_path, root, **given) as transport:
        with trio.fail_after(LIMIT):
            workspaces = Workspaces(str(root), transport)
            path = (await workspaces.prepare("T-1")).path
            async with transport.process(command(path, "echo here")) as process:
                said = await everything(process)
                await process.wait()
            await workspaces.remove("T-1")
    asked = list(_asked(api))
    used = {(one["resource"], one["verb"]) for one in asked if one["code"] < 400}

    assert said[1] == b"here\n"
    assert [one for one in asked if one["code"] == 403] == []
    assert {one for one in used if one[0] == "sandboxes"} == {*SANDBOX_RIGHTS}
    assert used - {*POD_RIGHTS, *CLAIM_RIGHTS, *SANDBOX_RIGHTS} == set()


async def test_the_daemon_may_do_nothing_else(api: RealApi) -> None:
    """Neither in its namespace nor in another one, beyond what any account may ask of itself."""
    wanted = {*POD_RIGHTS, *CLAIM_RIGHTS}

    assert _rights(api, api.namespace) == wanted
    assert _rights(api, "default") == set()
    with api.server.client(api.token) as client:
        for path in ("namespaces/default/pods", f"namespaces/{api.namespace}/secrets", "nodes"):
            assert client.get(f"/api/v1/{path}").status_code == 403


def _asked(api: RealApi) -> Iterator[dict[str, Any]]:
    """Yield what the daemon has asked for in the namespace, as the audit log tells it."""
    for line in api.server.audit.read_text(encoding="utf-8").splitlines():
        told = json.loads(line)
        about = told.get("objectRef", {})
        if told["user"]["username"] == ACCOUNT and about.get("namespace") == api.namespace:
            resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
            code = told.get("responseStatus", {}).get("code", 0)
            yield {"resource": resource, "verb": told["verb"], "code": code}


def _rights(api: RealApi, namespace: str) -> set[tuple[str, str]]:
    """Return what the daemon may do in a namespace, without its questions about itself."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    with api.server.client(api.token) as client:
        path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
        rules = client.post(path, json=review).json()["status"]["resourceRules"]
    return {
        (resource, verb)
        for rule in rules
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if not resource.startswith("self")
    }
