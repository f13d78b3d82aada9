"""The pods of one namespace: made when a workspace needs one, and ended with it.

Rule 1: a workspace has one pod and one claim, which carry its label; the daemon
that makes them first, by the name that follows from the workspace, or takes a pod that waits, has
them.
Rule 2: a pod that carries the token of another life of this daemon is ended, and has gone, before
its workspace is used again. Rule 3: no claim is deleted while a pod may use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import trio
from msgspec import Struct

from sortie.config.kubernetes import KubernetesSettings
from sortie.model import HostError, HostTrouble, ProcessesLeft
from sortie.resources.lease import current_lease
from sortie.transports.kubernetes import manifests
from sortie.transports.kubernetes.manifests import (
    DAEMON,
    INSTANCE,
    ISSUE,
    RESCUED,
    RESCUED_AT,
    RUN,
    WARM,
    issue_label,
    pod_name,
)
from sortie.transports.kubernetes.objects import (
    CLAIMS,
    PODS,
    SANDBOXES,
    WATCH_AGAIN,
    ApiObjects,
    Json,
    QuotaError,
    label,
    node_of,
)
from sortie.transports.kubernetes.pod_start import PodStart
from sortie.transports.kubernetes.sandboxes import Sandboxes, will_make_pod
from sortie.transports.kubernetes.standing import PodState, standing_of
from sortie.transports.kubernetes.volume_claims import NOT_KEPT, VolumeClaims, check_newest
from sortie.transports.kubernetes.warm_pods import WarmPods
from sortie.transports.remote.launch import HostGone


class FoundPod(Struct, frozen=True, kw_only=True):
    """A pod that runs; ``origin`` is warm or cold where a workspace has it only now."""

    name: str
    uid: str
    node: str = ""
    run: str = ""
    origin: str | None = None


class PodKeeper:
    """Makes and ends the pods of workspaces below ``root``; ``token`` stands for this life."""

    def __init__(
        self,
        objects: ApiObjects,
        pods: KubernetesSettings,
        root: str,
        token: str,
        warm: WarmPods,
    ) -> None:
        self._objects = objects
        self._pods = pods
        self._root = root
        self._token = token
        self._warm = warm
        self._sandboxes = Sandboxes(objects, pods)
        self._claims = VolumeClaims(objects, pods)
        self._start = PodStart(objects, pods.start_timeout, warm.give_up)

    async def running(self, key: str, *, make: bool) -> FoundPod | None:
        """Return the pod of a workspace when it runs.

        One that is not there is taken or made where ``make``, or where its volume is there. None
        where there is neither. Raises HostError, which says why a pod does not begin, and
        ProcessesLeft where the one before does not go.
        """
        name = pod_name(self._pods.instance, key)
        origin: str | None = None
        sandbox: Json | None = None
        pod: Json | None = None
        with trio.move_on_after(self._start.timeout) as limit, self._warm.issue_waiting():
            while True:
                sandbox = await self._sandboxes.of(key)
                pod = await self._pod_of(key)
                for one in (sandbox, pod):
                    check_newest(self._objects.host, one)
                usable = pod is not None and self._is_usable(pod)
                if pod is not None and usable and not self._sandboxes.will_go(pod, sandbox):
                    name = pod["metadata"]["name"]
                    await self._claims.give(key, pod)
                    if make and label(pod, RESCUED):
                        await self._objects.change_pod(name, NOT_KEPT)
                    await self._start.wait(name, pod)
                    return self._found(await self._objects.get(PODS, name) or pod, origin)
                if sandbox is not None:
                    if pod is None and self._is_ours(sandbox) and will_make_pod(sandbox):
                        await self._sandboxes.wait(sandbox)
                        continue
                    await self._sandboxes.delete(sandbox)
                if pod is not None:
                    await self._end_before(pod)
                claim = await self._claims.of(key)
                if claim is not None and "deletionTimestamp" in claim["metadata"]:
                    if not make:
                        return None
                    await trio.sleep(WATCH_AGAIN)
                elif not make and (claim is None or label(claim, RESCUED)):
                    return None
                elif claim is None and await self._warm.take(key, self._pods, self._root):
                    origin = "warm"
                else:
                    if origin is not None:  # it went at once, or somebody has changed its labels
                        await trio.sleep(WATCH_AGAIN)
                    await self._make(key, claim)
                    origin = "cold"
        assert limit.cancelled_caught
        if sandbox is not None and pod is None:
            raise self._sandboxes.why_slow(sandbox)
        raise await self._start.why_slow(name)

    async def _end_before(self, pod: Json) -> None:
        """End a pod whose workspace is to be used. Raises ProcessesLeft where it does not go, which
        concerns nobody else."""
        try:
            await self._objects.end_pod(pod)
        except HostError as exc:
            if exc.trouble is not HostTrouble.OCCUPIED:
                raise
            raise ProcessesLeft(str(exc), pids=frozenset()) from None

    async def end(self, key: str) -> bool:
        """End the pod of a workspace, and wait until it has gone; return whether there was one."""
        sandbox = await self._sandboxes.of(key)
        if sandbox is not None:
            await self._sandboxes.delete(sandbox)
        pod = await self._pod_of(key)
        if pod is not None:
            await self._objects.end_pod(pod)
        return pod is not None or sandbox is not None

    async def remove(self, key: str) -> bool:
        """End the pod of a workspace and delete its volume; return whether there was either."""
        had_pod = await self.end(key)
        return await self._claims.delete(key) or had_pod

    async def end_former(self) -> int:
        """End all pods that an earlier life of this daemon left; return how many have gone.

        Volumes that no workspace had are deleted then. A pod that stays, as its node is away, is in
        the way of its own workspace alone (Rule 2).
        """
        for sandbox in await self._sandboxes.listed({}):
            check_newest(self._objects.host, sandbox)
            if not self._is_ours(sandbox):
                await self._sandboxes.delete(sandbox)
        found = await self._list()
        for pod in found:
            check_newest(self._objects.host, pod)
        count = await self._objects.end_pods([pod for pod in found if not self._is_ours(pod)])
        if self._pods.volume.kind == "claim":
            labels = {INSTANCE: self._pods.instance, WARM: None}
            for claim in await self._objects.listed(CLAIMS, labels):
                if not self._is_ours(claim):
                    await self._objects.delete(CLAIMS, claim["metadata"]["name"])
        return count

    async def end_runs(self, run_ids: frozenset[str]) -> int:
        """End the pods that work for some runs; return how many have gone.

        One that stays is in the way of its own workspace alone.
        """
        found = await self._list()
        return await self._objects.end_pods([pod for pod in found if label(pod, RUN) in run_ids])

    async def note_run(self, name: str, uid: str, run: str) -> None:
        """Label a pod with the run that it works for. Raises HostGone where it is there no more,
        or another has its name."""
        pod = await self._objects.change_pod(name, {"labels": {RUN: run}})
        if pod is None or pod["metadata"]["uid"] != uid:
            raise HostGone(f"pod {name} was deleted (on host {self._objects.host})")

    async def keep_volume(self, key: str) -> None:
        """Mark the volume of a workspace as one that holds rescued work; its pod ends, unless the
        volume would end with it."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        changes = {"labels": {RESCUED: "true"}, "annotations": {RESCUED_AT: now}}
        if self._pods.volume.kind != "claim":
            pod = await self._pod_of(key)
            if pod is not None:
                await self._objects.change_pod(pod["metadata"]["name"], changes)
            return
        claim = await self._claims.of(key)
        if claim is not None:
            await self._objects.change_metadata(CLAIMS, claim["metadata"]["name"], changes)
        await self.end(key)

    async def _make(self, key: str, claim: Json | None) -> None:
        """Make the pod of a workspace, and its claim where it has none."""
        if self._pods.max_pods is not None:
            await self._await_room(self._pods.max_pods)
        if claim is None and self._pods.volume.kind == "claim":
            claim = manifests.claim(self._pods, key, manifests.token_label(current_lease()))
            await self._create(CLAIMS, claim)
        elif claim is not None:
            await self._claims.use(claim)
        claim_name = "" if claim is None else claim["metadata"]["name"]
        owner = manifests.owner_labels(self._token, current_lease())
        pod = manifests.pod(self._pods, self._root, key, owner, claim_name)
        if await self._sandboxes.used():
            await self._create(SANDBOXES, manifests.sandbox(pod))
        else:
            await self._create(PODS, pod)

    async def _await_room(self, most: int) -> None:
        """Raise HostError where there are as many pods of issues as there may be."""
        pods = await self._list()
        alive = sum(standing_of(pod).state is not PodState.OVER for pod in pods)
        alive += await self._sandboxes.without_pod(pods)
        if alive >= most and not await self._warm.give_up():
            raise HostError(
                HostTrouble.BUSY,
                f"host {self._objects.host} has {alive} pods, and worker.kubernetes.max_pods"
                " allows no more; wait for issues to be finished, or raise it",
            )

    async def _create(self, kind: str, body: Mapping[str, Any]) -> None:
        """Create something, unless it is there; warm pods are given up where a quota needs it."""
        while True:
            try:
                await self._objects.create(kind, body)
                return
            except QuotaError:
                if not await self._warm.give_up():
                    raise

    async def _pod_of(self, key: str) -> Json | None:
        """Return the pod of a workspace: one that can be used, where there is one."""
        labels = {INSTANCE: self._pods.instance, ISSUE: issue_label(key)}
        found = await self._objects.listed(PODS, labels)
        return next(iter(sorted(found, key=lambda pod: not self._is_usable(pod))), None)

    async def _list(self) -> list[Json]:
        return await self._objects.listed(PODS, {INSTANCE: self._pods.instance})

    def _is_ours(self, about: Json) -> bool:
        return label(about, DAEMON) == self._token

    def _is_usable(self, pod: Json) -> bool:
        usable = (PodState.WAITING, PodState.READY)
        return self._is_ours(pod) and standing_of(pod).state in usable

    def _found(self, pod: Json, origin: str | None) -> FoundPod:
        metadata = pod["metadata"]
        return FoundPod(
            name=metadata["name"],
            uid=metadata["uid"],
            node=node_of(pod),
            run=label(pod, RUN),
            origin=origin,
        )
