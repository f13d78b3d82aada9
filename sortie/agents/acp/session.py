"""A session of an agent that speaks the Agent Client Protocol."""

from __future__ import annotations

from collections.abc import Callable

import trio

from sortie.agents import OnEvents
from sortie.agents.acp.conversations import WHY_IT_WAITS
from sortie.agents.acp.memory import resident_mb
from sortie.agents.acp.opening import Opening, open_session
from sortie.agents.acp.process import AgentProcess
from sortie.agents.protocol_session import Opened, ProtocolSession
from sortie.model import TurnResult

MEMORY_INTERVAL = 30.0
"""Seconds from one look at the memory of a process to the next, which is after a turn."""


class AcpSession(ProtocolSession[AgentProcess]):
    """A session; a process that has become too large is worn."""

    def __init__(
        self, opening: Opening, nursery: trio.Nursery, new_process: Callable[[], AgentProcess]
    ) -> None:
        resume = opening.params.resume_session_id if opening.settings.resume else None
        super().__init__(resume, nursery, new_process)
        self._opening = opening
        self._looked_at = trio.current_time()
        self._can_look = opening.settings.memory_limit_mb > 0

    async def _open_in(self, process: AgentProcess, resume: str | None) -> Opened:
        self._looked_at = trio.current_time()
        return await open_session(process, self._opening, resume, self._wait_to_resume)

    async def _wait_to_resume(self, seconds: float) -> None:
        self._opening.params.on_wait(seconds, WHY_IT_WAITS)
        await self._wait(seconds)

    async def _turn_in(self, process: AgentProcess, prompt: str, on_events: OnEvents) -> TurnResult:
        try:
            return await super()._turn_in(process, prompt, on_events)
        finally:
            if process.reader is not None:
                self._opening.conversations.spent(self.id, process.reader.usage.cost)

    async def _worn(self, process: AgentProcess) -> str | None:
        now, params = trio.current_time(), self._opening.params
        if not self._can_look or now - self._looked_at < MEMORY_INTERVAL:
            return None
        agent = "" if process.reader is None else process.reader.agent
        if self._opening.conversations.wait_before(agent, self.id):
            return None  # the next turn is soon enough
        self._looked_at = now
        size = await resident_mb(params.transport, process.pid, params.workspace, params.env)
        self._can_look = size is not None
        if size is None or size <= self._opening.settings.memory_limit_mb:
            return None
        return f"its process took {size:.0f} MiB"
