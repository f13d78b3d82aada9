"""The claims of workspaces' volumes, and what they tell of the lease by which they were used.

Rule: a claim is deleted at the version that was read. A newer leader that uses it makes another
version of it, so what an older one asks is refused.
"""

from __future__ import annotations

from sortie.config.kubernetes import KubernetesSettings
from sortie.resources.lease import current_lease
from sortie.transports.kubernetes import manifests
from sortie.transports.kubernetes.manifests import (
    DAEMON,
    INSTANCE,
    ISSUE,
    RESCUED,
    RESCUED_AT,
    TOKEN,
    claim_of,
    issue_label,
    pod_name,
    taken,
)
from sortie.transports.kubernetes.objects import CLAIMS, ApiObjects, Json, label
from sortie.transports.remote.fence import taken_over

NOT_KEPT: Json = {"labels": {RESCUED: None}, "annotations": {RESCUED_AT: None}}
"""The changes by which something is not kept any more for the work in it."""

_TRIES = 3  # to delete a claim that changes meanwhile


class VolumeClaims:
    """The claims of one instance in one namespace."""

    def __init__(self, objects: ApiObjects, pods: KubernetesSettings) -> None:
        self._objects = objects
        self._pods = pods

    async def of(self, key: str) -> Json | None:
        """Return the claim of a workspace."""
        if self._pods.volume.kind != "claim":
            return None
        labels = {INSTANCE: self._pods.instance, ISSUE: issue_label(key)}
        return next(iter(await self._objects.listed(CLAIMS, labels)), None)

    async def give(self, key: str, pod: Json) -> None:
        """Give the claim of a pod that was taken to its workspace."""
        name = claim_of(pod)
        if name is None or name == pod_name(self._pods.instance, key):
            return
        changes = taken(key)
        changes["labels"][DAEMON] = None
        if await self._objects.change_metadata(CLAIMS, name, changes) is None:
            raise self._objects.error(
                f"use pod {pod['metadata']['name']}", f"its claim {name} is not there any more"
            )

    async def use(self, claim: Json) -> None:
        """Note on the claim of a workspace that it is used, and by which lease: what an older
        leader asks about it then names a version that is no more."""
        kept: Json = NOT_KEPT if label(claim, RESCUED) else {}
        token = manifests.token_label(current_lease())
        if kept or (token and token != {TOKEN: label(claim, TOKEN)}):
            changes = {**kept, "labels": {**kept.get("labels", {}), **token}}
            await self._objects.change_metadata(CLAIMS, claim["metadata"]["name"], changes)

    async def delete(self, key: str) -> bool:
        """Delete the claim of a workspace; return whether there was one. Raises LeaseLost where a
        newer leader uses it."""
        for _ in range(_TRIES):
            claim = await self.of(key)
            if claim is None:
                return False
            check_newest(self._objects.host, claim)
            about = claim["metadata"]
            name, uid, version = about["name"], about["uid"], about["resourceVersion"]
            if await self._objects.delete(CLAIMS, name, uid, version):
                return True
        return False


def check_newest(host: str, about: Json | None) -> None:
    """Raise LeaseLost for what a newer leader of the workflow has made."""
    lease = current_lease()
    if lease is not None and about is not None and manifests.token_of(about) > lease.token:
        raise taken_over(host)
