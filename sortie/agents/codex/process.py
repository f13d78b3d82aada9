"""One process of ``codex app-server``, and the protocol that is spoken with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sortie.agents.codex.reader import CodexReader
from sortie.agents.launch import AgentLaunch
from sortie.agents.protocol_process import ProtocolProcess
from sortie.agents.protocol_reader import ProtocolReader
from sortie.codex.client import CodexConnection
from sortie.codex.events import ApprovalAsked, CodexEvent
from sortie.model.turns import AgentEvent


class CodexProcess(ProtocolProcess[CodexConnection]):
    """A process of Codex. One whose turn was interrupted is not used again: commands that the turn
    had begun go on in it."""

    may_lose_prompts = True

    def __init__(
        self, launch: AgentLaunch, reader: CodexReader, sandbox: Mapping[str, Any]
    ) -> None:
        super().__init__(launch, CodexConnection())
        self.reader = reader
        self._sandbox = sandbox
        self._before: list[AgentEvent] = []

    def _begin_turn(self) -> CodexReader:
        self.reader.begin()
        return self.reader

    def _told_before(self) -> Sequence[AgentEvent]:
        told, self._before = self._before, []
        return told

    def _prompt(self, text: str) -> None:
        self.client.start_turn(text, self._sandbox)

    async def _cancel(self, reader: ProtocolReader[Any]) -> None:
        """Have Codex end a turn, so that it notes that, and then end the process."""
        await super()._cancel(reader)
        await self._kill()

    def _read_event(self, event: CodexEvent) -> list[AgentEvent]:
        if isinstance(event, ApprovalAsked):
            answer, told = self.reader.approve(event)
            self.client.answer(event.id, answer)
        else:
            told = self.reader.take(event)
        if self._on_events is None:
            self._before += told  # warnings of the start: the first turn tells them
        return told
