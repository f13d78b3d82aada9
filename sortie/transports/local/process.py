"""A command under way: its output, its exit, and its certain end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import trio
from msgspec.structs import replace

from sortie.model import ProcessIdentity, TransportError
from sortie.transports import Exit
from sortie.transports.local.child_process import ChildProcess
from sortie.transports.local.command_trees import CommandTree
from sortie.transports.local.pipes import Chunk, Input, Pipes
from sortie.transports.local.process_table import ProcessInfo
from sortie.transports.reaper import Reaper


class LocalProcess:
    """A root process and its tree; made and left by ``LocalTransport.process``.

    ``exited`` waits until the root has exited.

    Rule: ``end`` may be called by several tasks, be cancelled, and be called again.
    """

    def __init__(
        self,
        root: ChildProcess,
        tree: CommandTree,
        exited: Callable[[], Awaitable[object]],
        reaper: Reaper[ProcessInfo],
        pipes: Pipes,
    ) -> None:
        self._root = root
        self._tree = tree
        self._exited = exited
        self._reaper = reaper
        self._pipes = pipes
        self._ending = trio.Lock()
        self._by_us = False
        self._forced = False
        self._over = False

    @property
    def identity(self) -> ProcessIdentity:
        """The root process."""
        return self._root.identity

    @property
    def stdin(self) -> Input | None:
        """The program's stdin where its command asks for a PIPE; see the port."""
        return self._pipes.stdin

    def output(self) -> AsyncIterator[Chunk]:
        """Yield chunks of stdout (1) and stderr (2); see the port."""
        return self._pipes.output.read()

    async def wait(self) -> Exit:
        """Wait until the root process has exited."""
        return replace(await self._root.exited(), by_us=self._by_us)

    async def end(self) -> Exit:
        """End the whole tree for certain; raise TransportError naming the pids that stay."""
        await self._end_once()
        if self._reaper.left:
            pids = ", ".join(str(pid) for pid in sorted(self._reaper.left))
            raise TransportError(
                f"could not end process {self._root.pid} and what it started: these processes are"
                f" still there after SIGKILL: {pids}; look at them with ps (a state of D waits for"
                " a device or a network file system)"
            )
        return await self.wait()

    async def watch(self) -> None:
        """End what the root leaves behind, as soon as it has exited."""
        await self._exited()
        self._pipes.end_stdin()
        await self._end_once()

    async def _end_once(self) -> None:
        """End the tree, unless that was done; the reaper knows what is left."""
        if not self._over:
            async with self._ending:
                if not self._over:
                    await self._end()

    async def _end(self) -> None:
        if self._root.exit() is None:
            self._by_us = True
        self._tree.ending = True
        if await self._reaper.end(newcomers=False):
            self._forced = True
        if (self._forced or self._by_us) and not self._reaper.left:
            await self._reaper.end()
        self._over = True
        self._pipes.output.end()
