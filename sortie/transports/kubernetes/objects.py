"""Requests about the objects of one namespace, with errors that say what was attempted on what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import trio

from sortie.model import HostError, HostTrouble
from sortie.transports.kubernetes.api_errors import ApiRefusal
from sortie.transports.kubernetes.cluster import Cluster
from sortie.transports.kubernetes.manifests import SANDBOX_API, sandbox_of

PODS = "pods"
CLAIMS = "persistentvolumeclaims"
SANDBOXES = "sandboxes"

END_BOUND = 60.0
"""Seconds for a pod to go after it was told to."""

STAYED_BOUND = 2.0
"""Seconds for one to go that was waited for in vain before."""

WATCH_AGAIN = 1.0
"""Seconds from the end of one watch to the next."""

_QUOTA = "exceeded quota"
_SINGULAR = {PODS: "pod", CLAIMS: "claim", SANDBOXES: "Sandbox"}
_VERSIONS = {SANDBOXES: SANDBOX_API}
_CORE = "v1"

Json = dict[str, Any]


class QuotaError(HostError):
    """The quota of the namespace has no room for an object now."""

    def __init__(self, message: str) -> None:
        super().__init__(HostTrouble.BUSY, message)


class ApiObjects:
    """Makes, reads, labels and deletes objects. All methods raise HostError."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._stayed: set[str] = set()  # the uids of pods that did not go in time

    @property
    def host(self) -> str:
        """The name of the host."""
        return self._cluster.host

    def error(self, attempt: str, reason: str) -> HostError:
        """Return the error for a host that cannot be used, with the reason and its remedy."""
        return self._cluster.error(attempt, reason)

    async def get(self, kind: str, name: str) -> Json | None:
        """Return an object, None where there is none."""
        return await self._asked(f"look at {_SINGULAR[kind]} {name}", kind, name)

    async def listed(self, kind: str, labels: Mapping[str, str | None]) -> list[Json]:
        """Return the objects with these labels; None stands for any value."""
        wanted = (key if value is None else f"{key}={value}" for key, value in labels.items())
        params = {"labelSelector": ",".join(wanted)}
        found = await self._asked(f"list the {kind}", kind, params=params)
        return list((found or {}).get("items") or ())

    async def create(self, kind: str, body: Mapping[str, Any]) -> bool:
        """Create an object, unless it is there; return whether it was made.

        Raises QuotaError where the namespace has no room.
        """
        name = body["metadata"]["name"]
        attempt = f"make {_SINGULAR[kind]} {name}"
        try:
            await self._request(attempt, "POST", kind, body=body)
        except ApiRefusal as exc:
            if exc.is_conflict and exc.reason == "AlreadyExists":
                return False
            raise self.refusal(attempt, f"{exc} ({exc.status})") from exc
        return True

    def refusal(self, attempt: str, reason: str) -> HostError:
        """Return the error for an object that the cluster refuses."""
        if _QUOTA not in reason:
            return self.error(attempt, reason)
        return QuotaError(
            f"could not {attempt} on host {self.host}: {reason}; wait for pods to end, or raise the"
            " ResourceQuota of the namespace"
        )

    async def change_metadata(
        self, kind: str, name: str, changes: Mapping[str, Any], version: str | None = None
    ) -> Json | None:
        """Change metadata of an object; return it as it is then.

        None where there is none, or, with a ``version``, where it is at another one.
        """
        metadata = dict(changes) if version is None else {**changes, "resourceVersion": version}
        attempt = f"label {_SINGULAR[kind]} {name}"
        body = {"metadata": metadata}
        try:
            return await self._request(attempt, "PATCH", kind, name, body=body)
        except ApiRefusal as exc:
            if exc.is_missing or (exc.is_conflict and version is not None):
                return None
            raise self.error(attempt, f"{exc} ({exc.status})") from exc

    async def change_pod(self, name: str, changes: Mapping[str, Any]) -> Json | None:
        """Change metadata of a pod, and of the Sandbox that would make it anew; return the pod as
        it is then, None where there is none."""
        pod = await self.change_metadata(PODS, name, changes)
        owner = None if pod is None else sandbox_of(pod)
        if owner is not None:
            sandbox = owner["name"]
            attempt = f"label Sandbox {sandbox}"
            body = {"metadata": changes, "spec": {"podTemplate": {"metadata": changes}}}
            try:
                await self._request(attempt, "PATCH", SANDBOXES, sandbox, body=body)
            except ApiRefusal as exc:
                if not exc.is_missing:
                    raise self.error(attempt, f"{exc} ({exc.status})") from exc
        return pod

    async def delete(
        self, kind: str, name: str, uid: str | None = None, version: str | None = None
    ) -> bool:
        """Delete an object, unless it is gone, another one, or was changed after ``version``;
        return whether it was deleted."""
        body: Json = {"kind": "DeleteOptions", "apiVersion": "v1"}
        wanted = {"uid": uid, "resourceVersion": version}
        preconditions = {key: value for key, value in wanted.items() if value is not None}
        if preconditions:
            body["preconditions"] = preconditions
        attempt = f"delete {_SINGULAR[kind]} {name}"
        try:
            await self._request(attempt, "DELETE", kind, name, body=body)
        except ApiRefusal as exc:
            if exc.is_missing or exc.is_conflict:
                return False
            raise self.error(attempt, str(exc)) from exc
        return True

    async def delete_pod(self, pod: Json) -> None:
        """Delete a pod; before it the Sandbox whose controller would make it anew."""
        owner = sandbox_of(pod)
        if owner is not None:
            await self.delete(SANDBOXES, owner["name"], owner["uid"])
        await self.delete(PODS, pod["metadata"]["name"], pod["metadata"]["uid"])

    async def end_pod(self, pod: Json) -> None:
        """Delete a pod, and wait until it has gone. Raises HostError where it does not go."""
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        bound = STAYED_BOUND if uid in self._stayed else END_BOUND
        with trio.move_on_after(bound):
            await self.delete_pod(pod)
            while (now := await self.get(PODS, name)) is not None and now["metadata"]["uid"] == uid:
                await self.next_change(PODS, name, now["metadata"]["resourceVersion"])
            self._stayed.discard(uid)
            return
        self._stayed.add(uid)
        raise HostError(
            HostTrouble.OCCUPIED,
            f"pod {name} on host {self.host} has not gone in {bound:g} s; look whether its node"
            f" ({node_of(pod)}) is there, and delete the pod by force where it is not",
        )

    async def end_pods(self, pods: list[Json]) -> int:
        """End pods at the same time; return how many have gone in time.

        Raises the first HostError of another kind, when the others are through.
        """
        errors: list[HostError] = []
        stay = 0

        async def end(pod: Json) -> None:
            nonlocal stay
            try:
                await self.end_pod(pod)
            except HostError as exc:
                if exc.trouble is HostTrouble.OCCUPIED:
                    stay += 1
                else:
                    errors.append(exc)

        async with trio.open_nursery() as nursery:
            for pod in pods:
                nursery.start_soon(end, pod)
        if errors:
            raise errors[0]
        return len(pods) - stay

    async def next_change(self, kind: str, name: str, version: str) -> Json | None:
        """Wait until an object changes; return how it is then, None where that is not known."""
        attempt = f"watch {_SINGULAR[kind]} {name}"
        api = _VERSIONS.get(kind, _CORE)
        params = {"fieldSelector": f"metadata.name={name}", "resourceVersion": version}
        try:
            async with self._cluster.watch(attempt, kind, params, version=api) as changes:
                async for change, one in changes:
                    if change in ("ADDED", "MODIFIED"):
                        return one
                    if change == "DELETED":
                        return None
        except ApiRefusal as exc:
            if not exc.is_expired:
                raise self.error(attempt, str(exc)) from exc
        await trio.sleep(WATCH_AGAIN)  # the server has ended it
        return None

    async def serves(self, kind: str) -> bool:
        """Tell whether the cluster has objects of a kind that not every one has."""
        attempt, version = f"ask for {kind}", _VERSIONS[kind]
        try:
            found = await self._cluster.request(
                attempt, "GET", "", version=version, cluster_wide=True
            )
        except ApiRefusal as exc:
            if exc.is_missing:
                return False
            raise self.error(attempt, f"{exc} ({exc.status})") from exc
        return any(one["name"] == kind for one in found.get("resources") or ())

    async def _asked(
        self, attempt: str, kind: str, name: str = "", params: Mapping[str, str] | None = None
    ) -> Json | None:
        """Return objects, or the one with a name; None where there is nothing."""
        try:
            return await self._request(attempt, "GET", kind, name, params=params)
        except ApiRefusal as exc:
            if exc.is_missing:
                return None
            raise self.error(attempt, f"{exc} ({exc.status})") from exc

    async def _request(
        self,
        attempt: str,
        method: str,
        kind: str,
        name: str = "",
        *,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Json:
        path = f"{kind}/{name}" if name else kind
        version = _VERSIONS.get(kind, _CORE)
        return await self._cluster.request(
            attempt, method, path, version=version, params=params, body=body
        )


def label(about: Json, name: str) -> str:
    """Return the value of an object's label, "" where it has none."""
    return str((about["metadata"].get("labels") or {}).get(name, ""))


def node_of(pod: Json) -> str:
    """Return the name of a pod's node, in words where it has none."""
    return str((pod.get("spec") or {}).get("nodeName") or "no node")
