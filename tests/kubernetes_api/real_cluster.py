"""A namespace of a real API server with what ``deploy/kubernetes/agents`` puts there.

Its pods are processes of this machine: the kubelet of the tests binds them, tells their status and
ends them, and the node's program (``node/``) starts what is run in them. The daemon has the account
and the Role of the manifests, and no other right.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx
import psutil
import trio
import yaml

from tests.docs.pages import ROOT
from tests.kubernetes_api.api_server import ADMIN, ApiServer
from tests.kubernetes_api.kubelet import Kubelet
from tests.kubernetes_api.objects import Json, Refused
from tests.kubernetes_api.real_objects import NODE, RealObjects
from tests.kubernetes_api.sandbox_controller import VERSION, SandboxController, definition

MANIFESTS = ROOT / "deploy/kubernetes/agents"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_IN_MANIFESTS = "sortie-agents"
ACCOUNT = "system:serviceaccount:sortie:sortie"
"""The daemon's account, as the Role of the manifests is bound to it."""

_DAEMON = "/api/v1/namespaces/sortie/serviceaccounts"
_PATIENCE = 60.0
_PLURALS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ResourceQuota": "/api/v1/namespaces/{}/resourcequotas",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
}


class NodeKubelet(Kubelet):
    """Runs the pods of a namespace of a real API server, on the node of that."""

    objects: RealObjects  # type: ignore[assignment]
    server: ApiServer
    on_gone: Callable[[], object]

    async def follow(self, resource: str) -> None:
        """See to all that changes."""
        seen: set[tuple[str, bool]] = set()
        headers = {"Authorization": f"Bearer {ADMIN}"}
        verify = self.server.trust()
        async with httpx.AsyncClient(verify=verify, headers=headers, timeout=None) as client:
            while True:
                url = f"{self.server.url}{self.objects.path(resource)}?watch=1"
                with suppress(httpx.HTTPError, OSError):
                    async with client.stream("GET", url) as changes:
                        async for line in changes.aiter_lines():
                            self._see(resource, json.loads(line), seen)
                await trio.sleep(0.2)

    def _see(self, resource: str, change: Json, seen: set[tuple[str, bool]]) -> None:
        one = change["object"]
        if change["type"] not in ("ADDED", "MODIFIED"):
            self.on_gone()
            return
        metadata = one["metadata"]
        leaves = "deletionTimestamp" in metadata
        if (metadata["uid"], leaves) in seen:
            return
        seen.add((metadata["uid"], leaves))
        name, uid = metadata["name"], metadata["uid"]
        if resource == "persistentvolumeclaims":
            if leaves:
                self.nursery.start_soon(self.let_go, one)
        elif leaves:
            self.nursery.start_soon(self.end, self.objects.namespace, name, uid)
        else:
            self.nursery.start_soon(self.run, self.objects.namespace, name)

    async def end(self, namespace: str, name: str, uid: str) -> None:
        """End a pod that was deleted, unless it has gone meanwhile."""
        with suppress(Refused):
            await super().end(namespace, name, uid)

    def _set(self, pod: Json, *, phase: str, container: Any = None, conditions: Any = ()) -> None:
        if phase == "Running":
            told = {
                "uid": pod["metadata"]["uid"],
                "container": pod["spec"]["containers"][0]["name"],
                "env": [f"{name}={value}" for name, value in self._environ(pod).items()],
            }
            fresh = self.server.pods / pod["metadata"]["uid"]
            fresh.write_text(json.dumps(told), encoding="utf-8")
            fresh.rename(self._told_of(pod["metadata"]["name"]))
        super()._set(pod, phase=phase, container=container, conditions=conditions)

    def _told_of(self, name: str) -> Any:
        return self.server.pods / f"{self.objects.namespace}_{name}.json"

    async def _kill(self, uid: str) -> None:
        for told in self.server.pods.glob(f"{self.objects.namespace}_*.json"):
            if json.loads(told.read_text())["uid"] == uid:
                told.unlink()
        notes = self.server.pods / f"{uid}.pids"
        for pid in notes.read_text().split() if notes.exists() else ():
            self.note(uid, int(pid))
        await super()._kill(uid)

    async def close(self) -> None:
        """End all pods."""
        for told in list(self.server.pods.glob(f"{self.objects.namespace}_*.json")):
            await self._kill(json.loads(told.read_text())["uid"])


