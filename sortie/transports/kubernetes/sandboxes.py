"""Sandboxes of agent-sandbox, whose controller makes and keeps a pod for each.

Rule: a Sandbox is deleted before its pod, as its controller would make the pod anew.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import trio

from sortie.config.kubernetes import KubernetesSettings
from sortie.model import HostError
from sortie.transports.kubernetes.manifests import (
    INSTANCE,
    ISSUE,
    SANDBOX_API,
    issue_label,
    sandbox_of,
)
from sortie.transports.kubernetes.objects import SANDBOXES, ApiObjects, Json

_LOOK_AGAIN = 5.0  # seconds
_FAILED = "ReconcilerError"
_EXPIRED = "SandboxExpired"
_REFUSED = ("forbidden", "is invalid")
"""Words of an API server that refuses a pod, by which waiting does not help."""


class Sandboxes:
    """The Sandboxes of one instance in one namespace."""

    def __init__(self, objects: ApiObjects, pods: KubernetesSettings) -> None:
        self._objects = objects
        self._pods = pods
        self._used: bool | None = None

    async def used(self) -> bool:
        """Tell whether pods are made so; the cluster is asked once whether it has Sandboxes.

        Raises HostError where it has to have them.
        """
        if self._used is None:
            wanted = self._pods.sandboxes
            served = wanted != "never" and await self._objects.serves(SANDBOXES)
            if wanted == "always" and not served:
                raise self._objects.error(
                    "make a Sandbox",
                    f"the cluster has no {SANDBOX_API}; install agent-sandbox 0.5 or newer, or set"
                    " worker.kubernetes.sandboxes to never",
                )
            self._used = served
        return self._used

    async def listed(self, labels: Mapping[str, str | None]) -> list[Json]:
        """Return the Sandboxes with these labels; none where pods are made directly."""
        labels = {INSTANCE: self._pods.instance, **labels}
        return await self._objects.listed(SANDBOXES, labels) if await self.used() else []

    async def of(self, key: str) -> Json | None:
        """Return the Sandbox of a workspace, None where there is none."""
        return next(iter(await self.listed({ISSUE: issue_label(key)})), None)

    async def without_pod(self, pods: Collection[Json]) -> int:
        """Return how many Sandboxes will have a pod, and have none of these."""
        names = {pod["metadata"]["name"] for pod in pods}
        return sum(
            will_make_pod(one) and one["metadata"]["name"] not in names
            for one in await self.listed({})
        )

    async def delete(self, sandbox: Json) -> None:
        """Delete a Sandbox; its pod may still be there."""
        metadata = sandbox["metadata"]
        await self._objects.delete(SANDBOXES, metadata["name"], metadata["uid"])

    def will_go(self, pod: Json, sandbox: Json | None) -> bool:
        """Tell whether a pod is of another Sandbox than the one there is, if any."""
        owner = sandbox_of(pod)
        if owner is None or not self._used:
            return False
        return sandbox is None or _leaves(sandbox) or sandbox["metadata"]["uid"] != owner["uid"]

    async def wait(self, sandbox: Json) -> None:
        """Wait until a Sandbox changes, whose pod is not there yet.

        Raises HostError where the cluster refuses the pod; the Sandbox is deleted then, so that the
        next is made with the settings of then.
        """
        name, version = sandbox["metadata"]["name"], sandbox["metadata"]["resourceVersion"]
        reason, message = _standing(sandbox)
        if reason == _FAILED and any(word in message for word in _REFUSED):
            await self.delete(sandbox)
            raise self._objects.refusal(f"start pod {name}", message)
        with trio.move_on_after(_LOOK_AGAIN):
            await self._objects.next_change(SANDBOXES, name, version)

    def why_slow(self, sandbox: Json) -> HostError:
        """Return the error for a Sandbox whose pod was not made in time."""
        name = sandbox["metadata"]["name"]
        _, message = _standing(sandbox)
        told = message or "its controller has told nothing"
        return self._objects.error(
            f"start pod {name}",
            f"its Sandbox has no pod after {self._pods.start_timeout:g} s: {told}; look whether the"
            " controller of agent-sandbox runs",
        )


def will_make_pod(sandbox: Json) -> bool:
    """Tell whether the controller makes a pod for a Sandbox that has none."""
    suspended = (sandbox.get("spec") or {}).get("operatingMode") == "Suspended"
    return not suspended and not _leaves(sandbox) and _standing(sandbox)[0] != _EXPIRED


def _leaves(sandbox: Json) -> bool:
    return "deletionTimestamp" in sandbox["metadata"]


def _standing(sandbox: Json) -> tuple[str, str]:
    """Return the reason and the message for which a Sandbox is ready or not."""
    for condition in (sandbox.get("status") or {}).get("conditions") or ():
        if condition["type"] == "Ready":
            return str(condition.get("reason", "")), str(condition.get("message", ""))
    return "", ""
