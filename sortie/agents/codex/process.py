"""One process of ``codex app-server``, and the protocol that is spoken with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import trio

from sortie.agents import OnEvents
from sortie.agents.codex.reader import CodexReader
from sortie.agents.launch import AgentLaunch
from sortie.agents.protocol_process import NotPrompted, ProtocolProcess
from sortie.codex.client import CodexConnection
from sortie.codex.events import ApprovalAsked, CodexEvent, ServerTold, TurnFinished
from sortie.json_rpc.connection import ConnectionState
from sortie.json_rpc.events import (
    Initialized,
    RequestAnswered,
    RequestDeclined,
    RequestFailed,
    SessionOpened,
)
from sortie.json_rpc.wire import Junk
from sortie.lines import LineTooLong
from sortie.model import TurnResult
from sortie.model.texts import UNUSABLE
from sortie.model.turns import AgentEvent, Launched

CodexReply = Initialized | RequestAnswered | SessionOpened | RequestFailed


class CodexProcess(ProtocolProcess):
    """A process of Codex. One whose turn was interrupted is not used again: commands that the turn
    had begun go on in it."""

    def __init__(
        self, launch: AgentLaunch, reader: CodexReader, sandbox: Mapping[str, Any]
    ) -> None:
        self.client = CodexConnection()
        super().__init__(launch, self.client)
        self.reader = reader
        self._sandbox = sandbox
        self._reply: CodexReply | None = None
        self._before: list[AgentEvent] = []
        self._had_turn = False

    @property
    def is_usable(self) -> bool:
        """Whether another turn can begin in it."""
        return self._end is None and self.client.state is ConnectionState.IDLE

    async def request(self, begin: Callable[[], None]) -> CodexReply:
        """Send the request that ``begin`` makes, and wait for the answer to it.

        Raises AgentError and TransportError where the process ends before that.
        """
        self._reply = None
        if self.client.state is not ConnectionState.DEAD:
            begin()
        self._flush()
        while self._reply is None:
            self._check_alive()
            await self._wait_for_news()
        return self._reply

    async def turn(
        self, prompt: str, on_events: OnEvents, news: Sequence[AgentEvent]
    ) -> TurnResult | None:
        """Run one prompt and return how the turn failed, None where it is a good one.

        ``news`` is told first, behind the launch. Raises TransportError, and NotPrompted where the
        process had ended before it could take the prompt: then it was not written, or, as what is
        between may take it from us, nothing was heard of a process that was idle before.
        """
        assert self._identity is not None
        reader = self.reader
        reader.begin()
        was_idle, self._had_turn = self._had_turn, True
        self._on_events, self._has_answered = on_events, False
        try:
            on_events([Launched(process=self._identity)])
            if early := [*news, *self._before]:
                on_events(early)
            self._before.clear()
            if not self.is_usable:
                raise NotPrompted
            self.client.start_turn(UNUSABLE.sub("\ufffd", prompt), self._sandbox)
            self._flush()
            await self._turn_over()
        finally:
            if not reader.is_over and self._end is None:
                await self._interrupt()
            if rest := reader.end():
                on_events(rest)
            self._on_events = None
        has_failed = not reader.is_over and self._end is not None and not self._has_answered
        if has_failed and (self._unsent > 0 or was_idle):
            raise NotPrompted
        failure = reader.failure if reader.is_over else self._failure()
        return None if failure is None else failure.result(self._stderr.warnings)

    async def _turn_over(self) -> None:
        while not self.reader.is_over and self._end is None:
            await self._wait_for_news()

    async def _interrupt(self) -> None:
        """Have Codex end a turn, so that it notes that, and then end the process: Codex lets the
        commands that it has begun go on."""
        self.client.cancel()
        self._flush()
        with trio.move_on_after(self._launch.command.grace, shield=True):
            await self._turn_over()
        await self._kill()

    def _take(self, events: Sequence[CodexEvent]) -> bool:
        told: list[AgentEvent] = []
        for event in events:
            match event:
                case LineTooLong():
                    return True
                case Junk():
                    self._said = self._launch.redacted(event.text)
                case ApprovalAsked():
                    answer, more = self.reader.approve(event)
                    self.client.answer(event.id, answer)
                    told += more
                case Initialized() | RequestAnswered() | SessionOpened():
                    self._reply = event
                case RequestFailed(method=method) if method != "turn/start":
                    self._reply = event
                case ServerTold() | TurnFinished() | RequestFailed() | RequestDeclined():
                    told += self.reader.take(event)
        self._flush()
        if self._on_events is None:
            self._before += told  # warnings of the start: the first turn tells them
        self._tell(told)
        self._wake()
        return False
