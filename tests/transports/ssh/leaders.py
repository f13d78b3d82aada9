"""Daemons of one workflow that reach a host, each with a lease of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial

from sortie.config.settings import Isolation
from sortie.resources.lease import LEASE, Lease, boot_time
from sortie.transports.remote.launch import Bounds
from sortie.transports.remote.supervisor_scripts import KEPT
from sortie.transports.remote.transport import ShellTransport, new_nonce
from sortie.transports.ssh.asyncio_thread import open_asyncio_thread
from sortie.transports.ssh.connection_pool import ConnectionPool
from sortie.transports.ssh.root_locks import RootLocks
from tests.transports.ssh.sshd import Sshd

WORKFLOW = "flow"


class Leader:
    """One daemon; ``token`` is that of its lease."""

    def __init__(
        self,
        pool: ConnectionPool,
        root: str,
        token: int,
        *,
        workflow: str = WORKFLOW,
        bounds: Bounds | None = None,
        isolation: Isolation = Isolation.NONE,
        kept: int = KEPT,
    ) -> None:
        self.pool = pool
        self.root = root
        self.lease = Lease(
            workflow, token, f"alpha:{token}", boot_time() + 3600, scope=f"db/{workflow}"
        )
        self.bounds = bounds or Bounds(handshake=30.0)
        self.locks = RootLocks(pool, f"life {token} of {workflow}", new_nonce, self.bounds)
        self.transport = ShellTransport(
            pool.host,
            pool,
            bounds=self.bounds,
            isolation=isolation,
            fence=partial(self.locks.fence, root),
            spare=self.locks.spare,
            kept=kept,
        )

    @contextmanager
    def leading(self) -> Iterator[ShellTransport]:
        """Work for the workflow with its lease while the block lasts."""
        before = LEASE.set(self.lease)
        try:
            yield self.transport
        finally:
            LEASE.reset(before)

    async def hold(self) -> None:
        """Take the root."""
        with self.leading():
            await self.locks.hold(self.root)


@asynccontextmanager
async def leader_of(
    sshd: Sshd,
    root: str,
    token: int,
    *,
    workflow: str = WORKFLOW,
    bounds: Bounds | None = None,
    isolation: Isolation = Isolation.NONE,
    kept: int = KEPT,
) -> AsyncIterator[Leader]:
    """Have a daemon with connections of its own."""
    async with open_asyncio_thread() as thread:
        pool = ConnectionPool(sshd.host, sshd.settings, thread)
        try:
            yield Leader(
                pool, root, token, workflow=workflow, bounds=bounds, isolation=isolation, kept=kept
            )
        finally:
            await pool.aclose()
