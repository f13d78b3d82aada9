"""A unix socket of this machine on a host, which is opened again when the link to it is lost.

While there is no link, nothing gets through: connections break off, and further ones fail.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio
from msgspec import Struct

from sortie.model import HostError, TransportError
from sortie.transports.remote.shell_link import ShellLink

_PAUSE, _LONGEST_PAUSE = 0.5, 5.0  # seconds between tries to open it again


class SocketForward(Struct, frozen=True, kw_only=True):
    """A socket that listens at a ``path`` on the host of a ``link``, and whose connections come to
    the one at ``here``. ``remove`` removes what a lost link has left at the path, and ``reattach``
    is for how many seconds it may be missing."""

    link: ShellLink
    path: str
    here: str
    remove: Callable[[], Awaitable[None]]
    reattach: float

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Have it open, and open it again after each link that is lost.

        Raises TransportError where it cannot be opened. The block is cancelled where it is missing
        for too long, or the host refuses it meanwhile; then that is raised.
        """
        ready = trio.Event()
        failed: list[Exception] = []
        async with trio.open_nursery() as nursery:

            async def keep() -> None:
                try:
                    await self._keep(ready)
                except TransportError as error:
                    failed.append(error)
                    nursery.cancel_scope.cancel()

            nursery.start_soon(keep)
            try:
                await ready.wait()
                yield
            except Exception as error:  # passed on as it is, and not in a group of one
                failed.insert(0, error)
            nursery.cancel_scope.cancel()
        if failed:
            raise failed[0]

    async def _keep(self, ready: trio.Event) -> None:
        lost_at, pause = math.inf, _PAUSE
        lost: HostError | None = None
        while True:
            with trio.move_on_at(lost_at + self.reattach) as limit:
                try:
                    if lost is not None:
                        await self.remove()
                    async with self.link.forwarded(self.path, self.here):
                        ready.set()
                        lost_at, pause, limit.deadline = math.inf, _PAUSE, math.inf
                        await trio.sleep_forever()
                except HostError as error:
                    if not ready.is_set():
                        raise
                    lost = error
            assert lost is not None
            now = trio.current_time()
            lost_at = min(lost_at, now)
            if now + pause >= lost_at + self.reattach:
                raise lost
            await trio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
