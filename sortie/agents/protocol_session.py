"""A session of an agent that is spoken with over stdin and stdout, over one process after another.

An adapter says how a session is opened in a process, and when a process is too worn for another
turn. Everything else is here: the turns, the second try, the loss of a session, the end.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

import trio
from msgspec import Struct

from sortie.agents import OnEvents
from sortie.agents.protocol_process import NotPrompted, ProtocolProcess
from sortie.agents.protocol_streams import SESSION_LEFT
from sortie.model import AgentError, ErrorKind, TransportError, TurnOutcome, TurnResult
from sortie.model.texts import start_of
from sortie.model.turns import NOTIFICATION_LIMIT, AgentEvent, Notification, SessionKnown

_ID_LIMIT = 200
SIGN_INTERVAL = 0.5
"""Seconds from one sign of life to the next while a session waits in a turn."""

P = TypeVar("P", bound=ProtocolProcess[Any])


class Opened(Struct, frozen=True, kw_only=True):
    """A session in a process; ``lost`` says why it does not go on with the one it should.

    ``told`` is a further line about it for the transcript.
    """

    session_id: str
    lost: str | None = None
    told: str | None = None


class NotResumed(Exception):
    """An agent has not answered whether a session can be gone on with; its process is lost."""


class ProtocolSession(Generic[P]):
    """A session; see Session.

    Rule 1: one process at a time; its tree is gone before the next process starts. Rule 2: a
    process that has ended between two turns, or is worn, is replaced before the next turn, which
    resumes the conversation where the agent can. Rule 3: a session that was left starts no process.
    """

    def __init__(
        self, resume: str | None, nursery: trio.Nursery, new_process: Callable[[], P]
    ) -> None:
        self.id = ""
        self._resume = resume
        self._nursery = nursery
        self._new_process = new_process
        self._process: P | None = None
        self._is_running = False
        self._hears: OnEvents | None = None
        self._is_left = False
        self._news: list[AgentEvent] = []

    # For adapters

    async def _open_in(self, process: P, resume: str | None) -> Opened:
        """Have a session in a process that has just started, ``resume`` where that is possible.

        Raises AgentError and TransportError, and NotResumed where the agent does not answer to
        ``resume``: then another process is needed.
        """
        raise NotImplementedError

    async def _worn(self, process: P) -> str | None:  # noqa: ARG002
        """Return why a process takes no further turn, None where it does."""
        return None

    async def _wait(self, seconds: float) -> None:
        """Wait in a way that does not count as silence of the agent's where a turn runs."""
        until = trio.current_time() + seconds
        while (left := until - trio.current_time()) > 0:
            if self._hears is not None:
                self._hears([])
            await trio.sleep(min(left, SIGN_INTERVAL))

    # For all

    async def start(self) -> None:
        """Start the agent and have a session in it. Raises AgentError and TransportError."""
        await self._open(self._resume)
        self._news = [event for event in self._news if not isinstance(event, SessionKnown)]

    async def run_turn(self, prompt: str, on_events: OnEvents) -> TurnResult:
        """Run one prompt, in a new process where the last one is no good any more."""
        if self._is_running:
            raise RuntimeError("a turn of this session is still running; turns are serial")
        if self._is_left:
            return SESSION_LEFT.result()
        self._is_running, self._hears = True, on_events
        try:
            return await self._run_turn(prompt, on_events)
        except (AgentError, TransportError):
            if self._is_left:
                return SESSION_LEFT.result()
            raise
        finally:
            self._is_running, self._hears = False, None

    async def leave(self) -> None:
        """End the process, and a turn that runs in it. Raises TransportError."""
        self._is_left = True
        if self._process is not None:
            await self._process.end(politely=not self._is_running)

    async def _run_turn(self, prompt: str, on_events: OnEvents) -> TurnResult:
        process = self._process
        if process is None or not process.is_usable:
            process = await self._replace("its process has ended", process)
        elif (why := await self._worn(process)) is not None:
            process = await self._replace(why, process)
        try:
            return await self._turn_in(process, prompt, on_events)
        except NotPrompted:
            process = await self._replace("its process has ended", process)
            return await self._turn_in(process, prompt, on_events)

    async def _turn_in(self, process: P, prompt: str, on_events: OnEvents) -> TurnResult:
        news, self._news = self._news, []
        failed = await process.turn(prompt, on_events, news)
        return failed or TurnResult(outcome=TurnOutcome.COMPLETED)

    async def _replace(self, why: str, old: P | None) -> P:
        if old is not None:
            await old.end(politely=True)
        self._tell(f"[session] the agent was started anew: {why}")
        return await self._open(self.id or None)

    async def _open(self, resume: str | None) -> P:
        process = self._begin()
        try:
            opened = await self._open_in(process, resume)
        except NotResumed:
            await process.end(politely=False)
            process = self._begin()
            opened = await self._open_in(process, None)
            self._tell_of_loss("the agent did not answer when it was to go on with it")
        if len(opened.session_id) > _ID_LIMIT or not opened.session_id.isprintable():
            message = "the agent's session has an id that cannot be kept"
            raise AgentError(ErrorKind.RESPONSE_ERROR, message)
        if opened.lost is not None:
            self._tell_of_loss(opened.lost)
        if opened.told is not None:
            self._tell(opened.told)
        if opened.session_id != self.id:
            self.id = opened.session_id
            self._news.append(SessionKnown(session_id=self.id))
        return process

    def _begin(self) -> P:
        if self._is_left:
            raise AgentError(SESSION_LEFT.kind, SESSION_LEFT.message)
        self._process = self._new_process()
        self._nursery.start_soon(self._process.live)
        return self._process

    def _tell_of_loss(self, why: str) -> None:
        self._tell(f"[session] a new one begins, the earlier one cannot be gone on with: {why}")

    def _tell(self, message: str) -> None:
        self._news.append(Notification(message=start_of(message, NOTIFICATION_LIMIT)))


S = TypeVar("S", bound=ProtocolSession[Any])


@asynccontextmanager
async def started(session_in: Callable[[trio.Nursery], S]) -> AsyncIterator[S]:
    """Start the session that ``session_in`` makes with a nursery; leave it with the block.

    Entering raises AgentError and TransportError.
    """
    async with trio.open_nursery() as nursery:
        session = session_in(nursery)
        try:
            await session.start()
            yield session
        finally:
            with trio.CancelScope(shield=True):  # bounded by the transport
                await session.leave()
