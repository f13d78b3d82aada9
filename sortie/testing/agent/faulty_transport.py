"""A transport that fails on demand, around one that works."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import trio
import trio.abc
from msgspec import Struct, field

from sortie.model import HostError, HostTrouble, ProcessIdentity, TransportError
from sortie.transports import Command, Exit, Process, Transport

T = TypeVar("T")


class Faults(Struct, eq=False):
    """What fails, and is raised there. ``lost`` breaks the link to every process once it is set."""

    looking: TransportError | None = None
    resolving: TransportError | None = None
    starting: TransportError | None = None
    ending: TransportError | None = None
    lost: trio.Event = field(default_factory=trio.Event)


class FaultyTransport:
    """A transport as another one is, but for its faults."""

    def __init__(self, transport: Transport, faults: Faults) -> None:
        self._transport = transport
        self._faults = faults
        self.files = _FaultyFiles(transport.files, faults)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    async def resolve_program(self, name: str, path: str | None = None) -> str:
        """Fail, or ask the other one."""
        if self._faults.resolving is not None:
            await trio.lowlevel.checkpoint()
            raise self._faults.resolving
        return await self._transport.resolve_program(name, path)

    @asynccontextmanager
    async def process(self, command: Command) -> AsyncIterator[Process]:
        """Fail to start, to stay in touch or to end; see the port."""
        if self._faults.starting is not None:
            await trio.lowlevel.checkpoint()
            raise self._faults.starting
        async with self._transport.process(command) as process:
            yield _FaultyProcess(process, self._faults.lost)
        if self._faults.ending is not None:
            raise self._faults.ending


class _FaultyFiles:
    def __init__(self, files: Any, faults: Faults) -> None:
        self._files = files
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    async def contained(self, root: str, path: str) -> bool:
        if self._faults.looking is not None:
            await trio.lowlevel.checkpoint()
            raise self._faults.looking
        return bool(await self._files.contained(root, path))


class _FaultyProcess:
    """A process whose link can be lost."""

    def __init__(self, process: Process, lost: trio.Event) -> None:
        self._process = process
        self._lost = lost

    @property
    def identity(self) -> ProcessIdentity:
        return self._process.identity

    @property
    def stdin(self) -> trio.abc.SendStream | None:
        return self._process.stdin

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        chunks = self._process.output()
        while True:
            try:
                chunk = await self._unless_lost(chunks.__anext__)
            except StopAsyncIteration:
                return
            yield chunk

    async def wait(self) -> Exit:
        return await self._unless_lost(self._process.wait)

    async def end(self) -> Exit:
        return await self._process.end()

    async def _unless_lost(self, wait_for: Callable[[], Awaitable[T]]) -> T:
        """Wait for something. Raises HostError where the link is lost first."""
        scope, answer, error = trio.CancelScope(), list[T](), list[Exception]()

        async def wait() -> None:
            with scope:
                try:
                    answer.append(await wait_for())
                except Exception as exc:  # raised below, outside of the nursery
                    error.append(exc)
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await self._lost.wait()
            scope.cancel()
        if error:
            raise error[0]
        if not answer:
            raise link_lost()
        return answer[0]


def link_lost() -> HostError:
    """Return the error of a link that was lost while in use."""
    return HostError(HostTrouble.DROPPED, "the link to the host was lost (by the check)")
