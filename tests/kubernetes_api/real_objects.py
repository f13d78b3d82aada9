"""The objects of a namespace of a real API server, as an administrator sees them.

It asks and waits, in the thread of whoever calls: the server is another process.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx

from tests.kubernetes_api.api_server import ApiServer
from tests.kubernetes_api.objects import Json, Refused

NODE = "node"

_GROUPS = {
    "leases": "/apis/coordination.k8s.io/v1",
    "sandboxes": "/apis/agents.x-k8s.io/v1beta1",
}
_KINDS = ("pods", "persistentvolumeclaims", "leases")
_SECONDS_FROM_NOW = {"gracePeriodSeconds": 0}
_MERGE = {"Content-Type": "application/merge-patch+json"}


class RealObjects:
    """The objects of one namespace; names of namespaces that are given count for nothing."""

    def __init__(self, server: ApiServer, namespace: str) -> None:
        self.namespace = namespace
        self.client = server.client()
        self.kinds: tuple[str, ...] = _KINDS

    def path(self, resource: str, name: str = "", below: str = "") -> str:
        """Return the path of objects, of one object, or of a part of it."""
        base = f"{_GROUPS.get(resource, '/api/v1')}/namespaces/{self.namespace}/{resource}"
        return "/".join(filter(None, (base, name, below)))

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Json:
        """Make a request. Raises Refused where it is answered with an error."""
        content = None if body is None else json.dumps(body)
        given = {"Content-Type": "application/json", **headers}
        answer: httpx.Response = self.client.request(method, path, content=content, headers=given)
        told: Json = answer.json()
        if answer.status_code >= 400:
            raise Refused(answer.status_code, told.get("reason", ""), told.get("message", ""))
        return told

    @property
    def found(self) -> dict[tuple[str, str, str], Json]:
        """All there is, by resource, namespace and name; the namespace is ``agents``."""
        return {
            (kind, "agents", one["metadata"]["name"]): one
            for kind in self.kinds
            for one in self.items(kind, "agents")
        }

    def get(self, resource: str, namespace: str, name: str) -> Json:
        """Return an object; 404 where there is none."""
        return self.ask("GET", self.path(resource, name))

    def items(self, resource: str, namespace: str) -> list[Json]:
        """Return all of a kind."""
        return list(self.ask("GET", self.path(resource))["items"])

    def create(self, resource: str, namespace: str, given: Mapping[str, Any]) -> Json:
        """Create an object."""
        return self.ask("POST", self.path(resource), given)

    def change(self, resource: str, namespace: str, changed: Json) -> Json:
        """Put a changed object in the place of the old one; of a pod, only its status."""
        name = changed["metadata"]["name"]
        if resource != "pods":
            return self.ask("PUT", self.path(resource, name), changed)
        status = {"status": changed["status"]}
        return self.ask("PATCH", self.path(resource, name, "status"), status, **_MERGE)

    def merge(self, resource: str, namespace: str, name: str, patch: Mapping[str, Any]) -> Json:
        """Change an object by a merge patch."""
        return self.ask("PATCH", self.path(resource, name), patch, **_MERGE)

    def tell_status(self, resource: str, namespace: str, name: str, status: Json) -> None:
        """Put a status in the place of the old one."""
        found = {**self.get(resource, namespace, name), "status": status}
        self.ask("PUT", self.path(resource, name, "status"), found)

    def delete(self, resource: str, namespace: str, name: str) -> Json:
        """Delete an object as everybody may; a pod is there until its node has ended it."""
        return self.ask("DELETE", self.path(resource, name))

    def remove(self, resource: str, namespace: str, name: str) -> Json:
        """Remove an object at once, as a kubelet does with a pod that has ended."""
        return self.ask("DELETE", self.path(resource, name), _SECONDS_FROM_NOW)

    def bind(self, namespace: str, name: str, node: str = NODE) -> None:
        """Give a pod to the node, as a scheduler does."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}}
        self.ask("POST", self.path("pods", name, "binding"), {**binding, "target": target})

    def release(self, namespace: str, name: str) -> None:
        """Let a claim go that nobody uses, as the controller of claims does."""
        body = {"metadata": {"finalizers": None}}
        self.ask("PATCH", self.path("persistentvolumeclaims", name), body, **_MERGE)
