"""Sessions whose every turn is a process of its own: what all such agents have in common.

An adapter says which command runs a turn, what the lines of output mean and what the exit status
means. Everything else is here: the launch, splitting and limiting lines, stderr, ending the process
and its tree, and the exits that mean the same for every agent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

import trio
from msgspec import Struct
from msgspec.structs import replace

from sortie.agents import OnEvents, Session, SessionParams
from sortie.agents.exits import Failure, exit_failure
from sortie.agents.output import AgentOutput, OutputReader
from sortie.lines import LineSplitter, RawLineSplitter
from sortie.model import ErrorKind, TransportError, TurnOutcome, TurnResult
from sortie.model.hiding import repr_without
from sortie.model.turns import Launched
from sortie.transports import Command, Exit, Process
from sortie.transports.exit_shortage import exit_shortage

FINISH_SLACK = 5.0
"""Seconds beyond the grace time in which the output must end once the process has exited."""


class TurnReader(OutputReader, Protocol):
    """What an adapter makes of the output and the exit of one turn."""

    def failure(self, status: int) -> Failure | None:
        """Return why the turn failed whose process exited with a status; None: it completed.

        Comes after ``close``. The statuses 127, 137 and 143 mean the same for every agent, and
        do not come here.
        """
        ...


class TurnCommand(Struct, frozen=True, kw_only=True):
    """How a turn is run; ``stdin`` as in Command, ``splitter`` makes the lines of its stdout.

    ``memo`` is what its adapter needs to read the turn anew, in another daemon.
    """

    argv: tuple[str, ...]
    stdin: bytes | None = None
    reader: TurnReader
    splitter: Callable[[], RawLineSplitter] = LineSplitter
    memo: str = ""

    __repr__ = repr_without("argv", "stdin")


@asynccontextmanager
async def turn_processes(
    agent: str,
    params: SessionParams,
    command: Callable[[str], TurnCommand],
    secrets: Collection[str] = (),
    adopt: Callable[[str], TurnCommand] | None = None,
) -> AsyncIterator[Session]:
    """Have a session in which each prompt is run by the process that ``command`` makes of it.

    ``agent`` is how messages call it; no value in ``secrets`` leaves here. ``adopt`` makes of a
    memo the command of the turn that it was noted for; without it, no turn can be adopted.
    """
    session = _TurnProcessSession(agent, params, command, secrets, adopt)
    try:
        yield session
    finally:
        await session.close()


class _TurnProcessSession:
    """Rule 1: at most one turn runs. Rule 2: a closed session starts no process."""

    def __init__(
        self,
        agent: str,
        params: SessionParams,
        command: Callable[[str], TurnCommand],
        secrets: Collection[str],
        adopt: Callable[[str], TurnCommand] | None,
    ) -> None:
        self._adopt, self._adopted = adopt, params.adopted
        self.id = params.resume_session_id or ""
        self._agent = agent
        self._params = params
        self._command = command
        self._secrets = secrets
        self._closed = False
        self._turn: _TurnProcess | None = None

    async def run_turn(self, prompt: str, on_events: OnEvents) -> TurnResult:
        """Run one prompt in a process of its own."""
        if self._turn is not None:
            raise RuntimeError("a turn of this session is still running; turns are serial")
        if self._closed:
            message = "the session was left before its turn began"
            return Failure(ErrorKind.TURN_CANCELLED, message).result()
        memo, self._adopted = self._adopted, None
        adopts = self._adopt is not None and memo is not None
        command = self._adopt(memo) if self._adopt and memo is not None else self._command(prompt)
        params = self._params if self._adopt else replace(self._params, start_turn=None)
        self._turn = _TurnProcess(self._agent, params, command, self._secrets, adopts)
        try:
            return await self._turn.run(on_events)
        finally:
            self._turn = None

    async def close(self) -> None:
        """End a running turn, which then returns ``turn_cancelled``, and allow no further one."""
        self._closed = True
        if self._turn is not None:
            await self._turn.stop()


class _TurnProcess:
    """One turn of one session.

    Rule 1: once the process has exited, neither a stop nor a cancellation changes the outcome.
    Reading the remaining output is shielded, and bounded by FINISH_SLACK and the transport.
    Rule 2: a stop or cancellation before the exit ends the process and its tree. Rule 3: a turn
    whose tree could not be ended has failed, because the next turn would run beside that tree.
    """

    def __init__(
        self,
        agent: str,
        params: SessionParams,
        command: TurnCommand,
        secrets: Collection[str],
        is_adopted: bool,
    ) -> None:
        self._is_adopted = is_adopted
        self._agent = agent
        self._params = params
        self._command = command
        self._output = AgentOutput(command.reader, secrets, command.splitter())
        self._scope = trio.CancelScope()
        self._exit: Exit | None = None
        self._lost: TransportError | None = None
        self._ended = trio.Event()

    async def run(self, on_events: OnEvents) -> TurnResult:
        """Run the process and return what became of the turn. Raises TransportError."""
        params, parent = self._params, self._params.traceparent()
        command = Command(
            argv=self._command.argv,
            cwd=params.workspace,
            env=params.env if parent is None else {**params.env, "TRACEPARENT": parent},
            stdin=self._command.stdin,
            grace=params.stop_grace,
        )
        try:
            with self._scope:
                async with self._started(command) as process:
                    on_events([Launched(process=process.identity, adopted=self._is_adopted)])
                    await self._follow(process, on_events)
        finally:
            self._ended.set()
        if self._lost is not None and self._exit is None:
            raise self._lost
        host, errors = params.transport.host, self._output.errors
        if shortage := exit_shortage(self._agent, host, self._exit, errors):
            raise shortage
        return self._result()

    def _started(self, command: Command) -> AbstractAsyncContextManager[Process]:
        if self._params.start_turn is None:
            return self._params.transport.process(command)
        return self._params.start_turn(command, self._command.memo)

    async def stop(self) -> None:
        """End the turn unless its process has exited, and wait until ``run`` is done."""
        self._scope.cancel()
        await self._ended.wait()

    async def _follow(self, process: Process, on_events: OnEvents) -> None:
        """Read the output and wait for the exit, at the same time."""
        reading = trio.CancelScope(shield=True)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._read, process, on_events, reading)
                try:
                    self._exit = await process.wait()
                    self._scope.shield = True
                    slack = self._params.stop_grace + FINISH_SLACK
                    reading.deadline = trio.current_time() + slack
                except TransportError as error:
                    self._lost = error
                finally:
                    if self._exit is None:
                        reading.cancel()
        finally:
            if rest := self._output.close():
                on_events(rest)

    async def _read(self, process: Process, on_events: OnEvents, reading: trio.CancelScope) -> None:
        with reading:
            try:
                async for source, chunk in process.output():
                    on_events(self._output.take(source, chunk))
                    if self._output.line_too_long:
                        self._scope.cancel()
            except TransportError as error:
                self._lost = error

    def _result(self) -> TurnResult:
        failure = exit_failure(self._agent, self._exit)
        if self._output.line_too_long:
            message = f"{self._agent} wrote a line of more than 10 MiB; the turn was ended"
            failure = Failure(ErrorKind.PORT_EXIT, message)
        elif failure is None:
            assert self._exit is not None
            assert self._exit.status is not None
            failure = self._command.reader.failure(self._exit.status)
        if failure is None:
            return TurnResult(outcome=TurnOutcome.COMPLETED)
        return failure.result(self._output.warnings)
