"""A small controller of agent-sandbox: it makes a pod for each Sandbox, as that of 0.5.6 does.

What it does is in the decision record of Sandboxes. It also does what the garbage collector of a
cluster does with their pods.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import trio

from tests.kubernetes_api.objects import Json, Objects, Refused, now
from tests.kubernetes_api.real_objects import RealObjects

DEFINITION = Path(__file__).with_name("sandboxes.crd.json.gz")
VERSION = "agents.x-k8s.io/v1beta1"
POD_NAME = "agents.x-k8s.io/pod-name"
NAME_HASH = "agents.x-k8s.io/sandbox-name-hash"
_LABELS = "agents.x-k8s.io/propagated-labels"
_ANNOTATIONS = "agents.x-k8s.io/propagated-annotations"


def definition() -> Json:
    """Return the CustomResourceDefinition of Sandboxes."""
    found: Json = json.loads(gzip.decompress(DEFINITION.read_bytes()))
    return found


def with_defaults(sandbox: Json) -> None:
    """Set what an API server sets in a Sandbox that does not have it."""
    sandbox["spec"].setdefault("operatingMode", "Running")
    sandbox["spec"].setdefault("shutdownPolicy", "Retain")


@dataclass
class SandboxController:
    """Sees to the Sandboxes of some objects, by a look at all of them every ``pause`` seconds.

    ``make_pod`` and ``delete_pod`` are requests as everybody may make them.
    """

    objects: Objects | RealObjects
    make_pod: Callable[[str, Json], object]
    delete_pod: Callable[[str, str], object]
    pause: float = 0.05
    away: bool = False
    """It does not run."""

    async def run(self) -> None:
        """See to them until cancelled."""
        while True:
            await trio.sleep(self.pause)
            if not self.away:
                with suppress(Refused):  # of what has changed meanwhile
                    self._look()

    def _look(self) -> None:
        found = dict(self.objects.found)
        sandboxes = [one for (kind, _, _), one in found.items() if kind == "sandboxes"]
        uids = {one["metadata"]["uid"] for one in sandboxes}
        for (kind, namespace, name), pod in found.items():
            owner = _owner(pod) if kind == "pods" else None
            if owner is not None and owner["uid"] not in uids and not _leaves(pod):
                self.delete_pod(namespace, name)
        for (kind, namespace, _), one in found.items():
            if kind == "sandboxes" and not _leaves(one):
                self._reconcile(namespace, one)

    def _reconcile(self, namespace: str, sandbox: Json) -> None:
        name = sandbox["metadata"]["name"]
        pods = self.objects.items("pods", namespace)
        pod = next((one for one in pods if _owns(sandbox, one)), None)
        spec = sandbox["spec"]
        if _is_over(spec.get("shutdownTime")):
            self._delete(namespace, pod)
            if spec["shutdownPolicy"] == "Delete":
                self.objects.remove("sandboxes", namespace, name)
            else:
                self._tell(namespace, sandbox, None, "SandboxExpired", "Sandbox has expired")
            return
        if spec["operatingMode"] == "Suspended":
            self._delete(namespace, pod)
            self._annotate(namespace, sandbox, None)
            said = "Sandbox is suspended" if pod is None else "Sandbox is suspending"
            self._tell(namespace, sandbox, pod, "SandboxSuspended", said)
            return
        try:
            if pod is None:
                pod = self._make(namespace, sandbox, pods)
        except Refused as exc:
            self._tell(namespace, sandbox, None, "ReconcilerError", f"Error seen: {exc}")
            return
        self._propagate(namespace, sandbox, pod)
        self._annotate(namespace, sandbox, pod["metadata"]["name"])
        self._tell(namespace, sandbox, pod, *_readiness(pod))

    def _make(self, namespace: str, sandbox: Json, pods: list[Json]) -> Json:
        name = sandbox["metadata"]["name"]
        if any(one["metadata"]["name"] == name for one in pods):
            raise Refused(409, "Conflict", f'pod "{name}" is owned by another, not by "{name}"')
        template = sandbox["spec"]["podTemplate"]
        given = template.get("metadata") or {}
        labels, annotations = given.get("labels") or {}, given.get("annotations") or {}
        noted = {_LABELS: ",".join(sorted(labels)), _ANNOTATIONS: ",".join(sorted(annotations))}
        owner = {
            "apiVersion": VERSION,
            "kind": "Sandbox",
            "name": name,
            "uid": sandbox["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        metadata = {
            "name": name,
            "namespace": sandbox["metadata"]["namespace"],
            "labels": {**labels, NAME_HASH: name_hash(name)},
            "annotations": {**annotations, **{key: said for key, said in noted.items() if said}},
            "ownerReferences": [owner],
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        self.make_pod(namespace, pod)
        return self.objects.get("pods", namespace, name)

    def _propagate(self, namespace: str, sandbox: Json, pod: Json) -> None:
        """Give a pod the labels and annotations of the template, and take those that it lost."""
        changes: Json = {"labels": {}, "annotations": {}}
        for key, noted in (("labels", _LABELS), ("annotations", _ANNOTATIONS)):
            wanted = (sandbox["spec"]["podTemplate"].get("metadata") or {}).get(key) or {}
            has = pod["metadata"].get(key) or {}
            names = ",".join(sorted(wanted))
            before = (pod["metadata"].get("annotations") or {}).get(noted, "")
            changes[key] |= {k: v for k, v in wanted.items() if has.get(k) != v}
            changes[key] |= {k: None for k in before.split(",") if k in has and k not in wanted}
            if before != names:
                changes["annotations"][noted] = names
        if changes["labels"] or changes["annotations"]:
            patch = {"metadata": changes}
            self.objects.merge("pods", namespace, pod["metadata"]["name"], patch)

    def _delete(self, namespace: str, pod: Json | None) -> None:
        if pod is not None and not _leaves(pod):
            self.delete_pod(namespace, pod["metadata"]["name"])

    def _annotate(self, namespace: str, sandbox: Json, pod_name: str | None) -> None:
        """Note the name of a pod, unless another one is noted."""
        noted = (sandbox["metadata"].get("annotations") or {}).get(POD_NAME)
        if noted != pod_name and (pod_name is None or noted is None):
            patch = {"metadata": {"annotations": {POD_NAME: pod_name}}}
            self.objects.merge("sandboxes", namespace, sandbox["metadata"]["name"], patch)

    def _tell(
        self, namespace: str, sandbox: Json, pod: Json | None, reason: str, message: str
    ) -> None:
        """Write a status, where it is another one than before."""
        name = sandbox["metadata"]["name"]
        ready = "True" if reason == "DependenciesReady" else "False"
        condition = {"type": "Ready", "status": ready, "reason": reason, "message": message}
        old = (sandbox.get("status") or {}).get("conditions") or [{}]
        if {**old[0], "lastTransitionTime": ""} == {**condition, "lastTransitionTime": ""}:
            return
        status: Json = {"conditions": [{**condition, "lastTransitionTime": now()}]}
        if pod is not None:
            ips = (pod.get("status") or {}).get("podIPs") or ()
            status["selector"] = f"{NAME_HASH}={name_hash(name)}"
            status["podIPs"] = [one["ip"] for one in ips]
            status["nodeName"] = pod["spec"].get("nodeName", "")
        self.objects.tell_status("sandboxes", namespace, name, status)


def name_hash(name: str) -> str:
    """Return what the label of a pod says of its Sandbox: FNV-1a, of 32 bits."""
    found = 0x811C9DC5
    for byte in name.encode():
        found = ((found ^ byte) * 0x01000193) & 0xFFFFFFFF
    return f"{found:08x}"


def _leaves(one: Json) -> bool:
    return "deletionTimestamp" in one["metadata"]


def _owner(pod: Json) -> Json | None:
    owners: Iterator[Json] = iter(pod["metadata"].get("ownerReferences") or ())
    return next((one for one in owners if one["kind"] == "Sandbox"), None)


def _owns(sandbox: Json, pod: Json) -> bool:
    owner = _owner(pod)
    return owner is not None and owner["uid"] == sandbox["metadata"]["uid"]


def _is_over(time: str | None) -> bool:
    return time is not None and datetime.fromisoformat(now()) >= datetime.fromisoformat(time)


def _readiness(pod: Json) -> tuple[str, str]:
    """Return the reason and the message of the condition Ready, by a pod."""
    status = pod.get("status") or {}
    phase = status.get("phase", "")
    if phase in ("Succeeded", "Failed"):
        return f"Pod{phase}", f"Pod {'failed' if phase == 'Failed' else 'completed successfully'}"
    if phase != "Running":
        return "DependenciesNotReady", f"Pod exists with phase: {phase}"
    conditions = {one["type"]: one["status"] for one in status.get("conditions") or ()}
    if conditions.get("Ready") == "True" and status.get("podIPs"):
        return "DependenciesReady", "Pod is Ready"
    return "DependenciesNotReady", "Pod is Running but not Ready"
