"""A wrapper: any program that starts another inside a wall of its own making."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import trio
from msgspec.structs import replace

from sortie.transports import Command, Process, Transport
from sortie.transports.walls import SandboxedTransport


class WrapperTransport(SandboxedTransport):
    """A host whose programs are started by another one, which gets their argv behind its own.

    What that wall holds back is the wrapper's affair, and so is to pass SIGTERM on.
    """

    def __init__(self, outside: Transport, wrapper: tuple[str, ...]) -> None:
        super().__init__(outside)
        self._wrapper = wrapper

    def process(self, command: Command) -> AbstractAsyncContextManager[Process]:
        """Start a program by the wrapper; see the port."""
        return self.outside.process(replace(command, argv=(*self._wrapper, *command.argv)))

    async def check(self) -> None:
        """Look for the wrapper. Raises ProgramNotFound."""
        await trio.lowlevel.checkpoint()
        await self.outside.resolve_program(self._wrapper[0])
