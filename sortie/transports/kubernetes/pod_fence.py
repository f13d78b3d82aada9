"""Makes the token of a workflow's leader known in a pod, which refuses older ones from then on."""

from __future__ import annotations

import trio

from sortie.resources.lease import Lease, current_lease
from sortie.transports.kubernetes.pod_link import PodLink
from sortie.transports.remote.fence import LeaderFence
from sortie.transports.remote.shell import Shell, ShellQuestion
from sortie.transports.remote.transport import new_nonce


class PodFence:
    """The tokens that one pod knows, in its volume at ``root``.

    What an older leader has in a pod is ended with the pod, and needs no notes.
    """

    def __init__(self, link: PodLink, root: str, handshake: float) -> None:
        self._shell = Shell(link, new_nonce, handshake)
        self._root = root
        self._known: Lease | None = None
        self._telling = trio.Lock()

    async def find(self) -> LeaderFence | None:
        """Return the fence of the pod, which knows our token then; None without a lease.

        Raises LeaseLost where the lease is over or the pod knows a newer token, and HostError.
        """
        lease = current_lease()
        if lease is None:
            return None
        lease.require()
        fence = LeaderFence(root=self._root, lease=lease, notes=False)
        async with self._telling:
            if self._known is not lease:
                attempt = "make the token of the leader known"
                await self._shell.ask(ShellQuestion(attempt=attempt, body=fence.announcement()))
                self._known = lease
        return fence
