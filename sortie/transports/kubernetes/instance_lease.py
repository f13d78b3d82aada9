"""Holds an instance in a namespace, so that no other daemon ends its pods.

Rule 1: a lease is another's until it has not been renewed for LEASE seconds by our own clock, from
when we first saw it so: clocks of others, and times that stand in it, count for nothing.
Rule 2: every write names the version that was read, so of two who take it one is refused.
Rule 3: what was not renewed in time is not held any more, and is taken anew before its next use.
Rule 4: a newer leader of a workflow takes it from an older one at once, by the tokens that stand in
it: what the older one has there is ended by the pods themselves.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import trio

from sortie.model import LEASE, HostError, HostTrouble
from sortie.resources.lease import Lease as WorkflowLease
from sortie.resources.lease import LeaseLost, current_lease, require_lease
from sortie.transports.kubernetes.api_errors import ApiRefusal
from sortie.transports.kubernetes.background import Background
from sortie.transports.kubernetes.cluster import Cluster
from sortie.transports.kubernetes.manifests import LEADS, TOKEN
from sortie.transports.remote.fence import taken_over

RENEW_EVERY = 10.0
"""Seconds between two renewals."""

HELD_FOR = 20.0
"""Seconds after a renewal in which an instance counts as ours."""

_SLACK = 0.5
"""Seconds beyond the end of another's lease before it is tried to take."""

_VERSION = "coordination.k8s.io/v1"

Json = dict[str, Any]


class InstanceLease:
    """The lease of one instance in one namespace; ``holder`` is what others are told of us."""

    def __init__(
        self, cluster: Cluster, instance: str, holder: str, background: Background
    ) -> None:
        self._cluster = cluster
        self._instance = instance
        self._name = f"sortie-{instance}"[:63]
        self._holder = holder
        self._background = background
        self._renewed_at = -math.inf
        self._seen: tuple[str, float] = ("", math.inf)  # a version of another's, since when
        self._renews = False
        self._held_by: WorkflowLease | None = None
        self._taking = trio.Lock()

    async def hold(self) -> None:
        """Have the instance for ourselves from now on.

        Raises HostError: OCCUPIED where another daemon has it; LeaseLost where the lease of the
        workflow is over, or a newer leader has the instance.
        """
        require_lease()
        if self._is_held:
            return
        async with self._taking:
            if not self._is_held:
                await self._take()
            if not self._renews:
                self._renews = True
                self._background.start(self._renew_on)

    async def release(self) -> None:
        """Give it back, so that the next daemon need not wait."""
        if not self._is_held:
            return
        self._renewed_at = -math.inf
        try:
            lease = await self._read()
            if lease is not None and _holder(lease) == self._holder:
                await self._write(lease, "")
        except (ApiRefusal, HostError, LeaseLost):
            pass  # it ends by itself

    @property
    def _is_held(self) -> bool:
        held = trio.current_time() - self._renewed_at < HELD_FOR
        return held and self._held_by is current_lease()

    async def _renew_on(self) -> None:
        try:
            while True:
                await trio.sleep(RENEW_EVERY)
                try:
                    async with self._taking:
                        await self._take()
                except HostError:
                    pass  # the next use says so
        finally:
            self._renews = False

    async def _take(self) -> None:
        began = trio.current_time()
        try:
            lease = await self._read()
            if lease is None:
                await self._write({"metadata": {"name": self._name}}, self._holder)
            else:
                self._check(lease)
                await self._write(lease, self._holder)
        except ApiRefusal as exc:
            if exc.is_conflict:
                raise self._occupied("it was taken by another daemon a moment ago") from exc
            raise self._cluster.error(f"hold the instance {self._instance}", str(exc)) from exc
        self._renewed_at, self._held_by = began, current_lease()

    def _check(self, lease: Json) -> None:
        """Raise HostError where the lease is another's who may be there; not for an older leader of
        the same workflow. Raises LeaseLost for a newer one."""
        ours, former = current_lease(), lease["metadata"].get("annotations") or {}
        if ours is not None and former.get(LEADS) == ours.scope:
            if int(former[TOKEN]) > ours.token:
                raise taken_over(self._cluster.host)
            return
        holder, version = _holder(lease), lease["metadata"]["resourceVersion"]
        if holder in ("", self._holder):
            return
        now = trio.current_time()
        if self._seen[0] != version:
            self._seen = (version, now)
        left = self._seen[1] + LEASE - now
        if left > 0:
            raise self._occupied(
                f"another daemon ({holder}) has it, or has ended just now", left + _SLACK
            )

    async def _read(self) -> Json | None:
        try:
            return await self._cluster.request(
                f"look at lease {self._name}", "GET", f"leases/{self._name}", version=_VERSION
            )
        except ApiRefusal as exc:
            if exc.is_missing:
                return None
            raise

    async def _write(self, lease: Json, holder: str) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": math.ceil(LEASE),
            "renewTime": now,
        }
        ours, about = current_lease(), lease["metadata"]
        known = {**(about.get("annotations") or {})}
        known.pop(LEADS, None)
        known.pop(TOKEN, None)
        if ours is not None:
            known |= {LEADS: ours.scope, TOKEN: str(ours.token)}
        metadata = {**about, "annotations": known}
        body = {
            **lease,
            "apiVersion": _VERSION,
            "kind": "Lease",
            "metadata": metadata,
            "spec": spec,
        }
        is_new = "resourceVersion" not in lease["metadata"]
        method, path = ("POST", "leases") if is_new else ("PUT", f"leases/{self._name}")
        await self._cluster.request(
            f"hold lease {self._name}", method, path, version=_VERSION, body=body
        )

    def _occupied(self, reason: str, retry_after: float = 0.0) -> HostError:
        return HostError(
            HostTrouble.OCCUPIED,
            f"could not use the instance {self._instance} on host {self._cluster.host}: {reason};"
            " give each daemon a worker.kubernetes.instance of its own",
            retry_after=retry_after,
        )


def _holder(lease: Json) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")
