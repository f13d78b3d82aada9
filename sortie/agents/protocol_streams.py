"""The process of an agent that is spoken with over its stdin and stdout, for a whole session.

What is said is decided elsewhere. In here are the launch, the two streams, stderr, the end of the
process and its tree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import trio

from sortie.agents import OnEvents
from sortie.agents.exits import Failure, exit_failure
from sortie.agents.launch import AgentLaunch
from sortie.agents.output import ErrorOutput
from sortie.json_rpc.connection import AgentConnection
from sortie.model import AgentError, ErrorKind, ProcessIdentity, TransportError
from sortie.model.turns import AgentEvent
from sortie.transports import Process
from sortie.transports.exit_shortage import exit_shortage

POLITE_END = 2.5
"""Seconds that an idle agent is given to end by itself when its stdin ends."""

_END_PATIENCE = 5.0
"""Seconds that a process may run after it has closed its output."""


SESSION_LEFT = Failure(ErrorKind.TURN_CANCELLED, "the session was left")
"""How a turn ends whose session is left."""


C = TypeVar("C", bound=AgentConnection[Any])


class ProtocolStreams(Generic[C]):
    """A process of an agent, from its start to its end; ``live`` is run by a task of its own.

    Rule 1: one task reads all output, another one writes all input, and neither waits for the
    other. Rule 2: the end of the process, its host or the session releases every waiting task.
    """

    def __init__(self, launch: AgentLaunch, client: C) -> None:
        self.leaving_error: TransportError | None = None
        self.client = client
        self._launch = launch
        self._stderr = ErrorOutput(launch.redacted)
        # Unbounded: the reading task answers the agent, and must not wait until the agent reads.
        self._send, self._outgoing = trio.open_memory_channel[bytes](math.inf)
        self._identity: ProcessIdentity | None = None
        self._end: Failure | TransportError | None = None
        self._said = ""
        self._on_events: OnEvents | None = None
        self._news = trio.Event()
        self._leaving = trio.Event()
        self._is_polite = True
        self._unsent = 0
        self._has_answered = False
        self._silent = trio.Event()
        self._gone = trio.Event()

    @property
    def pid(self) -> int:
        """The pid of the root process, once it has been started."""
        assert self._identity is not None
        return self._identity.pid

    async def live(self) -> None:
        """Run the process until it ends or is to end; its whole tree is gone afterwards."""
        try:
            async with self._launch.transport.process(self._launch.command) as process:
                self._identity = process.identity
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._write, process)
                    nursery.start_soon(self._read, process)
                    await self._leaving.wait()
                    await self._end_politely(process)
                    nursery.cancel_scope.cancel()
        except TransportError as error:
            self.leaving_error = error
            self._over(error)
        finally:
            self._over(SESSION_LEFT)
            self._gone.set()

    async def end(self, *, politely: bool) -> None:
        """End the process, and wait until its tree is gone.

        Raises TransportError where part of the tree may be left.
        """
        self.leave(politely=politely)
        await self._gone.wait()
        if self.leaving_error is not None and self._identity is not None:
            raise self.leaving_error

    def leave(self, *, politely: bool) -> None:
        """Ask the process to end; ``end`` also waits."""
        self._is_polite = politely and self._on_events is None
        self._over(SESSION_LEFT)

    def in_its_words(self, message: str) -> str:
        """Return a message with the last thing that the agent wrote outside of the protocol."""
        said = (*self._stderr.warnings[-1:], self._said)[0]
        return f"{message}: {said}" if said and said not in message else message

    # For what speaks the protocol

    def _take(self, events: Sequence[Any]) -> bool:
        """Handle events of the protocol; return whether a line was too long."""
        raise NotImplementedError

    def _check_alive(self) -> None:
        """Raise AgentError or TransportError where the process has ended."""
        if self._end is not None:
            failure = self._failure()
            raise AgentError(failure.kind, self.in_its_words(failure.message))

    async def _wait_for_news(self) -> None:
        """Wait until the agent has written, or has ended."""
        await self._news.wait()

    def _wake(self) -> None:
        self._news.set()
        self._news = trio.Event()

    def _failure(self) -> Failure:
        """Return why nothing can go on. Raises TransportError where the host is to blame."""
        assert self._end is not None
        if isinstance(self._end, TransportError):
            raise self._end
        return self._end

    def _flush(self) -> None:
        if data := self.client.data_to_send():
            self._unsent += len(data)
            self._send.send_nowait(data)

    def _tell(self, events: Sequence[AgentEvent]) -> None:
        if self._on_events is not None:
            self._on_events(events)

    async def _kill(self) -> None:
        """End the process and its tree at once."""
        with trio.CancelScope(shield=True):  # bounded by the transport
            self.leave(politely=False)
            await self._gone.wait()

    # What goes on in the process

    def _over(self, end: Failure | TransportError) -> None:
        """Keep the first reason for the end, and wake every waiting task."""
        if self._end is None:
            self._end = end
        self._leaving.set()
        self._wake()

    async def _end_politely(self, process: Process) -> None:
        """Let an idle agent end by itself: it closes what it has open then."""
        if self._is_polite and process.stdin is not None:
            with trio.move_on_after(min(POLITE_END, self._launch.command.grace)):
                await process.stdin.aclose()
                await self._silent.wait()

    async def _write(self, process: Process) -> None:
        """Write as fast as the agent reads. The reading task notices the end of the process."""
        assert process.stdin is not None
        try:
            async for data in self._outgoing:
                await process.stdin.send_all(data)
                self._unsent -= len(data)
        except trio.ClosedResourceError:
            return
        except trio.BrokenResourceError:
            pass
        with trio.move_on_after(_END_PATIENCE):  # the exit status explains more than a broken pipe
            await self._silent.wait()
        self._over(self._broken("takes no more input"))

    async def _read(self, process: Process) -> None:
        try:
            self._over(await self._read_to_the_end(process))
        except TransportError as error:
            self._over(error)
        finally:
            self._silent.set()

    async def _read_to_the_end(self, process: Process) -> Failure | TransportError:
        async for source, chunk in process.output():
            if source != 1:
                self._tell(self._stderr.take(chunk))
                continue
            self._has_answered = True
            if self._take(self.client.feed(chunk)):
                return self._broken("wrote a line of more than 10 MiB and was ended")
        self._take(self.client.end())
        self._tell(self._stderr.close())
        with trio.move_on_after(_END_PATIENCE):
            end = await process.wait()
            host, errors = self._launch.transport.host, self._stderr.tail
            if shortage := exit_shortage(self._launch.agent, host, end, errors):
                return shortage
            failure = exit_failure(self._launch.agent, end)
            return failure or self._broken(f"exited with status {end.status}")
        return self._broken("closed its output and went on")

    def _broken(self, what: str) -> Failure:
        """Return the failure that the agent has done something, with its last words."""
        return Failure(ErrorKind.PORT_EXIT, self.in_its_words(f"{self._launch.agent} {what}"))
