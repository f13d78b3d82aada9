"""Run one Kiro process from launch to outcome."""

from __future__ import annotations

import trio

from sortie.agents import OnEvents
from sortie.kiro.outcome import turn_result
from sortie.kiro.transcript import Transcript
from sortie.model import (
    ErrorKind,
    HostError,
    Launched,
    ProgramNotFound,
    TransportError,
    TurnOutcome,
    TurnResult,
)
from sortie.resources import shortage_behind
from sortie.transports import Command, Exit, Process, Transport

FINISH_SLACK = 5.0
"""Seconds beyond the grace time in which the output must end once the process has exited."""


class Turn:
    """One turn of one session.

    Rule 1: once the process's exit was seen, neither a stop nor a cancellation changes the outcome;
    what is left to do is shielded, and bounded by FINISH_SLACK and the transport. Rule 2: before
    that, both end the process and its tree first. Rule 3: a turn whose tree could not be ended has
    failed, since another one would run beside it.
    """

    def __init__(self, transport: Transport, command: Command, transcript: Transcript) -> None:
        self._transport = transport
        self._command = command
        self._transcript = transcript
        self._scope = trio.CancelScope()
        self._exit: Exit | None = None
        self._lost: TransportError | None = None
        self._ended = trio.Event()

    async def run(self, on_event: OnEvents) -> TurnResult:
        """Run the process and return what became of the turn."""
        try:
            with self._scope:
                async with self._transport.process(self._command) as process:
                    on_event([Launched(process=process.identity)])
                    await self._follow(process, on_event)
        except ProgramNotFound as error:
            return self._failed(ErrorKind.AGENT_NOT_FOUND, f"kiro could not be started: {error}")
        except TransportError as error:
            message = f"kiro could not be run or ended: {error}"
            return self._failed(ErrorKind.PORT_EXIT, message, error)
        finally:
            self._ended.set()
        if self._lost and self._exit is None:
            message = f"kiro's process was lost: {self._lost}"
            return self._failed(ErrorKind.PORT_EXIT, message, self._lost)
        return turn_result(self._exit, self._transcript.evidence())

    async def stop(self) -> None:
        """End the turn unless its process has exited, and wait until ``run`` is done."""
        self._scope.cancel()
        await self._ended.wait()

    async def _follow(self, process: Process, on_event: OnEvents) -> None:
        """Read the output and wait for the exit, at the same time."""
        reading = trio.CancelScope(shield=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read, process, on_event, reading)
            try:
                self._exit = await process.wait()
                self._scope.shield = True
                reading.deadline = trio.current_time() + self._command.grace + FINISH_SLACK
            except TransportError as error:
                self._lost = error
            finally:
                if self._exit is None:
                    reading.cancel()
        if rest := self._transcript.close():
            on_event(rest)

    async def _read(self, process: Process, on_event: OnEvents, reading: trio.CancelScope) -> None:
        with reading:
            try:
                async for source, chunk in process.output():
                    if source == 1:
                        on_event(self._transcript.stdout(chunk))
                    else:
                        self._transcript.stderr(chunk)
                        on_event([])
                    if self._transcript.line_too_long:
                        self._scope.cancel()
            except TransportError as error:
                self._lost = error

    def _failed(
        self, kind: ErrorKind, message: str, error: TransportError | None = None
    ) -> TurnResult:
        evidence = self._transcript.evidence()
        return TurnResult(
            outcome=TurnOutcome.FAILED,
            error_kind=kind,
            message=message,
            credits=evidence.trailer.credits if evidence.trailer else None,
            warnings=evidence.warnings,
            trouble=error.trouble if isinstance(error, HostError) else None,
            shortage=error is not None and shortage_behind(error) is not None,
        )
