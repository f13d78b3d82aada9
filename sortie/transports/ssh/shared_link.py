"""A connection to a host and the sessions that it carries, each of which has a slot."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:  # it imports asyncssh, which only the asyncio thread needs
    from sortie.transports.ssh.link import Link

# How long a host's refusal is believed. sshd frees a session a little after we saw it close, so
# what was learned must not stay: it would drift towards no session at all.
_FULL_FOR = 5.0
_BUSY_FOR = 0.2


class SharedLink:
    """A link with the sessions on it."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.count = 0
        self.idle_since = trio.current_time()
        self.full = math.inf
        self.full_until = math.inf

    def has_room(self, now: float) -> bool:
        if now >= self.full_until:
            self.full = self.full_until = math.inf
        return self.count < self.full

    def refused(self) -> None:
        """Believe the host for a while; ``count`` is what it carries without the one refused."""
        self.full = self.count
        self.full_until = trio.current_time() + (_FULL_FOR if self.count else _BUSY_FOR)


class SessionSlot:
    """One session's place on a link; given back once."""

    def __init__(self, used: SharedLink, when_freed: Callable[[], object]) -> None:
        self._used = used
        self._when_freed = when_freed
        self._taken = True

    def free(self) -> None:
        """Give the place back."""
        if self._taken:
            self._taken = False
            self._used.count -= 1
            self._used.idle_since = trio.current_time()
            self._when_freed()
