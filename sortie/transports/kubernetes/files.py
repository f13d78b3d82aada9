"""Directories and small files in pods, by the scripts that hosts are asked with.

What is asked of a workspace whose pod is not there is answered as for a directory that is not.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from sortie.model import ProcessesLeft, TransportError
from sortie.transports import Files, Script
from sortie.transports.kubernetes.lost_pods import PodUnreached
from sortie.transports.kubernetes.paths import (
    InPod,
    file_of,
    is_inside,
    last_used_pod,
    pod_of,
    workspace_of,
)

if TYPE_CHECKING:
    from sortie.transports.kubernetes.transport import KubernetesTransport, Pod

T = TypeVar("T")

_RESCUES = """
for mirror in "$1"/@repositories/*.git; do
  [ -d "$mirror/refs" ] || continue
  git --git-dir="$mirror" for-each-ref --count=1 --format=rescued refs/sortie/rescue
done
"""


class PodFiles:
    """The directories and files of all pods of a namespace."""

    def __init__(self, transport: KubernetesTransport) -> None:
        self._transport = transport

    async def together(self, work: Callable[[Files], Coroutine[Any, Any, T]]) -> T:
        """Do several operations, one after the other; see the port."""
        return await work(self)

    async def make_directory(self, root: str, name: str) -> tuple[str, bool]:
        """Make a workspace, and its pod, or a directory in a pod; see the port.

        The root is the mount point of every pod, and so is there.
        """
        top = self._transport.root
        if root != top and (where := pod_of(top, root)) is not None:
            pod = await self._made(where.key)
            request = pod.inside.files.make_directory(root, name)
            return await self._transport.ask(where.key, request)
        if os.path.join(root, name) == top or (root == top and name.startswith("@")):
            await self._transport.end_former()
            return os.path.join(root, name), False
        where = workspace_of(top, os.path.join(root, name))
        if where is None:
            raise self._outside(os.path.join(root, name))
        pod = await self._made(where.key)
        own = os.path.dirname(where.path)
        request = pod.inside.files.make_directory(own, where.key)
        return await self._ask_around(InPod(key=where.key, path=own), request)

    async def remove_directory(self, root: str, name: str) -> bool:
        """Remove a workspace with its pod and its volume, or a directory in a pod; see the port.

        A workspace may be named by its parent in the pod. A volume that holds rescued work stays.
        """
        top = self._transport.root
        if root == f"{top}/{name}":
            root = top
        where = pod_of(top, root) if root != top else workspace_of(top, os.path.join(root, name))
        pod = await self._transport.pod(where.key) if where is not None else None
        if where is None or pod is None:
            return False
        if root != top:
            request = pod.inside.files.remove_directory(root, name)
            return await self._transport.ask(where.key, request)
        own = os.path.dirname(where.path)
        removed = await self._transport.ask(
            where.key, pod.inside.files.remove_directory(own, where.key)
        )
        holds_rescues = await self._transport.ask(where.key, self._holds_rescues(pod, own))
        self._transport.forget(where.key)
        if holds_rescues:
            await self._transport.keeper.keep_volume(where.key)
        else:
            await self._transport.keeper.remove(where.key)
        return removed

    async def contained(self, root: str, path: str) -> bool:
        """Tell whether ``path`` is a directory inside the root; see the port.

        The root itself is asked for to see whether the host can be used.
        """
        top = self._transport.root
        if path == top:
            await self._transport.end_former()
            return False
        where = workspace_of(top, path) if root == top else pod_of(top, path)
        pod = await self._transport.pod(where.key) if where is not None else None
        if where is None or pod is None:
            return False
        return await self._transport.ask(
            where.key, pod.inside.files.contained(self._inner(root, where), where.path)
        )

    def _inner(self, root: str, where: InPod) -> str:
        """Return the root as the pod has it: a directory of its own."""
        top = self._transport.root
        return f"{top}/{where.key}" if root == top else root

    async def read_file(self, directory: str, name: str, limit: int) -> bytes | None:
        """Return at most ``limit`` bytes of a regular file; see the port."""
        where = self._file(directory, name)
        pod = await self._transport.pod(where.key) if where is not None else None
        if where is None or pod is None:
            return None
        return await self._ask_around(where, pod.inside.files.read_file(where.path, name, limit))

    async def read_file_inside(
        self, root: str, directory: str, name: str, limit: int
    ) -> bytes | None:
        """Do as ``read_file`` below a directory inside the root; see the port."""
        where = pod_of(self._transport.root, directory)
        pod = await self._transport.pod(where.key) if where is not None else None
        if where is None or pod is None:
            raise self._outside(directory)
        request = pod.inside.files.read_file_inside(
            self._inner(root, where), where.path, name, limit
        )
        return await self._transport.ask(where.key, request)

    async def write_file(self, directory: str, name: str, content: bytes) -> None:
        """Write a small file; see the port. Without a pod nothing but the probe is written."""
        where = self._file(directory, name)
        if where is None:
            if directory == self._transport.root:
                await self._transport.end_former()
                return
            raise self._outside(directory)
        pod = await self._made(where.key)
        await self._make_own(where, pod)
        await self._ask_around(where, pod.inside.files.write_file(where.path, name, content))

    async def remove_file(self, directory: str, name: str) -> None:
        """Remove a file, if any; see the port."""
        where = self._file(directory, name)
        pod = await self._transport.pod(where.key) if where is not None else None
        if where is not None and pod is not None:
            request = pod.inside.files.remove_file(where.path, name)
            await self._transport.ask(where.key, request)

    def _file(self, directory: str, name: str) -> InPod | None:
        """Return where a file is: outside the root it is in the pod that this task uses."""
        used = last_used_pod()
        if used is not None and not is_inside(self._transport.root, directory):
            return InPod(key=used, path=directory)
        return file_of(self._transport.root, directory, name)

    async def _make_own(self, where: InPod, pod: Pod) -> None:
        """Make the directory in which all of an issue is, before something is written there."""
        top = self._transport.root
        if where.path == f"{top}/{where.key}":
            script = Script(
                purpose=f"make {where.path}",
                text='[ -d "$1" ] || mkdir -m 700 -- "$1"',
                arguments=(where.path,),
                cwd="/",
                env={},
                limit=1,
            )
            await self._ask_around(where, pod.inside.run_script(script))

    async def _ask_around(self, where: InPod, request: Awaitable[T]) -> T:
        """Ask for something at a path in a pod; what is around a workspace is asked for before its
        run begins.

        Raises ProcessesLeft where that cannot begin because of its node, which is in the way of no
        other issue.
        """
        try:
            return await self._transport.ask(where.key, request)
        except PodUnreached as exc:
            if where.path != f"{self._transport.root}/{where.key}":
                raise
            raise ProcessesLeft(str(exc), pids=frozenset()) from None

    async def _holds_rescues(self, pod: Pod, own: str) -> bool:
        script = Script(
            purpose="look for rescued work",
            text=_RESCUES,
            arguments=(own,),
            cwd="/",
            env={},
            limit=4096,
        )
        return bool((await pod.inside.run_script(script)).strip())

    async def _made(self, key: str) -> Pod:
        pod = await self._transport.pod(key, make=True)
        assert pod is not None
        return pod

    def _outside(self, path: str) -> TransportError:
        return TransportError(
            f"could not use {path} on host {self._transport.host}: it is no directory inside a"
            f" workspace of {self._transport.root}"
        )
