"""A session that reads Kiro's own record of each turn after the turn has ended.

Rule 1: a failure here gives TurnUntraced and changes no turn's outcome. Rule 2: a reading takes at
most BOUND seconds, also while a turn is being stopped. Rule 3: only the difference to the record
before the turn is reported; where that record is unknown, nothing is.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import trio

from sortie.agents import OnEvents, Session, SessionParams
from sortie.agents.kiro.evidence import events_of
from sortie.agents.kiro.host_source import HostSource
from sortie.agents.kiro.sources import ConversationSource, LocalSource
from sortie.kiro.conversations import ConversationError
from sortie.kiro.conversations.latest import Sight
from sortie.kiro.conversations.turn import Position, added_since
from sortie.model import LOCAL, TransportError, TurnResult
from sortie.model.turns import AgentEvent, Launched, TurnUntraced, Usage

BOUND = 2.0
"""Seconds for a look, before the first turn and after each."""

THREADS = 8
"""Readings on this machine at the same time: home directories that hang take no more threads."""

_BATCH = 100
_REASON_LIMIT = 500


@asynccontextmanager
async def traced(
    session: Session,
    params: SessionParams,
    limiter: trio.CapacityLimiter,
    redacted: Callable[[str], str],
) -> AsyncIterator[Session]:
    """Have a session whose turns also report what Kiro's store has of them."""
    async with trio.open_nursery() as nursery:
        is_here = params.transport.host == LOCAL
        source = LocalSource(params, limiter) if is_here else HostSource(params, nursery)
        traced_session = _TracedSession(session, source, redacted)
        nursery.start_soon(traced_session.look)  # while the first turn is prepared
        yield traced_session
        nursery.cancel_scope.cancel()


class _TracedSession:
    def __init__(
        self, session: Session, source: ConversationSource, redacted: Callable[[str], str]
    ) -> None:
        self._session = session
        self._source = source
        self._redacted = redacted
        self._looking = trio.Lock()
        self._sight: Sight | None = None
        self._position: Position | None = None
        self._trouble: str | None = None

    @property
    def id(self) -> str:
        """As the session has it."""
        return self._session.id

    async def run_turn(self, prompt: str, on_events: OnEvents) -> TurnResult:
        """Run one prompt and report what Kiro's store has of it, however it ends."""
        if self._sight is None:
            await self.look()
        heard, lost = _Heard(on_events), False
        try:
            return await self._session.run_turn(prompt, heard)
        except TransportError:
            self._sight, self._trouble, lost = None, None, True
            raise
        finally:
            if heard.launched and not lost:
                await self._tell(heard)

    async def look(self) -> None:
        """Note what is there before a turn, unless that was done."""
        async with self._looking:
            if self._sight is not None or self._trouble is not None:
                return
            self._trouble = "what was there before the turn was not read in time"
            with trio.move_on_after(BOUND):
                try:
                    self._sight = await self._source.look()
                except Exception as error:  # the edge: no turn depends on it
                    self._trouble = f"what was there before the turn cannot be read: {_said(error)}"

    async def _tell(self, heard: _Heard) -> None:
        """Report the stored record of a turn that was launched."""
        with trio.CancelScope(shield=True):
            events = await self._events(heard)
            heard(events[:_BATCH])
            for at in range(_BATCH, len(events), _BATCH):
                await trio.lowlevel.checkpoint()
                heard(events[at : at + _BATCH])

    async def _events(self, heard: _Heard) -> Sequence[AgentEvent]:
        with trio.move_on_after(BOUND):
            try:
                return await self._read(heard)
            except Exception as error:  # the edge: no turn depends on it
                return [TurnUntraced(reason=self._redacted(_said(error))[:_REASON_LIMIT])]
        return [TurnUntraced(reason=f"it was not read within {BOUND:g} s")]

    async def _read(self, heard: _Heard) -> Sequence[AgentEvent]:
        """Return what a turn has added. Raises ConversationError where that is not known."""
        before, position, trouble = self._sight, self._position, self._trouble
        self._sight = self._position = self._trouble = None
        if before is None:
            raise ConversationError(trouble)
        reading = await self._source.read(before)
        self._sight = reading.sight
        if reading.conversation is None:
            doubts = reading.sight.doubts_since(before)
            raise ConversationError(doubts or "Kiro has kept nothing of this turn")
        addition = added_since(reading.conversation, position)
        self._position = Position.after(reading.conversation)
        return events_of(addition, self._redacted, with_credits=not heard.credits)


class _Heard:
    """Passes events on, and notes what of them matters here."""

    def __init__(self, on_events: OnEvents) -> None:
        self._on_events = on_events
        self.launched = False
        self.credits = False

    def __call__(self, events: Sequence[AgentEvent]) -> None:
        for event in events:
            if isinstance(event, Launched):
                self.launched = True
            elif isinstance(event, Usage) and event.credits is not None:
                self.credits = True
        self._on_events(events)


def _said(error: Exception) -> str:
    """Return what went wrong; for an unexpected error also where."""
    if isinstance(error, ConversationError | TransportError | OSError):
        return str(error)
    *_, frame = traceback.extract_tb(error.__traceback__)
    return f"{error!r} in {frame.name} ({os.path.basename(frame.filename)}:{frame.lineno})"
