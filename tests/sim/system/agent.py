"""An agent's adapter whose turns are processes of the simulated machine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from random import Random

import trio

from sortie.agents import OnEvents, Session, SessionParams
from sortie.model import (
    AgentError,
    AgentEvent,
    ErrorKind,
    Launched,
    Notification,
    TransportError,
    TurnOutcome,
    TurnResult,
)
from sortie.transports import Command, Exit, Process
from tests.sim.system.plug import Plug

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


@dataclass(slots=True)
class _Sitting:
    params: SessionParams
    stopped: bool = False
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    ended: trio.Event = field(default_factory=trio.Event)
    busy: bool = False


class SimAgent:
    """An Agent; ``draw`` and ``moods`` decide how it fares."""

    def __init__(self, draw: Random, moods: Moods, plug: Plug) -> None:
        self._draw = draw
        self._moods = moods
        self._plug = plug

    def event_stream(self) -> AsyncIterator[AgentEvent] | None:
        """Return None: events come through ``on_event``."""
        return None

    async def start_session(self, params: SessionParams) -> Session:
        """Begin a session, or refuse it."""
        draw, moods = self._draw, self._moods
        refused, crashed = draw.random() < moods.refuses, draw.random() < moods.crashes
        kind = draw.choice(REFUSALS)
        await trio.sleep(draw.uniform(0, 1))
        if refused:
            timed_out = kind is ErrorKind.RESPONSE_TIMEOUT
            raise AgentError(kind, "the agent refuses", timed_out=timed_out)
        if crashed:
            raise LookupError("a bug of the adapter's")
        return Session("", _Sitting(params))

    async def run_turn(
        self, session: Session, prompt: str, on_event: OnEvents | None
    ) -> TurnResult:
        """Start a process, listen to it until it is gone and say how that went."""
        sitting = session.internal
        assert isinstance(sitting, _Sitting)
        assert on_event is not None
        crashes = self._draw.random() < self._moods.crashes
        sitting.scope, sitting.ended, sitting.busy = trio.CancelScope(), trio.Event(), True
        turn = _Turn(sitting, on_event, crashes)
        try:
            with sitting.scope:
                return await turn.run()
            return _cancelled("the session was stopped")
        except TransportError as exc:
            return TurnResult(
                outcome=TurnOutcome.FAILED, error_kind=ErrorKind.PORT_EXIT, message=str(exc)
            )
        finally:
            sitting.busy = False
            sitting.ended.set()

    async def stop_session(self, session: Session) -> None:
        """End the session, and its turn where one runs."""
        sitting = session.internal
        assert isinstance(sitting, _Sitting)
        clings = self._draw.random() < self._moods.clings
        sitting.stopped = True
        if sitting.busy:
            sitting.scope.cancel()
            await sitting.ended.wait()
        if clings:
            await self._plug.through(trio.sleep_forever)
        await trio.lowlevel.checkpoint()


class _Turn:
    """One turn; once the exit was seen, neither a stop nor a deadline changes the outcome."""

    def __init__(self, sitting: _Sitting, on_event: OnEvents, crashes: bool) -> None:
        self._sitting = sitting
        self._on_event: Callable[[list[AgentEvent]], None] = on_event
        self._crashes = crashes

    async def run(self) -> TurnResult:
        params = self._sitting.params
        command = Command(
            argv=("agent",), cwd=params.workspace, env=params.env, grace=params.stop_grace
        )
        with trio.CancelScope() as ending:
            async with params.transport.process(command) as process:
                exit_ = await self._follow(process)
                ending.shield = True
        return _result(exit_)

    async def _follow(self, process: Process) -> Exit:
        self._on_event([Launched(process=process.identity)])
        async for _, chunk in process.output():
            self._on_event([Notification(message=chunk.decode().strip())])
            if self._crashes:
                raise LookupError("a bug of the adapter's")
        return await process.wait()


def _result(exit_: Exit) -> TurnResult:
    if exit_.status == 0:
        return TurnResult(outcome=TurnOutcome.COMPLETED, credits=0.1)
    if exit_.status in (137, 143) or exit_.signal in (9, 15):
        return _cancelled("the agent was ended by somebody")
    kind = ErrorKind.PORT_EXIT if exit_.signal else ErrorKind.TURN_FAILED
    return TurnResult(outcome=TurnOutcome.FAILED, error_kind=kind, message=f"it ended: {exit_}")


def _cancelled(message: str) -> TurnResult:
    return TurnResult(
        outcome=TurnOutcome.CANCELLED, error_kind=ErrorKind.TURN_CANCELLED, message=message
    )
