"""The objects of a cluster with their versions, and those who watch them."""

from __future__ import annotations

import copy
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import trio

Json = dict[str, Any]


class Refused(Exception):
    """What the API server answers with an error."""

    def __init__(self, status: int, reason: str, message: str, retry_after: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.retry_after = retry_after

    @property
    def answer(self) -> Json:
        """The Status object."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": str(self),
            "reason": self.reason,
            "code": self.status,
        }


def now(ahead: float = 0.0) -> str:
    """Return the time as objects tell it, by a clock that is ``ahead`` some seconds."""
    return (datetime.now(UTC) + timedelta(seconds=ahead)).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Objects:
    """All objects, by resource, namespace and name; every change has a version of its own."""

    found: dict[tuple[str, str, str], Json] = field(default_factory=dict)
    history: list[tuple[int, str, str, str, Json]] = field(default_factory=list)
    oldest: int = 0
    version: int = 1000
    ahead: float = 0.0
    """Seconds by which the server's clock is ahead of this machine's."""
    _news: trio.Event = field(default_factory=trio.Event)

    def get(self, resource: str, namespace: str, name: str) -> Json:
        """Return an object; 404 where there is none."""
        try:
            return self.found[resource, namespace, name]
        except KeyError:
            raise Refused(404, "NotFound", f'{resource} "{name}" not found') from None

    def items(self, resource: str, namespace: str) -> list[Json]:
        """Return all of a kind in a namespace."""
        return [o for (r, n, _), o in self.found.items() if (r, n) == (resource, namespace)]

    def create(self, resource: str, namespace: str, given: Mapping[str, Any]) -> Json:
        """Create an object; 409 where it is there."""
        made = copy.deepcopy(dict(given))
        metadata = made.setdefault("metadata", {})
        name = metadata.get("name")
        if not name:
            raise Refused(422, "Invalid", "metadata.name: Required value")
        if (resource, namespace, name) in self.found:
            old = self.found[resource, namespace, name]
            leaving = "object is being deleted: " if "deletionTimestamp" in old["metadata"] else ""
            message = f'{leaving}{resource} "{name}" already exists'
            raise Refused(409, "AlreadyExists", message)
        metadata |= {"namespace": namespace, "uid": str(uuid.uuid4())}
        metadata.setdefault("creationTimestamp", now(self.ahead))
        self._put("ADDED", resource, namespace, made)
        return made

    def change(self, resource: str, namespace: str, changed: Json) -> Json:
        """Put a changed object in the place of the old one; 409 where its version is old."""
        name = changed["metadata"]["name"]
        old = self.get(resource, namespace, name)
        version = changed["metadata"].get("resourceVersion")
        if version and version != old["metadata"]["resourceVersion"]:
            message = f'Operation cannot be fulfilled on {resource} "{name}": it has been modified'
            raise Refused(409, "Conflict", message)
        self._put("MODIFIED", resource, namespace, changed)
        return changed

    def merge(self, resource: str, namespace: str, name: str, patch: Mapping[str, Any]) -> Json:
        """Change an object by a merge patch."""
        changed = _merged(self.get(resource, namespace, name), patch)
        return self.change(resource, namespace, changed)

    def tell_status(self, resource: str, namespace: str, name: str, status: Json) -> None:
        """Put a status in the place of the old one."""
        self.change(resource, namespace, {**self.get(resource, namespace, name), "status": status})

    def bind(self, namespace: str, name: str, node: str = "node") -> None:
        """Give a pod to a node."""
        pod = self.get("pods", namespace, name)
        pod["spec"]["nodeName"] = node
        self.change("pods", namespace, pod)

    def remove(self, resource: str, namespace: str, name: str) -> Json:
        """Remove an object."""
        gone = copy.deepcopy(self.get(resource, namespace, name))
        del self.found[resource, namespace, name]
        self._tell("DELETED", resource, namespace, gone)
        return gone

    def release(self, namespace: str, name: str) -> None:
        """Let a claim go that nobody uses."""
        self.remove("persistentvolumeclaims", namespace, name)

    def compact(self) -> None:
        """Forget all changes so far: a watch from an older version is told 410."""
        self.history.clear()
        self.oldest = self.version

    async def changes(
        self, resource: str, namespace: str, since: int
    ) -> AsyncIterator[tuple[str, Json]]:
        """Yield what changes from a version on."""
        while True:
            if since < self.oldest:
                raise Refused(410, "Expired", f"too old resource version: {since} ({self.oldest})")
            news = self._news
            for version, kind, of, where, changed in list(self.history):
                if version > since and (of, where) == (resource, namespace):
                    yield kind, changed
                since = max(since, version)
            await news.wait()

    def _put(self, kind: str, resource: str, namespace: str, changed: Json) -> None:
        self.found[resource, namespace, changed["metadata"]["name"]] = changed
        self._tell(kind, resource, namespace, changed)

    def _tell(self, kind: str, resource: str, namespace: str, changed: Json) -> None:
        self.version += 1
        changed["metadata"]["resourceVersion"] = str(self.version)
        told = copy.deepcopy(changed)
        self.history.append((self.version, kind, resource, namespace, told))
        self._news.set()
        self._news = trio.Event()


def _merged(old: Any, patch: Any) -> Any:
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    merged = copy.deepcopy(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged
