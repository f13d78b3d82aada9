"""A session of an agent that speaks the Agent Client Protocol, over one process after another."""

from __future__ import annotations

from collections.abc import Callable

import trio

from sortie.agents import OnEvents
from sortie.agents.acp.memory import resident_mb
from sortie.agents.acp.opening import NotResumed, Opened, Opening, open_session, session_left
from sortie.agents.acp.process import AgentProcess
from sortie.agents.protocol_process import NotPrompted
from sortie.model import AgentError, TransportError, TurnOutcome, TurnResult
from sortie.model.texts import start_of
from sortie.model.turns import NOTIFICATION_LIMIT, AgentEvent, Notification, SessionKnown

MEMORY_INTERVAL = 30.0
"""Seconds from one look at the memory of a process to the next, which is after a turn."""


class AcpSession:
    """A session; see Session.

    Rule 1: one process at a time; its tree is gone before the next process starts. Rule 2: a
    process that has ended between two turns, or is too large, is replaced before the next turn,
    which resumes the conversation where the agent can. Rule 3: a session that was left starts no
    process.
    """

    def __init__(
        self, opening: Opening, nursery: trio.Nursery, process: Callable[[], AgentProcess]
    ) -> None:
        self.id = ""
        self._opening = opening
        self._nursery = nursery
        self._new_process = process
        self._process: AgentProcess | None = None
        self._is_running = False
        self._is_left = False
        self._agent = ""
        self._news: list[AgentEvent] = []
        self._looked_at = trio.current_time()
        self._can_look = opening.settings.memory_limit_mb > 0

    async def start(self) -> None:
        """Start the agent and have a session in it. Raises AgentError and TransportError."""
        resume = self._opening.params.resume_session_id
        await self._open(resume if self._opening.settings.resume else None)
        self._news = [event for event in self._news if not isinstance(event, SessionKnown)]

    async def run_turn(self, prompt: str, on_events: OnEvents) -> TurnResult:
        """Run one prompt, in a new process where the last one is no good any more."""
        if self._is_running:
            raise RuntimeError("a turn of this session is still running; turns are serial")
        if self._is_left:
            return session_left().result()
        self._is_running = True
        try:
            return await self._run_turn(prompt, on_events)
        except (AgentError, TransportError):
            if self._is_left:
                return session_left().result()
            raise
        finally:
            self._is_running = False

    async def leave(self) -> None:
        """End the process, and a turn that runs in it. Raises TransportError."""
        self._is_left = True
        if self._process is not None:
            await self._process.end(politely=not self._is_running)

    async def _run_turn(self, prompt: str, on_events: OnEvents) -> TurnResult:
        process = self._process
        if process is None or not process.is_usable:
            process = await self._replace("its process has ended", process)
        elif (size := await self._too_large(process)) is not None:
            process = await self._replace(f"its process took {size:.0f} MiB", process)
        try:
            return await self._turn_in(process, prompt, on_events)
        except NotPrompted:
            process = await self._replace("its process has ended", process)
            return await self._turn_in(process, prompt, on_events)

    async def _turn_in(self, process: AgentProcess, prompt: str, on_events: OnEvents) -> TurnResult:
        news, self._news = self._news, []
        try:
            failed = await process.turn(prompt, on_events, news)
        finally:
            if process.reader is not None:
                self._opening.conversations.spent(self.id, process.reader.usage.cost)
        return failed or TurnResult(outcome=TurnOutcome.COMPLETED)

    async def _replace(self, why: str, old: AgentProcess | None) -> AgentProcess:
        if old is not None:
            await old.end(politely=True)
        self._news.append(Notification(message=f"[session] the agent was started anew: {why}"))
        return await self._open(self.id or None)

    async def _open(self, resume: str | None) -> AgentProcess:
        process = self._begin()
        try:
            opened = await open_session(process, self._opening, resume)
        except NotResumed:
            await process.end(politely=False)
            process = self._begin()
            opened = await open_session(process, self._opening, None)
            self._tell_of_loss("the agent did not answer when it was to go on with it")
        self._take(opened)
        return process

    def _begin(self) -> AgentProcess:
        if self._is_left:
            failure = session_left()
            raise AgentError(failure.kind, failure.message)
        self._process = self._new_process()
        self._nursery.start_soon(self._process.live)
        self._looked_at = trio.current_time()
        return self._process

    def _take(self, opened: Opened) -> None:
        self._agent = opened.agent
        if opened.lost is not None:
            self._tell_of_loss(opened.lost)
        if opened.mode is not None:
            message = f"[mode] {opened.mode} was set: acp.permissions denies what it asks about"
            self._news.append(Notification(message=message[:500]))
        if opened.session_id != self.id:
            self.id = opened.session_id
            self._news.append(SessionKnown(session_id=self.id))

    def _tell_of_loss(self, why: str) -> None:
        message = f"[session] a new one begins, the earlier one cannot be gone on with: {why}"
        self._news.append(Notification(message=start_of(message, NOTIFICATION_LIMIT)))

    async def _too_large(self, process: AgentProcess) -> float | None:
        """Return how large the process has become, in MiB, where that is too large."""
        now, params = trio.current_time(), self._opening.params
        if not self._can_look or now - self._looked_at < MEMORY_INTERVAL:
            return None
        if self._opening.conversations.not_yet(self._agent, self.id) is not None:
            return None  # it would forget what was said; the next turn is soon enough
        self._looked_at = now
        size = await resident_mb(params.transport, process.pid, params.workspace, params.env)
        self._can_look = size is not None
        if size is None or size <= self._opening.settings.memory_limit_mb:
            return None
        return size
