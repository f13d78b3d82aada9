"""What is asked of one process of an agent over a protocol: requests and turns.

An adapter says what the messages mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import trio

from sortie.agents import OnEvents
from sortie.agents.exits import Failure
from sortie.agents.launch import AgentLaunch
from sortie.agents.protocol_reader import ProtocolReader
from sortie.agents.protocol_streams import ProtocolStreams
from sortie.json_rpc.connection import AgentConnection, ConnectionState
from sortie.json_rpc.events import Initialized, RequestAnswered, RequestFailed, SessionOpened
from sortie.json_rpc.wire import Junk
from sortie.lines import LineTooLong
from sortie.model import AgentError, ErrorKind, TurnResult
from sortie.model.numbers import seconds_text
from sortie.model.texts import UNUSABLE
from sortie.model.turns import AgentEvent, Launched


class NotPrompted(Exception):
    """The process had already ended when a turn began in it."""


Reply = Initialized | SessionOpened | RequestAnswered | RequestFailed
"""What comes of a request that is no turn."""

C = TypeVar("C", bound=AgentConnection[Any])


class ProtocolProcess(ProtocolStreams[C]):
    """A process of an agent, and what is under way in it.

    Rule: a turn ends with the agent's answer or with the process, whichever comes first. An agent
    that does not answer a cancellation in time is killed.
    """

    may_lose_prompts: ClassVar[bool] = False
    """Whether what is between may take a prompt from us that the process does not get."""

    def __init__(self, launch: AgentLaunch, client: C) -> None:
        super().__init__(launch, client)
        self._reply: Reply | None = None
        self._turns = 0

    async def request(self, begin: Callable[[], None]) -> Reply:
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

    async def request_within(
        self, begin: Callable[[], None], patience: float, setting: str
    ) -> Reply:
        """As ``request``; raises AgentError also where there is no answer within ``patience``
        seconds, which is the value of a setting."""
        with trio.move_on_after(patience):
            return await self.request(begin)
        message = (
            f"the agent did not answer to {self.client.asked} within {seconds_text(patience)}"
            f" ({setting})"
        )
        raise AgentError(ErrorKind.RESPONSE_TIMEOUT, self.in_its_words(message), timed_out=True)

    # A turn

    @property
    def is_usable(self) -> bool:
        """Whether another turn can begin in it."""
        return self._end is None and self.client.state is ConnectionState.IDLE

    async def turn(
        self, prompt: str, on_events: OnEvents, news: Sequence[AgentEvent]
    ) -> TurnResult | None:
        """Run one prompt and return how the turn failed, None where it is a good one.

        ``news`` is told first, behind the launch. Raises AgentError where no turn may begin,
        TransportError, and NotPrompted where the process had ended before it could take the prompt:
        then it was not written, or, where it may have been lost, nothing was heard of a process
        that had turns before.
        """
        assert self._identity is not None
        reader = self._begin_turn()
        self._turns += 1
        self._on_events, self._has_answered = on_events, False
        try:
            on_events([Launched(process=self._identity)])
            if early := [*news, *self._told_before()]:
                on_events(early)
            if not self.is_usable:
                raise NotPrompted
            self._prompt(UNUSABLE.sub("\ufffd", prompt))
            self._flush()
            await self._under_way(reader)
        finally:
            if reader.over is None and self._end is None:
                await self._cancel(reader)
            if rest := reader.end():
                on_events(rest)
            self._on_events = None
        may_be_lost = self._unsent > 0 or (self.may_lose_prompts and self._turns > 1)
        if reader.over is None and may_be_lost and not self._has_answered:
            raise NotPrompted
        failure = self._turn_failure(reader)
        return None if failure is None else failure.result(self._stderr.warnings)

    # For adapters

    def _begin_turn(self) -> ProtocolReader[Any]:
        """Return what reads the turn that begins. Raises AgentError where none may begin."""
        raise NotImplementedError

    def _told_before(self) -> Sequence[AgentEvent]:
        """Return what was told before a turn, and belongs to it."""
        raise NotImplementedError

    def _prompt(self, text: str) -> None:
        """Have the client send a prompt."""
        raise NotImplementedError

    def _read_event(self, event: Any) -> list[AgentEvent]:
        """Take an event of the protocol and return the events of the port."""
        raise NotImplementedError

    async def _under_way(self, reader: ProtocolReader[Any]) -> None:
        """Wait while a turn may go on."""
        while reader.over is None and self._end is None and not reader.is_cut_short:
            await self._wait_for_news()

    async def _turn_over(self, reader: ProtocolReader[Any]) -> None:
        """Wait until a turn has ended, or the process."""
        while reader.over is None and self._end is None:
            await self._wait_for_news()

    async def _cancel(self, reader: ProtocolReader[Any]) -> None:
        """Have the agent end a turn; where it does not in time, end the agent."""
        self.client.cancel()
        self._flush()
        with trio.move_on_after(self._launch.command.grace, shield=True):
            await self._turn_over(reader)
        if reader.over is None:
            await self._kill()

    def _turn_failure(self, reader: ProtocolReader[Any]) -> Failure | None:
        """Return why a turn failed, None where it is a good one. Raises TransportError."""
        if reader.waits_for_people:
            return None  # that is what the run ends with
        return self._failure() if reader.over is None else reader.over.failure

    def _take(self, events: Sequence[Any]) -> bool:
        """Handle events of the protocol; return whether a line was too long."""
        told: list[AgentEvent] = []
        for event in events:
            match event:
                case LineTooLong():
                    return True
                case Junk():
                    self._said = self._launch.redacted(event.text)
                case Initialized() | SessionOpened() | RequestAnswered():
                    self._reply = event
                case RequestFailed(method=method) if method != self.client.turn_method:
                    self._reply = event
                case _:
                    told += self._read_event(event)
        self._flush()
        self._tell(told)
        self._wake()
        return False
