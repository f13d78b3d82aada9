"""The way into one pod: programs over WebSockets, and shells that are kept for questions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, cast

import trio

from sortie.model import HostError, HostTrouble
from sortie.transports.kubernetes.background import Background
from sortie.transports.kubernetes.cluster import Cluster
from sortie.transports.kubernetes.exec_channel import ExecChannel
from sortie.transports.kubernetes.manifests import CONTAINER
from sortie.transports.remote.launch import HostGone
from sortie.transports.remote.protocol import ScriptOutput
from sortie.transports.remote.scripts import SHELL
from sortie.transports.ssh.login_limit import LoginLimit
from sortie.transports.ssh.remote_script import RemoteScript

if TYPE_CHECKING:
    from sortie.transports.ssh.connection_pool import ConnectionPool

_MOST_IDLE_SHELLS = 4


class PodLink:
    """What a shell needs to run scripts in a pod; ``host`` is the pod's name in messages.

    ``why_gone`` says why the pod is no more, "" where it is there or that cannot be told.
    """

    generation = 1

    def __init__(
        self,
        cluster: Cluster,
        pod: str,
        background: Background,
        why_gone: Callable[[], Awaitable[str]],
    ) -> None:
        self.host = f"{cluster.host} (pod {pod})"
        self.login_limit = LoginLimit(self.host)
        self._cluster = cluster
        self._pod = pod
        self._background = background
        self._why_gone = why_gone
        self._idle_shells: list[tuple[RemoteScript, float]] = []
        self._closed = False

    def as_pool(self) -> ConnectionPool:
        """Return itself as what a shell asks for: of a pool it uses what stands here."""
        return cast("ConnectionPool", self)

    async def open(self, command: str, text: bytes, parser: ScriptOutput) -> ExecChannel:
        """Run a command of /bin/sh; its stdin begins with ``text``.

        The channel has to be aborted in the end. Raises HostGone where the pod is no more, and
        HostError.
        """
        if self._closed or self._background.closed:
            raise HostError(HostTrouble.DROPPED, f"the way to host {self.host} was closed")
        argv = ("/bin/sh",) if command == SHELL else ("/bin/sh", "-c", command)
        channel = ExecChannel(self.host, text, parser)
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

    def take_shell(self) -> tuple[RemoteScript, float] | None:
        """Return an idle shell, if there is one, and the time of its last answer."""
        while self._idle_shells:
            shell, since = self._idle_shells.pop()
            if not shell.channel.exited.is_set():
                return shell, since
            shell.channel.abort()
        return None

    def keep_shell(self, shell: RemoteScript) -> bool:
        """Keep a shell for the next question, where there is room for it; return whether it is."""
        if self._closed or len(self._idle_shells) >= _MOST_IDLE_SHELLS:
            return False
        self._idle_shells.append((shell, trio.current_time()))
        return True

    def close(self) -> None:
        """Let no shell be kept any more; what runs is left alone."""
        self._closed = True
        shells, self._idle_shells = self._idle_shells, []
        for shell, _ in shells:
            shell.channel.abort()
