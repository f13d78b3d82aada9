"""The way into one pod: programs over WebSockets, and shells that are kept for questions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from sortie.model import HostError, HostTrouble
from sortie.transports.kubernetes.background import Background
from sortie.transports.kubernetes.cluster import Cluster
from sortie.transports.kubernetes.exec_channel import ExecChannel
from sortie.transports.kubernetes.manifests import CONTAINER
from sortie.transports.remote.launch import HostGone
from sortie.transports.remote.protocol import ScriptOutput
from sortie.transports.remote.remote_script import RemoteScript
from sortie.transports.remote.scripts import SHELL
from sortie.transports.remote.shell_link import ShellLink


class PodLink(ShellLink):
    """The way into a pod.

    ``why_gone`` says why the pod is no more, "" where it is there or that cannot be told.
    """

    lends_shells = True
    is_relayed = True  # an API server answers pings itself, and not the node behind it

    def __init__(
        self,
        cluster: Cluster,
        pod: str,
        background: Background,
        why_gone: Callable[[], Awaitable[str]],
    ) -> None:
        super().__init__(f"{cluster.host} (pod {pod})")
        self._cluster = cluster
        self._pod = pod
        self._background = background
        self._why_gone = why_gone
        self._closed = False

    async def open(self, command: str, text: bytes, parser: ScriptOutput) -> ExecChannel:
        """Run a command of /bin/sh; its stdin begins with ``text``.

        The channel has to be aborted in the end. Raises HostGone where the pod is no more, and
        HostError.
        """
        if self._closed or self._background.closed:
            raise HostError(HostTrouble.DROPPED, f"the way to host {self.host} was closed")
        argv = ("/bin/sh",) if command == SHELL else ("/bin/sh", "-c", command)
        channel = ExecChannel(self.host, text, parser, self._why_gone)
        connect = partial(self._cluster.run, f"use pod {self._pod}", self._pod, CONTAINER, argv)
        channel.bind(self._background.start(partial(channel.run, connect)))
        opened = False
        try:
            await channel.opened()
            opened = True
            return channel
        except HostError as exc:
            if why := await self._why_gone():
                raise HostGone(f"{why} (on host {self.host})") from exc
            raise
        finally:
            if not opened:
                channel.abort()

    def _keeps(self, shell: RemoteScript) -> bool:  # noqa: ARG002
        return not self._closed

    def close(self) -> None:
        """Let no shell be kept any more; what runs is left alone."""
        self._closed = True
        self._end_idle_shells()
