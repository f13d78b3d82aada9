"""A small kubelet: pods are processes of this machine."""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import trio

from tests.kubernetes_api.objects import Json, Objects, Refused, now

START = 0.02  # seconds until a pod runs, and until it has gone

WORKSPACE = "sortie.dev/workspace"
POD = "SORTIE_TEST_POD"
"""The variable by which a process is known to a pod, whatever tree it has left: names of pods are
alike in all tests, which run beside each other."""
_IP = "10.1.0.1"
"""The address of every pod; nobody uses it."""


class NodeRefusal(Refused):
    """What a node does not do, and its API server says on its behalf."""


@dataclass
class Kubelet:
    """Runs the pods of some objects.

    ``unschedulable`` and ``unpullable`` are messages for pods that are made from then on.
    """

    objects: Objects
    nursery: trio.Nursery
    unschedulable: str | None = None
    unpullable: str | None = None
    path: str = field(default_factory=lambda: os.environ["PATH"])
    """The PATH in pods."""
    start: float = START
    """Seconds until a pod runs."""
    claims_stay: bool = False
    """Claims that are deleted do not go: their volumes are still in use."""
    stuck: bool = False
    """Pods that are deleted do not go: their node is away."""
    away: bool = False
    """Nobody answers for the node: nothing can be run in its pods, and what runs there goes on."""
    lost: set[str] = field(default_factory=set)
    """The names of pods whose own node is away, and does not end them either."""
    node: str = "node"
    """The node of pods that run from then on; the stand-in may have several."""
    unreached: set[str] = field(default_factory=set)
    """The nodes that count as ready and see to their pods, and that the API server cannot reach."""
    silent: set[str] = field(default_factory=set)
    """The nodes of which nothing is heard any more, though links to their pods seem to be there."""
    variables: dict[str, str] = field(default_factory=dict)
    """What the images of pods set, besides what all have."""
    mounts: set[str] = field(default_factory=set)
    roots: dict[str, list[psutil.Process]] = field(default_factory=dict)
    scopes: dict[str, set[trio.CancelScope]] = field(default_factory=dict)
    ran: set[str] = field(default_factory=set)
    """The uids of pods that have run."""
    volumes: dict[str, list[str]] = field(default_factory=dict)
    """The directories that only one pod works in."""

    async def run(self, namespace: str, name: str) -> None:
        """Bring a pod to life, unless something is in the way."""
        await trio.sleep(self.start)
        with suppress(Refused):
            pod = self.objects.get("pods", namespace, name)
            if self.unschedulable is not None:
                self._set(pod, phase="Pending", conditions=[_unscheduled(self.unschedulable)])
                return
            missing = self._missing_claim(pod)
            if missing is not None:
                message = f'persistentvolumeclaim "{missing}" not found'
                self._set(pod, phase="Pending", conditions=[_unscheduled(message)])
                return
            self.objects.bind(namespace, name, self.node)
            if self.unpullable is not None:
                waiting = {"reason": "ImagePullBackOff", "message": self.unpullable}
                self._set(pod, phase="Pending", container={"waiting": waiting})
                return
            for mount in pod["spec"]["containers"][0].get("volumeMounts", ()):
                Path(mount["mountPath"]).mkdir(parents=True, exist_ok=True)
                self.mounts.add(mount["mountPath"])
            Path(self._environ(pod)["HOME"]).mkdir(parents=True, exist_ok=True)
            self._set(pod, phase="Running", container={"running": {"startedAt": now()}})

    async def end(self, namespace: str, name: str, uid: str) -> None:
        """End a pod that was deleted: all in it, and then itself."""
        while self.stuck or name in self.lost:
            await trio.sleep(0.05)
        await trio.sleep(START)
        pod = self.objects.get("pods", namespace, name)
        if pod["metadata"]["uid"] == uid:
            self._note_volumes(pod)  # a real server's programs do not begin here
            await self._kill(uid)
            self._drop_volume(pod)
            self.objects.remove("pods", namespace, name)

    async def let_go(self, claim: Json) -> None:
        """Remove a claim that was deleted, with its volume, as soon as no pod uses it."""
        namespace, name = claim["metadata"]["namespace"], claim["metadata"]["name"]
        await trio.sleep(START)
        with suppress(Refused):
            while self.claims_stay or any(
                name in _claims(pod) for pod in self.objects.items("pods", namespace)
            ):
                await trio.sleep(0.05)
            self.drop(claim)
            self.objects.release(namespace, name)

    async def fail(self, namespace: str, name: str, **status: Any) -> None:
        """End a pod from the side of its node: evicted, say."""
        pod = self.objects.get("pods", namespace, name)
        await self._kill(pod["metadata"]["uid"])
        pod["status"] = {**pod.get("status", {}), "phase": "Failed", **status}
        self.objects.change("pods", namespace, pod)

    def lose_node(self, namespace: str, name: str) -> None:
        """Have the node of a pod be away, and the pod marked as the controller of nodes does."""
        self.lost.add(name)
        pod = self.objects.get("pods", namespace, name)
        for one in pod["status"]["conditions"]:
            if one["type"] == "Ready":
                one["status"] = "False"
        self.objects.change("pods", namespace, pod)

    @contextmanager
    def program(self, namespace: str, name: str) -> Iterator[tuple[Json, dict[str, str]]]:
        """Give a pod and the environment of what is run in it, until the pod ends."""
        pod = self.objects.get("pods", namespace, name)
        if self.away or name in self.lost:
            raise Refused(500, "InternalError", "error dialing backend: no route to host")
        if pod["spec"].get("nodeName") in self.unreached:
            said = 'error sending request: Post "https://10.0.0.7:10250/exec/agents": dial tcp'
            reason = f"Internal error occurred: {said} 10.0.0.7:10250: connect: connection refused"
            raise NodeRefusal(500, "InternalError", reason)
        if pod.get("status", {}).get("phase") != "Running":
            raise NodeRefusal(500, "InternalError", "Internal error occurred: pod does not exist")
        uid = pod["metadata"]["uid"]
        self._note_volumes(pod)
        with trio.CancelScope() as scope:
            self.scopes.setdefault(uid, set()).add(scope)
            try:
                yield pod, self._environ(pod)
            finally:
                self.scopes[uid].discard(scope)

    async def heard(self, pod: Json) -> None:
        """Wait until something is heard of a pod's node."""
        while pod["spec"].get("nodeName") in self.silent:
            await trio.sleep(0.05)

    def note(self, uid: str, pid: int) -> None:
        """Note a process that was started in a pod."""
        with suppress(psutil.NoSuchProcess):
            self.roots.setdefault(uid, []).append(psutil.Process(pid))

    def _note_volumes(self, pod: Json) -> None:
        if key := pod["metadata"].get("annotations", {}).get(WORKSPACE):
            volumes = [f"{mount}/{key}" for mount in self.mounts]
            self.volumes[pod["metadata"]["uid"]] = volumes

    async def close(self) -> None:
        """End all pods."""
        for uid in list(self.roots):
            await self._kill(uid)

    async def _kill(self, uid: str) -> None:
        """End all that runs in a pod, as its node does, also what has left its parents."""
        for process in self.roots.pop(uid, ()):
            tree = [process]
            with suppress(psutil.NoSuchProcess):
                tree += process.children(recursive=True)
            for one in tree:
                with suppress(psutil.NoSuchProcess, ProcessLookupError):
                    one.kill()
        volumes = self.volumes.pop(uid, [])
        while uid in self.ran and (left := _left_of(uid, volumes)):
            for one in left:
                with suppress(psutil.NoSuchProcess, ProcessLookupError):
                    one.kill()
            await trio.sleep(0.01)
        self.ran.discard(uid)
        for scope in self.scopes.pop(uid, set()):
            scope.cancel()
        await trio.lowlevel.checkpoint()

    def _environ(self, pod: Json) -> dict[str, str]:
        about = pod["metadata"]
        env = {"PATH": self.path, "HOSTNAME": about["name"], "HOME": "/", POD: about["uid"]}
        env |= self.variables
        namespace = pod["metadata"]["namespace"]
        for one in pod["spec"]["containers"][0].get("env", ()):
            if "value" in one:
                env[one["name"]] = one["value"]
            else:
                of = one["valueFrom"]["secretKeyRef"]
                secret = self.objects.get("secrets", namespace, of["name"])
                env[one["name"]] = base64.b64decode(secret["data"][of["key"]]).decode()
        return env

    def _missing_claim(self, pod: Json) -> str | None:
        claims = self.objects.items("persistentvolumeclaims", pod["metadata"]["namespace"])
        there = {claim["metadata"]["name"] for claim in claims}
        return next((name for name in _claims(pod) if name not in there), None)

    def _drop_volume(self, pod: Json) -> None:
        for volume in pod["spec"].get("volumes", ()):
            if "emptyDir" in volume:
                self.drop(pod)

    def drop(self, owner: Mapping[str, Any]) -> None:
        """Remove what a pod or a claim has in its volume."""
        key = owner["metadata"].get("annotations", {}).get(WORKSPACE)
        for mount in self.mounts if key else ():
            shutil.rmtree(Path(mount) / key, ignore_errors=True)

    def _set(self, pod: Json, *, phase: str, container: Any = None, conditions: Any = ()) -> None:
        status: Json = {"phase": phase, "conditions": list(conditions)}
        if phase == "Running":
            status["conditions"].append({"type": "Ready", "status": "True"})
            status |= {"podIP": _IP, "podIPs": [{"ip": _IP}]}
            self.ran.add(pod["metadata"]["uid"])
        if container is not None:
            status["containerStatuses"] = [_container_status(pod, container)]
        pod["status"] = status
        self.objects.change("pods", pod["metadata"]["namespace"], pod)


def _left_of(uid: str, volumes: list[str]) -> list[psutil.Process]:
    """Return the processes that live and have a pod's uid, or work in its volume: a program that
    was started in a pod is not given the variables of its shell."""
    return [one for one in psutil.process_iter() if _is_of(one, uid, volumes)]


def _is_of(process: psutil.Process, uid: str, volumes: list[str]) -> bool:
    """Tell whether a process belongs to a pod: what cannot be read of one that is just becoming
    another program does not hide the rest."""
    with suppress(psutil.Error, OSError):
        works_in = f"{process.cwd()}/"
        if any(works_in.startswith(f"{volume}/") for volume in volumes):
            return True
    with suppress(psutil.Error, OSError):
        return process.environ().get(POD) == uid
    return False


def _claims(pod: Json) -> list[str]:
    """Return the names of the claims that a pod uses."""
    volumes = pod["spec"].get("volumes", ())
    return [
        v["persistentVolumeClaim"]["claimName"] for v in volumes if "persistentVolumeClaim" in v
    ]


def _container_status(pod: Json, state: Json) -> Json:
    container = pod["spec"]["containers"][0]
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": "running" in state,
        "restartCount": 0,
        "state": state,
    }


def _unscheduled(message: str) -> Json:
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
    }
