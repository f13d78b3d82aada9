"""The pods of one namespace: made when a workspace needs one, and ended with it.

Rule 1: a workspace has one pod, named after it; whoever makes it first has it.
Rule 2: a pod that carries the token of another life of this daemon is ended, and has gone, before
its workspace is used again. Rule 3: no claim is deleted while a pod may use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import trio
from msgspec import Struct

from sortie.config.kubernetes import KubernetesSettings
from sortie.model import HostError, HostTrouble
from sortie.transports.kubernetes import manifests
from sortie.transports.kubernetes.api_errors import ApiRefusal
from sortie.transports.kubernetes.cluster import Cluster
from sortie.transports.kubernetes.manifests import DAEMON, INSTANCE, pod_name
from sortie.transports.kubernetes.standing import PodState, standing_of

END_BOUND = 60.0
"""Seconds for a pod to go after it was told to."""

_WATCH_AGAIN = 1.0  # seconds from the end of one watch to the next
_QUOTA = "exceeded quota"

Json = dict[str, Any]


class FoundPod(Struct, frozen=True, kw_only=True):
    """A pod that runs."""

    name: str
    uid: str
    run: str = ""


class PodKeeper:
    """Makes and ends the pods of workspaces below ``root``; ``token`` stands for this life."""

    def __init__(self, cluster: Cluster, pods: KubernetesSettings, root: str, token: str) -> None:
        self._cluster = cluster
        self._pods = pods
        self._root = root
        self._token = token

    async def running(self, key: str, *, make: bool) -> FoundPod | None:
        """Return the pod of a workspace when it runs.

        One that is not there is made where ``make``, or where its volume is there. None where
        there is neither. Raises HostError, which says why a pod does not begin.
        """
        name = pod_name(self._pods.instance, key)
        with trio.move_on_after(self._pods.start_timeout) as limit:
            while True:
                pod = await self._read(name)
                if pod is not None and self._is_usable(pod):
                    await self._await_start(name, pod)
                    return _found(await self._read(name) or pod)
                if pod is not None:
                    await self._end(pod)
                if not make and not await self.has_volume(key):
                    return None
                await self._make(key)
        assert limit.cancelled_caught
        raise await self._slow(name)

    async def has_volume(self, key: str) -> bool:
        """Tell whether the volume of a workspace is there without its pod."""
        if self._pods.volume.kind != "claim":
            return False
        name = pod_name(self._pods.instance, key)
        return await self._get("persistentvolumeclaims", name) is not None

    async def end(self, key: str) -> bool:
        """End the pod of a workspace, and wait until it has gone; return whether there was one."""
        pod = await self._read(pod_name(self._pods.instance, key))
        if pod is not None:
            await self._end(pod)
        return pod is not None

    async def remove(self, key: str) -> bool:
        """End the pod of a workspace and delete its volume; return whether there was either."""
        had_pod = await self.end(key)
        name = pod_name(self._pods.instance, key)
        return await self._delete("persistentvolumeclaims", name) or had_pod

    async def end_former(self) -> int:
        """End all pods that an earlier life of this daemon left; return how many."""
        found = await self._list()
        return await self._end_all([pod for pod in found if not self._is_ours(pod)])

    async def end_runs(self, run_ids: frozenset[str]) -> int:
        """End the pods that work for some runs; return how many."""
        found = await self._list()
        return await self._end_all([pod for pod in found if _label(pod, manifests.RUN) in run_ids])

    async def _end_all(self, pods: list[Json]) -> int:
        """End pods at the same time; return how many. Raises HostError for the first that stays,
        when the others have gone."""
        errors: list[HostError] = []

        async def end(pod: Json) -> None:
            try:
                await self._end(pod)
            except HostError as exc:
                errors.append(exc)

        async with trio.open_nursery() as nursery:
            for pod in pods:
                nursery.start_soon(end, pod)
        if errors:
            raise errors[0]
        return len(pods)

    async def note_run(self, name: str, run: str) -> None:
        """Label a pod with the run that it works for."""
        body = {"metadata": {"labels": {manifests.RUN: run}}}
        try:
            await self._cluster.request(f"label pod {name}", "PATCH", f"pods/{name}", body=body)
        except ApiRefusal as exc:
            raise self._cluster.error(f"label pod {name}", str(exc)) from exc

    async def keep_volume(self, key: str) -> None:
        """Mark the volume of a workspace as one that holds rescued work."""
        name = pod_name(self._pods.instance, key)
        kind = "persistentvolumeclaims" if self._pods.volume.kind == "claim" else "pods"
        body = {"metadata": {"labels": {manifests.RESCUED: "true"}}}
        await self._tried(f"label {name}", "PATCH", f"{kind}/{name}", body=body)

    async def why_gone(self, name: str, uid: str) -> str:
        """Return why a pod does not run any more, "" where nothing tells."""
        try:
            pod = await self._read(name)
        except HostError:
            return ""
        if pod is None or pod["metadata"]["uid"] != uid:
            return f"pod {name} was deleted"
        standing = standing_of(pod)
        if standing.state is PodState.READY:
            return ""
        return f"pod {name} has ended: {standing.reason}"

    async def _make(self, key: str) -> None:
        if self._pods.max_pods is not None:
            await self._await_room(self._pods.max_pods)
        if self._pods.volume.kind == "claim":
            await self._create("persistentvolumeclaims", manifests.claim(self._pods, key))
            await self._await_claim(pod_name(self._pods.instance, key))
        body = manifests.pod(self._pods, self._root, key, self._token)
        await self._create("pods", body)

    async def _await_claim(self, name: str) -> None:
        """Wait until a claim is none that is being deleted."""
        while True:
            claim = await self._get("persistentvolumeclaims", name)
            if claim is None or "deletionTimestamp" not in claim["metadata"]:
                return
            await trio.sleep(_WATCH_AGAIN)

    async def _await_room(self, most: int) -> None:
        """Raise HostError where there are as many pods as there may be."""
        alive = [pod for pod in await self._list() if standing_of(pod).state is not PodState.OVER]
        if len(alive) >= most:
            raise HostError(
                HostTrouble.BUSY,
                f"host {self._cluster.host} has {len(alive)} pods, and worker.kubernetes.max_pods"
                " allows no more; wait for issues to be finished, or raise it",
            )

    async def _create(self, kind: str, body: Mapping[str, Any]) -> None:
        """Create something, unless it is there."""
        name = body["metadata"]["name"]
        attempt = f"make {_SINGULAR[kind]} {name}"
        try:
            await self._cluster.request(attempt, "POST", kind, body=body)
        except ApiRefusal as exc:
            if exc.is_conflict and exc.reason == "AlreadyExists":
                return
            if _QUOTA in str(exc):
                raise HostError(
                    HostTrouble.BUSY,
                    f"could not {attempt} on host {self._cluster.host}: {exc}; wait for pods to"
                    " end, or raise the ResourceQuota of the namespace",
                ) from exc
            raise self._cluster.error(attempt, f"{exc} ({exc.status})") from exc

    async def _await_start(self, name: str, pod: Json) -> None:
        """Wait until a pod runs. Raises HostError where it will not.

        One that never will is deleted: the next is made with the settings of then.
        """
        while True:
            standing = standing_of(pod)
            if standing.hopeless:
                await self._delete("pods", name, pod["metadata"]["uid"])
                raise self._cluster.error(
                    f"start pod {name}",
                    f"{standing.reason}; check worker.kubernetes.image, its pull_secrets and env",
                )
            if standing.state in (PodState.OVER, PodState.LEAVING):
                raise self._cluster.error(f"start pod {name}", standing.reason)
            if standing.state is not PodState.WAITING:
                return
            version = pod["metadata"]["resourceVersion"]
            changed = await self._next_change(name, version)
            pod = changed or await self._read(name) or {}
            if not pod:
                raise self._cluster.error(f"start pod {name}", "it was deleted meanwhile")

    async def _slow(self, name: str) -> HostError:
        """Return the error for a pod that has not begun in time."""
        with trio.move_on_after(5):
            pod = await self._read(name)
            standing = standing_of(pod or {})
            reason = standing.reason or "nothing tells why; look at its events"
            advice = "raise worker.kubernetes.start_timeout_ms if it only needs longer"
            if standing.unschedulable:
                advice = "wait for room in the cluster, or ask for less"
            seconds = f"{self._pods.start_timeout:g} s"
            return self._cluster.error(
                f"start pod {name}", f"it has not begun in {seconds}: {reason}; {advice}"
            )
        return self._cluster.error(f"start pod {name}", "the API server does not answer")

    async def _end(self, pod: Json) -> None:
        """Delete a pod, and wait until it has gone. Raises HostError where it does not go."""
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        with trio.move_on_after(END_BOUND):
            await self._delete("pods", name, uid)
            while (now := await self._read(name)) is not None and now["metadata"]["uid"] == uid:
                await self._next_change(name, now["metadata"]["resourceVersion"])
            return
        node = (pod.get("spec") or {}).get("nodeName") or "no node"
        raise HostError(
            HostTrouble.OCCUPIED,
            f"pod {name} on host {self._cluster.host} has not gone in {END_BOUND:g} s; look"
            f" whether its node ({node}) is there, and delete the pod by force where it is not",
        )

    async def _next_change(self, name: str, version: str) -> Json | None:
        """Wait until a pod changes; return how it is then, None where that is not known."""
        params = {"fieldSelector": f"metadata.name={name}", "resourceVersion": version}
        try:
            async with self._cluster.watch(f"watch pod {name}", "pods", params) as changes:
                async for kind, pod in changes:
                    if kind in ("ADDED", "MODIFIED"):
                        return pod
                    if kind == "DELETED":
                        return None
        except ApiRefusal as exc:
            if not exc.is_expired:
                raise self._cluster.error(f"watch pod {name}", str(exc)) from exc
        await trio.sleep(_WATCH_AGAIN)  # the server has ended it
        return None

    async def _read(self, name: str) -> Json | None:
        return await self._get("pods", name)

    async def _get(self, kind: str, name: str) -> Json | None:
        return await self._tried(f"look at {_SINGULAR[kind]} {name}", "GET", f"{kind}/{name}")

    async def _list(self) -> list[Json]:
        params = {"labelSelector": f"{INSTANCE}={self._pods.instance}"}
        found = await self._tried("list the pods", "GET", "pods", params=params)
        return list((found or {}).get("items") or ())

    async def _delete(self, kind: str, name: str, uid: str | None = None) -> bool:
        """Delete something, unless it is gone or another one; return whether it was there."""
        body: Json = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if uid is not None:
            body["preconditions"] = {"uid": uid}
        try:
            await self._cluster.request(
                f"delete {_SINGULAR[kind]} {name}", "DELETE", f"{kind}/{name}", body=body
            )
        except ApiRefusal as exc:
            if exc.is_missing or exc.is_conflict:
                return False
            raise self._cluster.error(f"delete {_SINGULAR[kind]} {name}", str(exc)) from exc
        return True

    async def _tried(self, attempt: str, method: str, path: str, **given: Any) -> Json | None:
        """Make a request; return None where there is no such thing."""
        try:
            return await self._cluster.request(attempt, method, path, **given)
        except ApiRefusal as exc:
            if exc.is_missing:
                return None
            raise self._cluster.error(attempt, f"{exc} ({exc.status})") from exc

    def _is_ours(self, pod: Json) -> bool:
        return _label(pod, DAEMON) == self._token

    def _is_usable(self, pod: Json) -> bool:
        usable = (PodState.WAITING, PodState.READY)
        return self._is_ours(pod) and standing_of(pod).state in usable


_SINGULAR = {"pods": "pod", "persistentvolumeclaims": "claim"}


def _label(pod: Json, name: str) -> str:
    return str((pod["metadata"].get("labels") or {}).get(name, ""))


def _found(pod: Json) -> FoundPod:
    return FoundPod(
        name=pod["metadata"]["name"],
        uid=pod["metadata"]["uid"],
        run=_label(pod, manifests.RUN),
    )
