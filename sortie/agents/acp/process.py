"""One process of an agent, and the Agent Client Protocol that is spoken with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import trio

from sortie.acp.client import ClientConnection
from sortie.acp.events import ClientEvent, PermissionRequested
from sortie.agents.acp.reader import UpdateReader
from sortie.agents.exits import Failure
from sortie.agents.launch import AgentLaunch
from sortie.agents.protocol_process import ProtocolProcess
from sortie.agents.protocol_reader import ProtocolReader
from sortie.model import AgentError
from sortie.model.turns import AgentEvent

_CREDITS_PATIENCE = 0.25
"""Seconds after the end of a turn in which Kiro may still report its credits."""


class AgentProcess(ProtocolProcess[ClientConnection]):
    """A process of an agent that speaks ACP; its reader is there when it was greeted."""

    def __init__(self, launch: AgentLaunch) -> None:
        super().__init__(launch, ClientConnection())
        self.reader: UpdateReader | None = None

    def _begin_turn(self) -> UpdateReader:
        assert self.reader is not None
        if (refusal := self.reader.asking.refusal()) is not None:  # its mode has changed since
            raise AgentError(refusal.kind, self._launch.redacted(refusal.message))
        self.reader.begin()
        return self.reader

    def _told_before(self) -> Sequence[AgentEvent]:
        assert self.reader is not None
        return self.reader.usage.credits()

    def _prompt(self, text: str) -> None:
        self.client.prompt(text, self._launch.traceparent())

    async def _under_way(self, reader: ProtocolReader[Any]) -> None:
        await super()._under_way(reader)
        if not reader.is_cut_short:
            await self._turn_over(reader)  # for what follows its end

    async def _turn_over(self, reader: ProtocolReader[Any]) -> None:
        assert self.reader is not None
        await super()._turn_over(reader)
        if self.reader.is_kiro:
            with trio.move_on_after(_CREDITS_PATIENCE):
                while not self.reader.usage.knows_credits and self._end is None:
                    await self._wait_for_news()

    def _turn_failure(self, reader: ProtocolReader[Any]) -> Failure | None:
        assert self.reader is not None
        if self.reader.refusal is not None:
            return self.reader.refusal
        return super()._turn_failure(reader)

    def _read_event(self, event: ClientEvent) -> list[AgentEvent]:
        if self.reader is None:
            return []
        if isinstance(event, PermissionRequested):
            answer, told = self.reader.permit(event)
            self.client.answer_permission(event.id, answer.option_id)
            return told
        return self.reader.take(event)
