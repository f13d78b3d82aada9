"""An agent's adapter whose turns are processes of the simulated machine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random

import trio

from sortie.agents import OnEvents, SessionParams
from sortie.model import AgentError, ErrorKind, TurnOutcome, TurnResult
from sortie.model.turns import (
    AgentEvent,
    Launched,
    Notification,
    PermissionAsked,
    SessionKnown,
    ToolEnded,
    ToolStarted,
    Usage,
)
from sortie.transports import Command, Exit, Process
from tests.sim.system.plug import Plug

TOOL = (
    PermissionAsked(question="may I?", answer="yes"),
    ToolStarted(id="1", name="shell"),
    ToolEnded(id="1"),
)
REFUSALS = (
    ErrorKind.AGENT_NOT_FOUND,
    ErrorKind.INVALID_WORKSPACE_CWD,
    ErrorKind.RESPONSE_ERROR,
    ErrorKind.RESPONSE_TIMEOUT,
)


@dataclass(slots=True)
class Moods:
    """How the adapter fares; each is a chance from 0 to 1, for any one call.

    ``refuses`` a session, ``crashes`` with what no adapter may raise, ``clings`` to a session
    that is to be stopped.
    """

    refuses: float = 0.0
    crashes: float = 0.0
    clings: float = 0.0


class SimAgent:
    """An Agent; ``draw`` and ``moods`` decide how it fares."""

    def __init__(self, draw: Random, moods: Moods, plug: Plug) -> None:
        self._draw = draw
        self._moods = moods
        self._plug = plug

    @asynccontextmanager
    async def session(self, params: SessionParams) -> AsyncIterator[SimSession]:
        """Have a session, or refuse it."""
        await self._begin()
        try:
            yield SimSession(params, self._draw, self._moods)
        finally:
            if self._draw.random() < self._moods.clings:
                await self._plug.through(trio.sleep_forever)
            await trio.lowlevel.checkpoint()

    async def _begin(self) -> None:
        draw, moods = self._draw, self._moods
        refused, crashed = draw.random() < moods.refuses, draw.random() < moods.crashes
        kind = draw.choice(REFUSALS)
        await trio.sleep(draw.uniform(0, 1))
        if refused:
            timed_out = kind is ErrorKind.RESPONSE_TIMEOUT
            raise AgentError(kind, "the agent refuses", timed_out=timed_out)
        if crashed:
            raise LookupError("a bug of the adapter's")


class SimSession:
    """A session; see Session."""

    id = ""

    def __init__(self, params: SessionParams, draw: Random, moods: Moods) -> None:
        self._params = params
        self._draw = draw
        self._moods = moods

    async def run_turn(self, prompt: str, on_events: OnEvents) -> TurnResult:
        """Start a process, listen to it until it is gone and say how that went."""
        crashes = self._draw.random() < self._moods.crashes
        return await _Turn(self._params, on_events, crashes).run()


class _Turn:
    """One turn; once the exit was seen, neither a stop nor a deadline changes the outcome."""

    def __init__(self, params: SessionParams, on_event: OnEvents, crashes: bool) -> None:
        self._params = params
        self._on_event: Callable[[list[AgentEvent]], None] = on_event
        self._crashes = crashes

    async def run(self) -> TurnResult:
        params = self._params
        command = Command(
            argv=("agent",), cwd=params.workspace, env=params.env, grace=params.stop_grace
        )
        with trio.CancelScope() as ending:
            async with params.transport.process(command) as process:
                exit_ = await self._follow(process)
                ending.shield = True
        return _result(exit_)

    async def _follow(self, process: Process) -> Exit:
        known = SessionKnown(session_id=f"of {self._params.run_id}")
        self._on_event([Launched(process=process.identity), known])
        async for _, chunk in process.output():
            self._on_event([Notification(message=chunk.decode().strip()), *TOOL])
            if self._crashes:
                raise LookupError("a bug of the adapter's")
        exit_ = await process.wait()
        if exit_.status == 0:
            self._on_event([Usage(credits=0.1)])
        return exit_


def _result(exit_: Exit) -> TurnResult:
    if exit_.status == 0:
        return TurnResult(outcome=TurnOutcome.COMPLETED)
    if exit_.status in (137, 143) or exit_.signal in (9, 15):
        return _cancelled("the agent was ended by somebody")
    kind = ErrorKind.PORT_EXIT if exit_.signal else ErrorKind.TURN_FAILED
    return TurnResult(outcome=TurnOutcome.FAILED, error_kind=kind, message=f"it ended: {exit_}")


def _cancelled(message: str) -> TurnResult:
    return TurnResult(
        outcome=TurnOutcome.CANCELLED, error_kind=ErrorKind.TURN_CANCELLED, message=message
    )
