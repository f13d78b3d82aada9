"""A daemon's stand-in that leads a workflow on a host, where it runs agents; see ``main``."""

import os
import sys
import uuid
from contextlib import suppress
from functools import partial

import trio

from sortie.config.settings import Isolation
from sortie.model import TransportError
from sortie.resources.lease import LEASE, Lease, LeaseLost, boot_time
from sortie.transports import Command
from sortie.transports.remote.launch import Bounds
from sortie.transports.remote.transport import ShellTransport, new_nonce
from sortie.transports.ssh.asyncio_thread import open_asyncio_thread
from sortie.transports.ssh.connection_pool import ConnectionPool
from sortie.transports.ssh.root_locks import RootLocks
from sortie.transports.ssh.settings import SshSettings

AGENT = (
    'exec 9>>"$0/agent.lock"; flock -n 9 || echo two >>"$0/verdict"; echo begun;'
    ' trap "" TERM; end=$(($(date +%s) + $1)); while [ $(date +%s) -lt $end ]; do sleep 0.05; done'
)
"""Runs for $1 seconds; complains where another agent works in the root, $0."""


def tell(line: str) -> None:
    os.write(1, f"{line}\n".encode())


async def main(*words: str) -> None:
    """Lead with a token, until the lease is lost; tell each step in a line."""
    host, config, known, key, root, token, reattach, isolation, seconds = words
    settings = SshSettings(
        config=config, known_hosts=known, identity_files=(key,), search_path=os.environ["PATH"]
    )
    LEASE.set(Lease("flow", int(token), f"alpha:{token}", boot_time() + 3600, scope="db/flow"))
    async with open_asyncio_thread() as thread:
        pool = ConnectionPool(host, settings, thread)
        bounds = Bounds(handshake=60.0, reattach=float(reattach))
        locks = RootLocks(pool, f"life of {token}", new_nonce, bounds)
        transport = ShellTransport(
            host,
            pool,
            bounds=bounds,
            isolation=Isolation(isolation),
            fence=partial(locks.fence, root),
        )
        try:
            await locks.hold(root)
            tell("leads")
            while True:
                await transport.files.write_file(root, "written", token.encode())
                env = {"PATH": os.environ["PATH"], "SORTIE_RUN_ID": str(uuid.uuid4())}
                argv = ("sh", "-c", AGENT, root, seconds)
                command = Command(argv=argv, cwd=root, env=env, grace=0.1)
                with suppress(TransportError):  # it was ended
                    async with transport.process(command) as process:
                        async for _, chunk in process.output():
                            os.write(1, chunk)
        except LeaseLost as exc:
            tell(f"lost: {exc}")


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:])
