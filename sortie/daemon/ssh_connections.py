"""The connections to remote hosts, which the workflows of a process share.

Rule 1: workflows that reach a host by the same settings use the same connections to it. These are
kept for as long as one of them wants the host.
Rule 2: what helps to reach a host is given only the variables that each of these workflows lets it
have.
Rule 3: what a workflow holds on a host, such as a workspace root, is its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

import trio

from sortie.transports.ssh.asyncio_thread import AsyncioThread, start_asyncio_thread
from sortie.transports.ssh.connection_pool import ConnectionPool
from sortie.transports.ssh.settings import SshSettings

HostKey: TypeAlias = tuple[str, SshSettings]
"""A host, and how it is reached."""

Owner: TypeAlias = object
"""A workflow, or what stands for one."""


class CommonEnviron(Mapping[str, str]):
    """The variables that have the same value in each of some environments, as these are now."""

    def __init__(self) -> None:
        self.of: dict[Owner, Mapping[str, str]] = {}

    def __getitem__(self, name: str) -> str:
        return self._common()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._common())

    def __len__(self) -> int:
        return len(self._common())

    def _common(self) -> Mapping[str, str]:
        first, *others = self.of.values() or [{}]
        return {
            name: value
            for name, value in first.items()
            if all(other.get(name) == value for other in others)
        }


class _HostConnections:
    """The connections to one host, their owners, and which of these want to keep them."""

    def __init__(self, key: HostKey, thread: AsyncioThread) -> None:
        host, ssh = key
        self.environ = CommonEnviron()
        self.pool = ConnectionPool(host, replace(ssh, environ=self.environ), thread)
        self.wanted_by: set[Owner] = set()
        self.left: set[Owner] = set()


class SshConnections:
    """The connections of a process; to be closed."""

    def __init__(self) -> None:
        self._thread: AsyncioThread | None = None
        self._hosts: dict[HostKey, _HostConnections] = {}

    def pool(self, owner: Owner, key: HostKey) -> ConnectionPool:
        """Return the connections to a host for an owner, which wants them from now on."""
        if self._thread is None:
            self._thread = start_asyncio_thread()
        if key not in self._hosts:
            self._hosts[key] = _HostConnections(key, self._thread)
        found = self._hosts[key]
        found.environ.of[owner] = key[1].environ or {}
        for gone in found.left:
            del found.environ.of[gone]
        found.left.clear()
        self.set_wanted(owner, key, wanted=True)
        return found.pool

    def set_wanted(self, owner: Owner, key: HostKey, *, wanted: bool) -> None:
        """Note whether an owner wants to keep its connections to a host."""
        found = self._hosts[key]
        if wanted:
            found.wanted_by.add(owner)
        else:
            found.wanted_by.discard(owner)
        found.pool.set_wanted(bool(found.wanted_by))

    def is_closing(self, key: HostKey) -> bool:
        """Tell whether a connection is open that no owner wants to keep."""
        found = self._hosts[key]
        return not found.wanted_by and found.pool.links > 0

    def leave(self, owner: Owner) -> None:
        """Let an owner go that has ended; no other is given its variables before there is one."""
        for key, found in self._hosts.items():
            if owner in found.environ.of:
                self.set_wanted(owner, key, wanted=False)
                found.left.add(owner)

    async def aclose(self, until: float = math.inf) -> None:
        """Close all connections, within a few seconds, and by a time."""
        try:
            async with trio.open_nursery() as nursery:
                for found in self._hosts.values():
                    nursery.start_soon(found.pool.aclose, until)
        finally:
            if self._thread is not None:
                await self._thread.aclose()
