"""Holds the workspace roots of a host, so that no other daemon works in them.

Rule 1: a root is held by a session of its own, and free again when that or its link ends, or when
the host hears nothing of us for the lease. Rule 2: one that was lost is taken again before its next
use; who has it meanwhile is named. Rule 3: a root is known by its real path, whatever it is called;
what this daemon holds on the host is never refused to it. Rule 4: with a lease a root is taken over
from an older leader of the same workflow, and all that this had started there is ended first.
Rule 5: a directory below a root that was held is held with that root. A lock of its own would be in
the way of the next leader, which takes the root over and knows of no other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import trio
from msgspec import Struct

from sortie.model import HostError, HostTrouble
from sortie.model.texts import start_of
from sortie.resources.lease import Lease, current_lease
from sortie.transports.rank import FIRST
from sortie.transports.remote.channel import Channel
from sortie.transports.remote.fence import LOST, LeaderFence, refused_leader
from sortie.transports.remote.filesystem import holding_script
from sortie.transports.remote.launch import HOST_REASON_LIMIT, Bounds, nonsense
from sortie.transports.remote.remote_script import RemoteScript
from sortie.transports.remote.shell import ANSWER_BOUND, Shell
from sortie.transports.ssh.connection_pool import ConnectionPool


class _Hold(Struct, frozen=True):
    """What holds a root: a session, by its name and its channel."""

    session: str
    channel: Channel


class RootLocks:
    """The roots that one daemon holds on one host.

    ``holder`` is what others are told of it; no other daemon may ever have the same. ``is_ours``
    tells whether a session of this name holds a root for this daemon, on whatever host. The
    programs of supervisors with ``spared`` ids go on where a root is taken over now.
    """

    def __init__(
        self,
        pool: ConnectionPool,
        holder: str,
        new_nonce: Callable[[], str],
        bounds: Bounds,
        is_ours: Callable[[str], bool] | None = None,
    ) -> None:
        self._host = pool.host
        self._holder = holder
        self._new_nonce = new_nonce
        self._shell = Shell(pool, new_nonce, bounds.handshake)
        self._bounds = bounds
        self._held: dict[str, _Hold] = {}  # by the real path
        self._is_ours = is_ours or self.has_session
        self._real: dict[str, str] = {}
        self._taking = trio.Lock()
        self.spared: Collection[str] = ()

    async def fence(self, root: str) -> LeaderFence | None:
        """Have a root for ourselves, as ``hold``, where the workflow has a lease; return what
        refuses older ones there, None without a lease."""
        lease = current_lease()
        if lease is None:
            return None
        await self._hold(root)
        return LeaderFence(root=self._real[root], lease=lease)

    def spare(self, ids: Collection[str]) -> None:
        """Let the programs of these supervisors go on where a root is taken over from now on."""
        self.spared = tuple(ids)

    async def hold(self, root: str) -> None:
        """Have a root for ourselves from now on, or the one that a directory lies in.

        Raises HostError: OCCUPIED where another daemon has it; LeaseLost where the lease of the
        workflow is over, or a newer leader has the root.
        """
        around = (
            known
            for known, real in self._real.items()
            if root.startswith((f"{known.rstrip('/')}/", f"{real.rstrip('/')}/"))
        )
        await self._hold(next(around, root))

    async def _hold(self, root: str) -> None:
        lease = current_lease()
        async with self._taking:
            if lease is not None:
                lease.require()
            held = self._held.get(self._real.get(root, ""))
            if held is None or held.channel.closed.is_set() or held.channel.lease is not lease:
                await self._take(root, lease)

    @property
    def holds_any(self) -> bool:
        """Whether any root is held."""
        return bool(self._held)

    def has_session(self, name: str) -> bool:
        """Whether a session of this name holds a root here."""
        return any(
            held.session == name and not held.channel.closed.is_set()
            for held in self._held.values()
        )

    async def aclose(self) -> None:
        """Give all of them back, and wait until they are."""
        held = tuple(self._held.values())
        self.release()
        for each in held:
            await each.channel.closed.wait()

    def release(self) -> None:
        """Give all of them back."""
        for held in self._held.values():
            held.channel.abort()
        self._held.clear()

    async def _take(self, root: str, lease: Lease | None) -> None:
        """Have the root held on a channel of its own."""
        nonce, session = self._new_nonce(), self._new_nonce()
        holder = self._holder if lease is None else f"{self._holder}, token {lease.token}"
        text = holding_script(nonce, root, holder, session, self._bounds.lease, lease, self.spared)
        script = await self._shell.begin("hold a workspace root", nonce, text, at_rank=FIRST)
        kept = False
        try:
            script.channel.lease = lease
            kept = self._is_new(root, *await self._answer(script), script.channel)
        finally:
            if not kept:
                script.channel.abort()
        if kept:
            script.channel.beat(self._bounds.beat)

    def _is_new(self, root: str, verdict: str, rest: str, channel: Channel) -> bool:
        """Note what the host said of a root; return whether this channel holds it now.

        Otherwise another session of this daemon does.
        """
        if verdict == LOST:
            raise refused_leader(self._host, verdict)
        if verdict == "no":
            raise self._occupied(root, start_of(rest, HOST_REASON_LIMIT))
        whose, _, where = rest.partition(" ")
        session, _, real = where.partition(" ")
        if verdict != "yes" or whose not in ("held", "ours"):
            raise channel.lost or nonsense(self._host)
        if whose == "ours" and not self._is_ours(session):
            raise self._occupied(root, "what held it for this daemon has not ended yet")
        self._real[root] = real
        if whose == "held":
            self._held[real] = _Hold(session, channel)
        return whose == "held"

    def _occupied(self, root: str, reason: str) -> HostError:
        message = f"could not use {root} on host {self._host}: {reason}"
        return HostError(HostTrouble.OCCUPIED, message)

    async def _answer(self, script: RemoteScript) -> tuple[str, str]:
        with trio.move_on_after(ANSWER_BOUND):
            verdict, rest, _ = await script.verdict()
            return verdict, rest
        raise HostError(
            HostTrouble.UNREACHABLE,
            f"could not hold a workspace root: host {self._host} did not answer in"
            f" {ANSWER_BOUND:g} s; look at its load and its file systems",
        )
