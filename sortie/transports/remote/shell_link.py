"""The way to one place that has a /bin/sh, and the shells that are kept there for questions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager

import trio

from sortie.model import TransportError
from sortie.transports.remote.channel import Channel
from sortie.transports.remote.login_limit import LoginLimit
from sortie.transports.remote.protocol import ScriptOutput
from sortie.transports.remote.remote_script import RemoteScript

_MOST_IDLE_SHELLS = 4  # each takes one of the ten sessions that sshd allows on a connection


class ShellLink(ABC):
    """What a shell needs to run scripts on ``host``, which is its name in messages.

    ``generation`` grows where what was found out about the place may no longer hold.
    """

    lends_shells = False
    """Whether a shell that was kept for questions is as good as a new one for a program: nothing is
    read at a login there that may change."""

    is_relayed = False
    """Whether it may seem to be there though the place is away, as what is between answers."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.login_limit = LoginLimit(host)
        self.generation = 0
        self._idle_shells: list[tuple[RemoteScript, float]] = []  # with the time of their answers

    @abstractmethod
    async def open(self, command: str, text: bytes, parser: ScriptOutput) -> Channel:
        """Run a command of a shell on a new channel; its stdin begins with ``text``.

        The channel has to be aborted in the end. Raises HostError.
        """

    @abstractmethod
    def _keeps(self, shell: RemoteScript) -> bool:
        """Tell whether there is room for a shell that waits for the next question."""

    def forwarded(self, path: str, here: str) -> AbstractAsyncContextManager[None]:  # noqa: ARG002
        """Have a unix socket listen at a ``path`` there, whose connections come to the one at
        ``here``. Raises TransportError."""
        raise TransportError(f"no socket can be forwarded from host {self.host}")

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
        if len(self._idle_shells) >= _MOST_IDLE_SHELLS or not self._keeps(shell):
            return False
        self._idle_shells.append((shell, trio.current_time()))
        return True

    def _end_idle_shells(self) -> bool:
        """End all of them; return whether there were any."""
        shells, self._idle_shells = self._idle_shells, []
        for shell, _ in shells:
            shell.channel.abort()
        return bool(shells)
