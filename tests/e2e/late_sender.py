"""A leader's stand-in on a machine of its own, which sends something when it is told to; run as
``python late_sender.py host HOST CONFIG KNOWN_HOSTS KEY FILE``, or as ``... cluster KUBECONFIG``.

It says ``ready`` when a link is there that has carried something, and ``sending`` before it sends.
"""

import os
import sys

import trio

from sortie.model import HostError
from sortie.resources.lease import LEASE, Lease, LeaseLost, boot_time
from sortie.scheduler.lease_times import AHEAD, UNTAKEN_LIMIT
from sortie.transports.kubernetes.cluster import Cluster, ClusterPlace
from sortie.transports.ssh.asyncio_thread import open_asyncio_thread
from sortie.transports.ssh.connection_pool import ConnectionPool
from sortie.transports.ssh.settings import SshSettings
from tests.transports.ssh.raw import running


async def told() -> None:
    """Wait for a line on stdin."""
    os.write(1, b"ready\n")
    await trio.to_thread.run_sync(sys.stdin.readline)
    os.write(1, b"sending\n")


async def to_host(*words: str) -> None:
    """Write to a file on a host."""
    host, config, known, key, file = words
    settings = SshSettings(
        config=config, known_hosts=known, identity_files=(key,), search_path=os.environ["PATH"]
    )
    async with open_asyncio_thread() as thread:
        pool = ConnectionPool(host, settings, thread)
        async with running(pool, f"echo up; exec cat >{file}") as channel:
            await channel.receive()
            await told()
            await channel.send(b"late\n")
            await trio.sleep_forever()


async def to_cluster(*words: str) -> None:
    """Delete a pod, over a connection that is there already, by a lease that is over before the
    request can be made once more: kr8s does so where the connection is lost."""
    cluster = Cluster(ClusterPlace(host="east", kubeconfig=words[0]))
    await cluster.request("list the pods", "GET", "pods")
    await told()
    LEASE.set(Lease("flow", 7, "alpha:7", boot_time() + UNTAKEN_LIMIT - 0.5 + AHEAD))
    try:
        await cluster.request("delete a pod", "DELETE", "pods/late")
    except (HostError, LeaseLost) as exc:
        os.write(1, f"could not delete a pod: {exc}\n".encode())
    await trio.sleep_forever()


if __name__ == "__main__":
    LEASE.set(Lease("flow", 7, "alpha:7", boot_time() + 3600))
    if sys.argv[1] == "host":
        trio.run(to_host, *sys.argv[2:])
    else:
        trio.run(to_cluster, *sys.argv[2:])
