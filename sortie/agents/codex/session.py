"""A session of Codex, over one process after another."""

from __future__ import annotations

from collections.abc import Callable

import trio

from sortie.agents import OnEvents
from sortie.agents.codex.opening import ThreadOpening, open_thread
from sortie.agents.codex.process import CodexProcess
from sortie.agents.exits import Failure
from sortie.agents.protocol_process import NotPrompted
from sortie.model import AgentError, ErrorKind, TransportError, TurnOutcome, TurnResult
from sortie.model.texts import start_of
from sortie.model.turns import NOTIFICATION_LIMIT, AgentEvent, Notification, SessionKnown


class CodexSession:
    """A session; see Session.

    Rule 1: one process at a time; its tree is gone before the next process starts. Rule 2: a
    process that has ended between two turns is replaced before the next turn, which resumes the
    thread where there is one yet. Rule 3: a session that was left starts no process.
    """

    def __init__(
        self, opening: ThreadOpening, nursery: trio.Nursery, process: Callable[[], CodexProcess]
    ) -> None:
        self.id = ""
        self._opening = opening
        self._nursery = nursery
        self._new_process = process
        self._process: CodexProcess | None = None
        self._is_running = False
        self._is_left = False
        self._news: list[AgentEvent] = []

    async def start(self) -> None:
        """Start Codex and have a thread in it. Raises AgentError and TransportError."""
        resume = self._opening.params.resume_session_id
        await self._open(resume if self._opening.settings.resume else None)
        self._news = [event for event in self._news if not isinstance(event, SessionKnown)]

    async def run_turn(self, prompt: str, on_events: OnEvents) -> TurnResult:
        """Run one prompt, in a new process where the last one is no good any more."""
        if self._is_running:
            raise RuntimeError("a turn of this session is still running; turns are serial")
        if self._is_left:
            return _left().result()
        self._is_running = True
        try:
            return await self._run_turn(prompt, on_events)
        except (AgentError, TransportError):
            if self._is_left:
                return _left().result()
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
            process = await self._replace(process)
        try:
            return await self._turn_in(process, prompt, on_events)
        except NotPrompted:
            process = await self._replace(process)
            return await self._turn_in(process, prompt, on_events)

    async def _turn_in(self, process: CodexProcess, prompt: str, on_events: OnEvents) -> TurnResult:
        news, self._news = self._news, []
        failed = await process.turn(prompt, on_events, news)
        return failed or TurnResult(outcome=TurnOutcome.COMPLETED)

    async def _replace(self, old: CodexProcess | None) -> CodexProcess:
        if old is not None:
            await old.end(politely=True)
        self._tell("codex was started anew: its process has ended")
        return await self._open(self.id or None)

    async def _open(self, resume: str | None) -> CodexProcess:
        if self._is_left:
            failure = _left()
            raise AgentError(failure.kind, failure.message)
        process = self._process = self._new_process()
        self._nursery.start_soon(process.live)
        opened = await open_thread(process, self._opening, resume)
        if opened.lost is not None:
            self._tell(f"a new one begins, the earlier one cannot be gone on with: {opened.lost}")
        if opened.thread_id != self.id:
            self.id = opened.thread_id
            self._news.append(SessionKnown(session_id=self.id))
        return process

    def _tell(self, what: str) -> None:
        message = start_of(f"[session] {what}", NOTIFICATION_LIMIT)
        self._news.append(Notification(message=message))


def _left() -> Failure:
    """Return how a turn ends whose session is left."""
    return Failure(ErrorKind.TURN_CANCELLED, "the session was left")
