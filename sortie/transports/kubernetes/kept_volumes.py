"""Volumes that were kept because of rescued work, and pods in which they are read.

Rule: a pod that reads belongs to no instance, so no daemon counts or ends it; it ends with the
program that made it, and in an hour at the latest.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

import trio

from sortie.config.kubernetes import KubernetesSettings
from sortie.transports.kubernetes import manifests
from sortie.transports.kubernetes.background import Background
from sortie.transports.kubernetes.cluster import Cluster, ClusterPlace
from sortie.transports.kubernetes.manifests import INSTANCE, RESCUED, RESCUED_AT, WORKSPACE
from sortie.transports.kubernetes.objects import CLAIMS, PODS, ApiObjects, Json
from sortie.transports.kubernetes.pod_link import PodLink
from sortie.transports.kubernetes.pod_start import PodStart
from sortie.transports.kubernetes.transport import REATTACH
from sortie.transports.remote.launch import Bounds
from sortie.transports.remote.transport import ShellTransport

_CLOSE_BOUND = 5.0  # seconds


class KeptVolumes:
    """The kept volumes of one instance in one namespace, whose pods mount them at ``root``."""

    def __init__(
        self, cluster: Cluster, pods: KubernetesSettings, root: str, background: Background
    ) -> None:
        self._cluster = cluster
        self._objects = ApiObjects(cluster)
        self._pods = pods
        self._root = root
        self._background = background
        # Without claims the volume is that of a pod, which was kept for it.
        self._kind = CLAIMS if pods.volume.kind == "claim" else PODS

    async def workspaces(self) -> tuple[str, ...]:
        """Return the workspaces whose volumes were kept."""
        return tuple(sorted(map(_workspace, await self._kept())))

    async def forget(self, before: float) -> int:
        """Delete the volumes that were kept before a time in Unix seconds; return how many."""
        count = 0
        for kept in await self._kept():
            about = kept["metadata"]
            if _kept_at(kept) < before:
                version = about["resourceVersion"]
                gone = await self._objects.delete(self._kind, about["name"], about["uid"], version)
                if gone and self._kind == PODS:
                    await self._objects.delete_pod(kept)
                count += gone
        return count

    @asynccontextmanager
    async def opened(self, workspace: str) -> AsyncIterator[tuple[ShellTransport, str]]:
        """Have a volume in a pod; give the way in, and the directory with all of its issue.

        Raises HostError.
        """
        kept = next((one for one in await self._kept() if _workspace(one) == workspace), None)
        if kept is None:
            raise self._objects.error(f"read what was kept of {workspace}", "it is gone meanwhile")
        name = kept["metadata"]["name"]
        if self._kind == PODS:
            yield self._inside(name), f"{self._root}/{workspace}"
            return
        reader = f"{self._pods.instance[:40]}-reads-{secrets.token_hex(5)}"
        body = manifests.reading_pod(self._pods, self._root, reader, workspace, name)
        try:
            await self._objects.create(PODS, body)
            start = PodStart(self._objects, self._pods.start_timeout)
            with trio.move_on_after(start.timeout) as limit:
                await start.wait(reader, await self._objects.get(PODS, reader) or body)
            if limit.cancelled_caught:
                raise await start.why_slow(reader)
            yield self._inside(reader), f"{self._root}/{workspace}"
        finally:
            with trio.move_on_after(_CLOSE_BOUND) as bound:
                bound.shield = True
                await self._objects.delete(PODS, reader)

    def _inside(self, pod: str) -> ShellTransport:
        async def why_gone() -> str:
            return ""

        link = PodLink(self._cluster, pod, self._background, why_gone)
        return ShellTransport(self._cluster.host, link, bounds=Bounds(reattach=REATTACH))

    async def _kept(self) -> list[Json]:
        labels = {INSTANCE: self._pods.instance, RESCUED: "true"}
        return await self._objects.listed(self._kind, labels)


@asynccontextmanager
async def open_kept_volumes(
    place: ClusterPlace, pods: KubernetesSettings, root: str
) -> AsyncIterator[KeptVolumes]:
    """Have the kept volumes of a namespace; all connections are closed in the end."""
    cluster, background = Cluster(place), Background()
    try:
        yield KeptVolumes(cluster, pods, root, background)
    finally:
        with trio.move_on_after(_CLOSE_BOUND) as bound:
            bound.shield = True
            await background.aclose()
            await cluster.aclose()


def _workspace(kept: Json) -> str:
    return str((kept["metadata"].get("annotations") or {}).get(WORKSPACE, ""))


def _kept_at(kept: Json) -> float:
    """Return when a volume was kept, in Unix seconds; never, where that is not known."""
    noted = (kept["metadata"].get("annotations") or {}).get(RESCUED_AT, "")
    try:
        return datetime.fromisoformat(noted).timestamp()
    except ValueError:
        return math.inf
