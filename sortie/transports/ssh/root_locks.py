"""Holds the workspace roots of a host, so that no other daemon works in them.

Rule 1: a root is held by a session of its own, and free again when that or its link ends, or when
the host hears nothing of us for the lease. Rule 2: one that was lost is taken again before its next
use; who has it meanwhile is named. Rule 3: a root is known by its real path, whatever it is called;
what this daemon holds on the host is never refused to it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import trio

from sortie.model import HostError, HostTrouble
from sortie.model.texts import start_of
from sortie.transports.rank import FIRST
from sortie.transports.ssh.channel import Channel
from sortie.transports.ssh.connection_pool import ConnectionPool
from sortie.transports.ssh.conversation import Conversation
from sortie.transports.ssh.filesystem import holding_script
from sortie.transports.ssh.launch import Bounds, nonsense
from sortie.transports.ssh.login_limit import login_slot
from sortie.transports.ssh.scripts import SHELL
from sortie.transports.ssh.shell import ANSWER_BOUND, Shell

_SHOWN = 2000  # characters of a refusal


class RootLocks:
    """The roots that one daemon holds on one host.

    ``holder`` is what others are told of it; no other daemon may ever have the same.
    """

    def __init__(
        self,
        host: str,
        pool: ConnectionPool,
        holder: str,
        new_nonce: Callable[[], str],
        bounds: Bounds,
    ) -> None:
        self._host = host
        self._pool = pool
        self._holder = holder
        self._shell = Shell(host, pool, new_nonce, bounds.handshake)
        self._bounds = bounds
        self._held: dict[str, Channel] = {}  # by the real path
        self._real: dict[str, str] = {}
        self._taking = trio.Lock()

    async def hold(self, root: str) -> None:
        """Have a root for ourselves from now on.

        Raises HostError: OCCUPIED where another daemon has it.
        """
        async with self._taking:
            channel = self._held.get(self._real.get(root, ""))
            if channel is None or channel.ended:
                await self._take(root)

    def release(self) -> None:
        """Give all of them back."""
        for channel in self._held.values():
            channel.abort()
        self._held.clear()

    async def _take(self, root: str) -> None:
        while not await self._tried(root):
            pass

    async def _tried(self, root: str) -> bool:
        """Have the root held on a channel of its own; False where it is to be tried again."""
        write = partial(holding_script, root=root, holder=self._holder, lease=self._bounds.lease)
        async with login_slot(self._pool.login_limit, at_rank=FIRST) as start:
            channel = await self._pool.open(SHELL)
            kept = False
            try:
                conversation = await self._shell.begin(
                    "hold a workspace root", write, channel, start
                )
                if conversation is None:
                    return False
                kept = self._is_new(root, *await self._answer(conversation), channel)
            finally:
                if not kept:
                    channel.abort()
            if kept:
                channel.beat(self._bounds.beat)
        return True

    def _is_new(self, root: str, verdict: str, rest: str, channel: Channel) -> bool:
        """Note what the host said of a root; return whether this channel holds it now.

        Otherwise another session of this daemon does.
        """
        whose, _, real = rest.partition(" ")
        if verdict == "no":
            raise self._occupied(root, start_of(rest, _SHOWN))
        if verdict != "yes" or whose not in ("held", "ours"):
            raise channel.lost or nonsense(self._host)
        if whose == "ours" and (former := self._held.get(real)) is not None and former.ended:
            raise self._occupied(
                root, "what held it for this daemon was lost and has not ended yet"
            )
        self._real[root] = real
        if whose == "held":
            self._held[real] = channel
        return whose == "held"

    def _occupied(self, root: str, reason: str) -> HostError:
        message = f"could not use {root} on host {self._host}: {reason}"
        return HostError(HostTrouble.OCCUPIED, message)

    async def _answer(self, conversation: Conversation) -> tuple[str, str]:
        with trio.move_on_after(ANSWER_BOUND):
            verdict, rest, _ = await conversation.verdict()
            return verdict, rest
        raise HostError(
            HostTrouble.UNREACHABLE,
            f"could not hold a workspace root: host {self._host} did not answer in"
            f" {ANSWER_BOUND:g} s; look at its load and its file systems",
        )
