"""What an adapter tells of one turn, and what is wrong with how it tells it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import trio

from sortie.model import ErrorKind, TurnOutcome, TurnResult
from sortie.model.turns import (
    NOTIFICATION_LIMIT,
    AgentEvent,
    Launched,
    Notification,
    SessionKnown,
    ToolEnded,
    ToolStarted,
    Usage,
)
from sortie.testing.checks import NotKept, require
from sortie.worker.agent_values import checked_session_id

_TURN_OUTCOMES = (TurnOutcome.COMPLETED, TurnOutcome.FAILED, TurnOutcome.CANCELLED)


class TurnRecord:
    """Records the events of a turn. ``launched`` is set by the first process, ``over`` once
    ``run_turn`` has returned; ``wrongs`` lists events that no adapter may send."""

    def __init__(self) -> None:
        self.events: list[AgentEvent] = []
        self.batches = 0
        self.wrongs: list[str] = []
        self.launched = trio.Event()
        self.over = trio.Event()
        self._open_tools: set[str] = set()

    def __call__(self, events: Sequence[AgentEvent]) -> None:
        """Take a batch; see OnEvents."""
        self.batches += 1
        if self.over.is_set():
            self.wrongs.append("an event was sent after the turn was over")
        for event in events:
            self.events.append(event)
            self._look_at(event)
            if isinstance(event, Launched):
                self.launched.set()

    async def until(self, event: trio.Event, what: str) -> None:
        """Wait for an event of this turn. Raises NotKept where the turn is over without it."""
        async with trio.open_nursery() as nursery:

            async def watch() -> None:
                await self.over.wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(watch)
            await event.wait()
            nursery.cancel_scope.cancel()
        require(event.is_set(), f"the turn was over before {what}")

    @property
    def messages(self) -> list[str]:
        """What the agent said."""
        return [event.message for event in self.events if isinstance(event, Notification)]

    @property
    def session_id(self) -> str:
        """The id that the session got in this turn, or ""."""
        known = [event.session_id for event in self.events if isinstance(event, SessionKnown)]
        return known[-1] if known else ""

    @property
    def pids(self) -> list[int]:
        """The processes that the turn was launched in, one after another."""
        return [event.process.pid for event in self.events if isinstance(event, Launched)]

    @property
    def pid(self) -> int:
        """The process that the turn was launched in. Raises NotKept unless there is exactly one."""
        found = self.pids
        require(len(found) == 1, f"Launched was sent {len(found)} times in one turn")
        return found[0]

    def judge(self, result: object) -> TurnResult:
        """Return a turn's result. Raises NotKept where it, or an event, is not well-formed."""
        if not isinstance(result, TurnResult):
            raise NotKept(f"run_turn returned {type(result).__name__}, not a TurnResult")
        completed = result.outcome is TurnOutcome.COMPLETED
        cancelled = result.outcome is TurnOutcome.CANCELLED
        require(result.outcome in _TURN_OUTCOMES, f"a turn ended as {result.outcome!r}")
        if completed:
            require(
                result.error_kind is None and result.message is None,
                f"a completed turn has an error: {_told(result)}",
            )
        else:
            require(
                result.error_kind and result.message,
                f"a turn that did not complete has no kind or no message: {_told(result)}",
            )
        require(
            cancelled == (result.error_kind is ErrorKind.TURN_CANCELLED),
            f"outcome and kind contradict each other: {_told(result)}",
        )
        self.require_well_formed()
        return result

    def require_well_formed(self) -> None:
        """Raise NotKept where an event was sent that no adapter may send."""
        if self.events and not isinstance(self.events[0], Launched):
            self.wrongs.append(f"the first event was {type(self.events[0]).__name__}, not Launched")
        require(not self.wrongs, "; ".join(dict.fromkeys(self.wrongs)))

    def _look_at(self, event: AgentEvent) -> None:
        match event:
            case Notification(message=text, lines=lines):
                if not 0 < len(text) <= NOTIFICATION_LIMIT:
                    self.wrongs.append(f"a notification of {len(text)} characters")
                if lines < 1:
                    self.wrongs.append(f"a notification of {lines} lines")
            case ToolStarted(id=tool):
                self._open_tools.add(tool)
            case ToolEnded(id=tool):
                if tool not in self._open_tools:
                    self.wrongs.append(f"tool {tool!r:.60} ended and had not begun")
                self._open_tools.discard(tool)
            case SessionKnown(session_id=session_id):
                try:
                    checked_session_id(session_id)
                except (TypeError, ValueError) as error:
                    self.wrongs.append(str(error))
            case Usage():
                numbers = [getattr(event, name) for name in event.__struct_fields__]
                if any(isinstance(n, int | float) and not 0 <= n < math.inf for n in numbers):
                    self.wrongs.append(f"impossible numbers: {event}")
            case _ if not isinstance(event, AgentEvent):
                self.wrongs.append(f"{type(event).__name__} is no event of an agent")


def _told(result: TurnResult) -> str:
    return f"{result.outcome}, {result.error_kind}, {result.message!r:.200}"
