"""The shells of a host that have answered and wait for the next question."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from sortie.transports.ssh.conversation import Conversation

_MOST = 4
"""Each takes one of the sessions of a connection, which are ten where nobody has raised that; runs
that ask at the same moment rarely are more."""


class IdleShells:
    """What is kept, and since when; the last that came is the first that goes."""

    def __init__(self) -> None:
        self._idle: list[tuple[Conversation, float]] = []

    def take(self) -> tuple[Conversation, float] | None:
        """Return one that has not ended, if any, and when it came."""
        while self._idle:
            shell, since = self._idle.pop()
            if not (shell.channel.ended or shell.channel.has_exited):
                return shell, since
            shell.channel.abort()
        return None

    def put(self, shell: Conversation) -> bool:
        """Keep one for the next question; return whether there was room for it."""
        if len(self._idle) >= _MOST:
            return False
        self._idle.append((shell, trio.current_time()))
        return True

    def dismiss(self) -> bool:
        """End all of them; return whether there were any."""
        idle, self._idle = self._idle, []
        for shell, _ in idle:
            shell.channel.abort()
        return bool(idle)