@dataclass
class RealApi:
    """One namespace, with the switches that the stand-in has as far as a real server has them."""

    server: ApiServer
    nursery: trio.Nursery
    namespace: str = field(default_factory=lambda: f"agents-{uuid.uuid4().hex[:8]}")
    version: str = ""

    def __post_init__(self) -> None:
        self.objects = RealObjects(self.server, self.namespace)
        self.kubelet = NodeKubelet(self.objects, self.nursery)  # type: ignore[arg-type]
        self.kubelet.server = self.server
        self.kubelet.on_gone = self._count_pods
        self.version = self.objects.ask("GET", "/version")["gitVersion"]
        self._prepare()
        self.token = self._token()
        self._quota: int | None = None
        self.controller: SandboxController | None = None
        self._denied: frozenset[tuple[str, str]] = frozenset()

    def have_sandboxes(self) -> SandboxController:
        """Have the API of agent-sandbox and its controller, and the daemon's right to it."""
        self._made(_DEFINITIONS, definition())
        self._await_sandboxes(200)
        self.objects.kinds = (*self.objects.kinds, "sandboxes")
        for manifest in self._manifests("sandboxes/role.yaml"):
            self._made(_PLURALS[manifest["kind"]].format(self.namespace), manifest)
        self._await_right("create", "sandboxes", allowed=True)
        self.controller = SandboxController(
            self.objects,
            partial(self.objects.create, "pods"),
            partial(self.objects.delete, "pods"),
            pause=0.2,
        )
        self.nursery.start_soon(self.controller.run)
        return self.controller

    def drop_sandboxes(self) -> None:
        """Have a cluster without agent-sandbox; no other test uses it meanwhile."""
        with suppress(Refused):
            self.objects.ask("DELETE", f"{_DEFINITIONS}/{definition()['metadata']['name']}")
        self._await_sandboxes(404)

    def _await_sandboxes(self, status: int) -> None:
        until = time.monotonic() + _PATIENCE
        for path in (self.objects.path("sandboxes"), f"/apis/{VERSION}"):
            while self.objects.client.get(path).status_code != status:
                assert time.monotonic() < until, f"{path} is not answered with {status}"
                time.sleep(0.05)

    @property
    def url(self) -> str:
        """Where it answers."""
        return self.server.url

    def kubeconfig(self) -> str:
        """Return a kubeconfig of the daemon's account."""
        cluster = {"server": self.url, "certificate-authority": str(self.server.authority)}
        context = {"cluster": "test", "user": "test", "namespace": self.namespace}
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "test",
                "clusters": [{"name": "test", "cluster": cluster}],
                "users": [{"name": "test", "user": {"token": self.token}}],
                "contexts": [{"name": "test", "context": context}],
            }
        )

    def cut_links(self) -> int:
        """Have the node cut all streams of programs. Return how many connections it had."""
        count = len(psutil.Process(self.server.node).net_connections("tcp")) - 1
        self.server.cut_streams()
        return count

    @property
    def quota(self) -> int | None:
        """How many pods the namespace may have."""
        return self._quota

    @quota.setter
    def quota(self, most: int | None) -> None:
        self._quota = most
        self._count_pods(always=True)
        time.sleep(0.5)  # the admission sees it a moment later

    def _count_pods(self, *, always: bool = False) -> None:
        """Do what the controller of quotas does: the server goes by what it has counted."""
        if self._quota is None and not always:
            return
        path = self.objects.path("resourcequotas", "agents")
        found = self.objects.ask("GET", path)
        used = str(len(self.objects.items("pods", "")))
        hard = {} if self._quota is None else {"pods": str(self._quota)}
        found["status"] = {"hard": hard, "used": dict.fromkeys(hard, used)}
        with suppress(Refused):  # a pod is made just now
            self.objects.ask("PUT", f"{path}/status", found)

    @property
    def denied(self) -> frozenset[tuple[str, str]]:
        """Verbs and resources that the daemon may not use; Secrets it may not read anyway."""
        return self._denied

    @denied.setter
    def denied(self, denied: frozenset[tuple[str, str]]) -> None:
        self._denied = denied
        files = ["pods.yaml"] if self.controller is None else ["pods.yaml", "sandboxes/role.yaml"]
        path = _PLURALS["Role"].format(self.namespace)
        for role in (one for file in files for one in self._manifests(file)):
            if role["kind"] == "Role":
                for rule in role["rules"]:
                    (of,) = rule["resources"]
                    rule["verbs"] = [verb for verb in rule["verbs"] if (verb, of) not in denied]
                self.objects.ask("PUT", f"{path}/{role['metadata']['name']}", role)
        for verb, resource in denied:
            self._await_right(verb, resource, allowed=False)

    def _await_right(self, verb: str, resource: str, *, allowed: bool) -> None:
        kind, _, below = resource.partition("/")
        asked = {"namespace": self.namespace, "verb": verb, "resource": kind, "subresource": below}
        asked["group"] = VERSION.partition("/")[0] if kind == "sandboxes" else ""
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": ACCOUNT,
                "groups": ["system:serviceaccounts", "system:authenticated"],
                "resourceAttributes": asked,
            },
        }
        until = time.monotonic() + _PATIENCE
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        while self.objects.ask("POST", path, review)["status"].get("allowed", False) != allowed:
            assert time.monotonic() < until, f"{verb} {resource} does not become {allowed}"
            time.sleep(0.05)

    def _prepare(self) -> None:
        """Make the node, the daemon's account, and what the manifests say."""
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
        self._made("/api/v1/nodes", node)
        node["status"] = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.server.node_port}},
        }
        found = self.objects.ask("GET", f"/api/v1/nodes/{NODE}")
        self.objects.ask("PUT", f"/api/v1/nodes/{NODE}/status", {**found, "status": node["status"]})
        self._made("/api/v1/namespaces", _named("Namespace", "sortie"))
        self._made(_DAEMON, _named("ServiceAccount", "sortie"))
        for manifest in self._manifests():
            self._made(_PLURALS[manifest["kind"]].format(self.namespace), manifest)
        accounts = _PLURALS["ServiceAccount"].format(self.namespace)
        self._made(accounts, _named("ServiceAccount", "default"))
        self._await_right("create", "pods", allowed=True)

    def _manifests(self, file: str = "pods.yaml") -> list[Json]:
        text = (MANIFESTS / file).read_text(encoding="utf-8")
        text = text.replace(_IN_MANIFESTS, self.namespace)
        return list(yaml.safe_load_all(text))

    def _made(self, path: str, one: Json) -> None:
        try:
            self.objects.ask("POST", path, one)
        except Refused as exc:
            if exc.reason != "AlreadyExists":
                raise

    def _token(self) -> str:
        asked = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 86400, "audiences": None},
        }
        answer = self.objects.ask("POST", f"{_DAEMON}/sortie/token", asked)
        return str(answer["status"]["token"])


def _named(kind: str, name: str) -> Json:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}


@asynccontextmanager
async def namespace_of(server: ApiServer) -> AsyncIterator[RealApi]:
    """Have a namespace while the block lasts; no pod of it stays."""
    async with trio.open_nursery() as nursery:
        api = RealApi(server, nursery)
        for resource in ("pods", "persistentvolumeclaims"):
            nursery.start_soon(api.kubelet.follow, resource)
        try:
            yield api
        finally:
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                await api.kubelet.close()
                for kind, _, name in api.objects.found:
                    api.objects.remove(kind, "", name)
            api.objects.client.close()
