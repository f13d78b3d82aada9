"""A namespace of a cluster as a transport: each workspace is in a pod of its own.

Rule 1: what is asked of a workspace goes to its pod, which is made by what makes something in it,
and by nothing else. Rule 2: what is asked without a directory goes to the pod that the same task
used last. Rule 3: a pod that was lost is looked at anew before its next use, and why it was lost is
told with the error.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
)
from functools import partial
from typing import TypeVar

import trio

from sortie.config.kubernetes import KubernetesSettings
from sortie.model import HostError, HostTrouble, ProcessIdentity, RunId, TransportError
from sortie.transports import COOKIE, Command, Process, Script
from sortie.transports.kubernetes.background import Background
from sortie.transports.kubernetes.cluster import Cluster
from sortie.transports.kubernetes.files import PodFiles
from sortie.transports.kubernetes.instance_lease import InstanceLease
from sortie.transports.kubernetes.lost_pods import any_answers, node_in_the_way, why_gone
from sortie.transports.kubernetes.objects import ApiObjects
from sortie.transports.kubernetes.paths import (
    InPod,
    last_used_pod,
    note_used_pod,
    pod_of,
    workspace_of,
)
from sortie.transports.kubernetes.pod_fence import PodFence
from sortie.transports.kubernetes.pod_link import PodLink
from sortie.transports.kubernetes.pods import FoundPod, PodKeeper
from sortie.transports.kubernetes.warm_pods import WarmPods
from sortie.transports.lost_links import LinkChanged, Links
from sortie.transports.remote.launch import Bounds, HostGone
from sortie.transports.remote.supervisor_scripts import KEPT
from sortie.transports.remote.transport import ShellTransport, new_nonce

T = TypeVar("T")

REATTACH = 300.0
"""Seconds that a program in a pod lives without a link: an API server may be away for minutes."""

_EXPLANATION_BOUND = 15.0  # seconds


class Pod:
    """A pod that runs, and the way into it."""

    def __init__(self, found: FoundPod, link: PodLink, inside: ShellTransport) -> None:
        self.name = found.name
        self.uid = found.uid
        self.node = found.node
        self.runs = {RunId(found.run)} if found.run else set[RunId]()
        self.link = link
        self.inside = inside


class KubernetesTransport:
    """The pods of one namespace; ``root`` is where their volumes are mounted.

    ``token`` stands for this life of the daemon. ``kept`` bytes of each stream of a program are
    kept in its pod until they are taken; ``links`` is told of links that programs have outlived,
    and ``tell`` of each pod that a workspace has from then on, and the seconds that it took.
    """

    def __init__(
        self,
        cluster: Cluster,
        pods: KubernetesSettings,
        root: str,
        token: str,
        background: Background,
        lease: InstanceLease,
        bounds: Bounds | None = None,
        kept: int = KEPT,
        links: Links | None = None,
        warm: WarmPods | None = None,
        tell: Callable[[FoundPod, float], object] = lambda _pod, _seconds: None,
    ) -> None:
        self._links = links or Links(new_nonce=new_nonce)
        self._tell = tell
        self._kept = kept
        self.root = root
        self._lease = lease
        self._objects = ApiObjects(cluster)
        warm = warm or WarmPods(self._objects, pods.instance, token)
        self.keeper = PodKeeper(self._objects, pods, root, token, warm)
        self.files = PodFiles(self)
        self._cluster = cluster
        self._background = background
        self._bounds = bounds or Bounds(reattach=REATTACH)
        self._env = tuple(pods.env)
        self._pods: dict[str, Pod] = {}
        self._locks: dict[str, trio.Lock] = {}
        self._first = trio.Lock()
        self._former_ended = False
        self._hurries = False

    @property
    def host(self) -> str:
        """The name of the host."""
        return self._cluster.host

    def hurry(self) -> None:
        """Give no process any more grace, from now on and whatever is under way."""
        self._hurries = True
        for pod in self._pods.values():
            pod.inside.hurry()

    async def pod(self, key: str, *, make: bool = False) -> Pod | None:
        """Return the pod of a workspace, made where ``make``; None where there is none."""
        await self.end_former()
        note_used_pod(key)
        async with self._locks.setdefault(key, trio.Lock()):
            known = self._pods.get(key)
            if known is not None:
                return known
            began = trio.current_time()
            found = await self.keeper.running(key, make=make)
            if found is None:
                return None
            if found.origin is not None:
                self._tell(found, trio.current_time() - began)
            link = PodLink(
                self._cluster,
                found.name,
                self._background,
                partial(why_gone, self._objects, found.name, found.uid),
            )
            inside = ShellTransport(
                self.host,
                link,
                bounds=self._bounds,
                kept=self._kept,
                links=self._links,
                variables=self._env,
                fence=PodFence(link, self.root, self._bounds.handshake).find,
            )
            if self._hurries:
                inside.hurry()
            self._pods[key] = Pod(found, link, inside)
            return self._pods[key]

    async def ask(self, key: str, request: Awaitable[T]) -> T:
        """Await something that is asked of a pod; where that is lost, say why."""
        pod = self._pods.get(key)
        try:
            return await request
        except HostError as exc:
            raise await self._explained(key, pod, exc, was_lost=False) from exc

    async def _explained(
        self, key: str, pod: Pod | None, exc: HostError, *, was_lost: bool
    ) -> HostError:
        """Return the error for what went wrong with a pod, which is looked at anew; ``was_lost``: a
        program may still run there."""
        if pod is None:
            return exc
        if self._pods.get(key) is pod:
            self.forget(key)
        objects, about = self._objects, (pod.name, pod.uid)
        with trio.move_on_after(_EXPLANATION_BOUND):
            try:
                if why := await why_gone(objects, *about):
                    return HostGone(f"{why} (on host {self.host})")
                others = self._others_answer
                found = await node_in_the_way(objects, *about, others, was_lost=was_lost)
            except HostError:
                return exc
            return found or exc
        return exc

    async def _others_answer(self, node: str) -> bool:
        """Tell whether a pod of another node answers, of those that are in use."""
        pods = self._pods.values()
        return await any_answers(
            {pod.node: pod.inside.try_link for pod in pods if pod.node != node}
        )

    def forget(self, key: str) -> None:
        """Look at the pod of a workspace anew before its next use."""
        pod = self._pods.pop(key, None)
        if pod is not None:
            pod.link.close()

    async def end_former(self) -> int:
        """Have the pods for ourselves, and end, once, what an earlier life of this daemon left."""
        await self._lease.hold()
        async with self._first:
            if self._former_ended:
                return 0
            count = await self.keeper.end_former()
            self._former_ended = True
            return count

    def following_links(self, run_id: RunId, changed: LinkChanged) -> AbstractContextManager[None]:
        """Tell of links that programs of a run outlive; see OutlivesLinks."""
        return self._links.lost_now.followed(run_id, changed)

    def process(self, command: Command) -> AbstractAsyncContextManager[Process]:
        """Start a program in the pod of its directory; see the port."""
        return self._process(command)

    @asynccontextmanager
    async def _process(self, command: Command) -> AsyncIterator[Process]:
        where = pod_of(self.root, command.cwd)
        pod = await self._needed(where, command.cwd)
        key = where.key if where is not None else last_used_pod() or ""
        run = command.env.get(COOKIE)
        if run is not None and run not in pod.runs:
            await self.keeper.note_run(pod.name, pod.uid, run)
            pod.runs.add(RunId(run))
        try:
            async with pod.inside.process(command) as process:
                yield process
        except HostError as exc:
            was_lost = exc.trouble is HostTrouble.DROPPED
            raise await self._explained(key, pod, exc, was_lost=was_lost) from exc

    async def run_script(self, script: Script) -> bytes:
        """Return what a script writes to stdout; see the port."""
        where = pod_of(self.root, script.cwd)
        pod = await self._needed(where, script.cwd)
        return await self.ask(last_used_pod() or "", pod.inside.run_script(script))

    async def resolve_program(self, name: str, path: str | None = None) -> str:
        """Return the absolute path of an executable in the pod that this task uses."""
        pod = await self._needed(None, "/")
        return await self.ask(last_used_pod() or "", pod.inside.resolve_program(name, path))

    async def _needed(self, where: InPod | None, path: str) -> Pod:
        """Return the pod in which something is to run. Raises TransportError without one."""
        key = where.key if where is not None else last_used_pod()
        pod = await self.pod(key) if key is not None else None
        if pod is None:
            raise TransportError(
                f"could not use {path} on host {self.host}: it is in no pod; workspaces are below"
                f" {self.root}, each in a pod of its own"
            )
        return pod

    async def sweep(
        self,
        run_ids: Collection[RunId],
        *,
        grace: float,
        roots: Mapping[RunId, ProcessIdentity] | None = None,
    ) -> int:
        """End what runs left in pods; see the port.

        A pod of an earlier life is ended as a whole, and so is one of this life in which the
        processes of a run cannot be ended.
        """
        count = await self.end_former()
        wanted = frozenset(run_ids)
        for key, pod in list(self._pods.items()):
            of_it = pod.runs & wanted
            if pod.runs and not of_it:
                continue
            try:
                count += await pod.inside.sweep(run_ids, grace=grace, roots=roots)
                wanted -= of_it
            except TransportError:
                self.forget(key)
                wanted |= of_it
        if wanted:
            count += await self.keeper.end_runs(frozenset(map(str, wanted)))
        return count

    async def clear(self, path: str, *, grace: float) -> int:
        """End what runs that are over left living in a directory; see the port."""
        where = workspace_of(self.root, path)
        pod = await self.pod(where.key) if where is not None else None
        if where is None or pod is None:
            return 0
        return await self.ask(where.key, pod.inside.clear(where.path, grace=grace))

    async def occupied(self, path: str) -> Sequence[int]:
        """Return the pids, in its pod, of the processes that live in a directory; see the port."""
        where = workspace_of(self.root, path)
        pod = await self.pod(where.key) if where is not None else None
        if where is None or pod is None:
            return ()
        return await self.ask(where.key, pod.inside.occupied(where.path))
