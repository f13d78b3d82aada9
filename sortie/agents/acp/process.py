"""One process of an agent, and the Agent Client Protocol that is spoken with it."""

from __future__ import annotations

from collections.abc import Sequence

import trio

from sortie.acp.client import ClientConnection
from sortie.acp.events import ClientEvent, PermissionRequested
from sortie.agents import OnEvents
from sortie.agents.acp.reader import UpdateReader
from sortie.agents.launch import AgentLaunch
from sortie.agents.protocol_process import NotPrompted, ProtocolProcess
from sortie.json_rpc.connection import ConnectionState
from sortie.json_rpc.events import Initialized, RequestAnswered, RequestFailed, SessionOpened
from sortie.json_rpc.wire import Junk
from sortie.lines import LineTooLong
from sortie.model import AgentError, TurnResult
from sortie.model.texts import UNUSABLE
from sortie.model.turns import AgentEvent, Launched

_CREDITS_PATIENCE = 0.25
"""Seconds after the end of a turn in which Kiro may still report its credits."""

Reply = Initialized | SessionOpened | RequestAnswered | RequestFailed


class AgentProcess(ProtocolProcess):
    """A process of an agent that speaks ACP."""

    def __init__(self, launch: AgentLaunch) -> None:
        self.client = ClientConnection()
        super().__init__(launch, self.client)
        self.reader: UpdateReader | None = None
        self._reply: Reply | None = None

    @property
    def is_usable(self) -> bool:
        """Whether another turn can begin in it."""
        return self._end is None and self.client.state is ConnectionState.IDLE

    async def reply(self) -> Reply:
        """Send what is to be sent, and wait for the answer to it.

        Raises AgentError and TransportError where the process ends before that.
        """
        self._reply = None
        self._flush()
        while self._reply is None:
            self._check_alive()
            await self._wait_for_news()
        return self._reply

    async def turn(
        self, prompt: str, on_events: OnEvents, news: Sequence[AgentEvent]
    ) -> TurnResult | None:
        """Run one prompt and return how the turn failed, None where it is a good one.

        ``news`` is told first, behind the launch. Raises TransportError, and NotPrompted where
        the process had ended before it could take the prompt.
        """
        assert self.reader is not None
        assert self._identity is not None
        reader = self.reader
        if (refusal := reader.asking.refusal()) is not None:  # the agent has changed its mode since
            raise AgentError(refusal.kind, self._launch.redacted(refusal.message))
        reader.begin()
        self._on_events, self._has_answered = on_events, False
        try:
            on_events([Launched(process=self._identity)])
            if early := [*news, *reader.usage.credits()]:
                on_events(early)
            if not self.is_usable:
                raise NotPrompted
            self.client.prompt(UNUSABLE.sub("\ufffd", prompt), self._launch.traceparent())
            self._flush()
            while self._end is None and not reader.ends_turn:
                await self._wait_for_news()
            if not reader.is_cut_short:
                await self._turn_over(reader)  # for what follows its end
        finally:
            if reader.over is None and self._end is None:
                await self._cancel(reader)
            if rest := [*reader.end(), *reader.usage.credits()]:
                on_events(rest)
            self._on_events = None
        if reader.over is None and self._unsent > 0 and not self._has_answered:
            raise NotPrompted
        if reader.refusal is not None:
            return reader.refusal.result(self._stderr.warnings)
        failure = None  # where people are asked, that is what the run ends with
        if not reader.waits_for_people:
            failure = self._failure() if reader.over is None else reader.over.failure
        return None if failure is None else failure.result(self._stderr.warnings)

    async def _turn_over(self, reader: UpdateReader) -> None:
        while reader.over is None and self._end is None:
            await self._wait_for_news()
        if reader.is_kiro and not reader.usage.knows_credits:
            with trio.move_on_after(_CREDITS_PATIENCE):
                while not reader.usage.knows_credits and self._end is None:
                    await self._wait_for_news()

    async def _cancel(self, reader: UpdateReader) -> None:
        """Have the agent end a turn; where it does not in time, end the agent."""
        self.client.cancel()
        self._flush()
        with trio.move_on_after(self._launch.command.grace, shield=True):
            await self._turn_over(reader)
        if reader.over is None:
            await self._kill()

    def _take(self, events: Sequence[ClientEvent]) -> bool:
        told: list[AgentEvent] = []
        for event in events:
            match event:
                case LineTooLong():
                    return True
                case Junk():
                    self._said = self._launch.redacted(event.text)
                case PermissionRequested() if self.reader is not None:
                    answer, more = self.reader.permit(event)
                    self.client.answer_permission(event.id, answer.option_id)
                    told += more
                case Initialized() | SessionOpened() | RequestAnswered():
                    self._reply = event
                case RequestFailed(method=method) if method != "session/prompt":
                    self._reply = event
                case _ if self.reader is not None:
                    told += self.reader.take(event)
        self._flush()
        self._tell(told)
        self._wake()
        return False
