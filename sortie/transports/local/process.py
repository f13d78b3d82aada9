"""A command under way: its output, its exit, and its certain end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import trio

from sortie.model import ProcessIdentity, TransportError
from sortie.transports import Exit
from sortie.transports.local.ending import Ending
from sortie.transports.local.observer import Observer
from sortie.transports.local.pipes import Chunk, Input, Output
from sortie.transports.local.process_tree import Family
from sortie.transports.local.root import Root

OBSERVE_EVERY = 2.0
"""Seconds between looks at who descends from whom, while the parents are there to show it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a process is served with while its block lasts."""

    nursery: trio.Nursery
    observer: Observer
    ending: Ending
    output: Output
    stdin: Input | None
    grace: float


class LocalProcess:
    """A root process and its family; made and left by ``LocalTransport.process``.

    Rule: ``end`` may be called by several tasks, be cancelled, and be called again.
    """

    def __init__(self, root: Root, family: Family, means: Means) -> None:
        self._root = root
        self._family = family
        self._means = means
        self._lock = trio.Lock()
        self._by_us = False
        self._forced = False
        self._over = False
        self._failure: str | None = None

    @property
    def identity(self) -> ProcessIdentity:
        """The root process."""
        return self._root.identity

    @property
    def stdin(self) -> Input | None:
        """The program's stdin where its command asks for a PIPE; see the port."""
        return self._means.stdin

    def output(self) -> AsyncIterator[Chunk]:
        """Yield chunks of stdout (1) and stderr (2); see the port."""
        return self._means.output.read(self._means.nursery)

    async def wait(self) -> Exit:
        """Wait until the root process has exited."""
        return replace(await self._root.exited(), by_us=self._by_us)

    async def end(self) -> Exit:
        """End the whole family for certain; raise TransportError naming the pids that stay."""
        async with self._lock:
            if not self._over:
                await self._end()
        if self._failure is not None:
            raise TransportError(self._failure)
        return await self.wait()

    async def watch(self) -> None:
        """End what the root leaves behind, as soon as it has exited."""
        while self._root.exit() is None:
            with trio.move_on_after(OBSERVE_EVERY):
                await self._root.exited()
                break
            await self._means.observer.glance(OBSERVE_EVERY)
        if self._means.stdin is not None:
            self._means.stdin.end()
        async with self._lock:
            if not self._over:
                await self._end()

    async def _end(self) -> None:
        """End the family once; a failure is kept for those who ask for the end."""
        if self._root.exit() is None:
            self._by_us = True
        self._family.ending = True
        ending, observer, grace = self._means.ending, self._means.observer, self._means.grace
        try:
            if await ending.end(grace, observer.census):
                self._forced = True
            if self._forced or self._by_us:
                await ending.end(grace, observer.sweep, observer.census)
        except TransportError as exc:
            self._failure = f"could not end process {self._root.pid} and what it started: {exc}"
        self._over = True
        self._means.output.end()
