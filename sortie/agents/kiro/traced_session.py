"""A session that reads Kiro's own record of each turn after the turn has ended.

Rule 1: a failure here gives TurnUntraced and changes no turn's outcome. Rule 2: a reading takes at
most BOUND seconds, also while a turn is being stopped. Rule 3: only the difference to the record
before the turn is reported; where that record is unknown, nothing is.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager

import trio
from msgspec import Struct

from sortie.agents import OnEvents, Session, SessionParams
from sortie.agents.kiro.host_source import HostSource
from sortie.agents.kiro.sources import ConversationSource, LocalSource
from sortie.json_rpc import values
from sortie.kiro.conversations import (
    ConversationError,
    ModelAnswer,
    Record,
    ToolResult,
    ToolUse,
    ToolUsesCancelled,
)
from sortie.kiro.conversations.latest import Sight
from sortie.kiro.conversations.records import credits_of, final_answer
from sortie.kiro.conversations.turn import Addition, Position, added_since
from sortie.model import LOCAL, TEXT_LIMIT, TransportError, TurnResult, cut
from sortie.model.turns import (
    AgentEvent,
    Launched,
    ToolEnded,
    ToolStarted,
    TurnTraced,
    TurnUntraced,
    Usage,
)

TOLD_TOOLS = 1000
"""Tool uses that are reported of one turn; each is two facts for the daemon's only loop."""

_PATH_COUNT = 20
_WORD_LIMIT = 200
_ERROR_LIMIT = 2000

# A tool that edits is told as such by the file that a use of it writes; else it has only looked.
_KINDS = {
    "fs_read": "read",
    "read": "read",
    "code": "read",
    "fs_write": "read",
    "fs_edit": "read",
    "write": "read",
    "execute_bash": "execute",
    "execute_cmd": "execute",
    "shell": "execute",
    "use_aws": "execute",
    "aws": "execute",
    "grep": "search",
    "glob": "search",
    "web_fetch": "fetch",
    "web_search": "fetch",
    "thinking": "think",
}
_GIVEN = ("command", "pattern", "url", "query")
_UNDONE = "it was cancelled"
_UNENDED = "the turn ended before the tool did"


class _Outcome(Struct, frozen=True):
    failed: bool
    said: str = ""
    at: int | None = None


def events_of(
    addition: Addition, redacted: Callable[[str], str], *, with_credits: bool
) -> list[AgentEvent]:
    """Return what a turn has added as the worker hears it, in the order in which it happened.

    With ``with_credits`` also what it has cost: where Kiro's own last line has not told it.
    """
    uses = [record for record in addition.records if isinstance(record, ToolUse)]
    outcomes = dict(_outcomes(addition.records))
    events: list[AgentEvent] = []
    for use in uses[:TOLD_TOOLS]:
        events += _of_use(use, outcomes.get(use.id, _Outcome(True, _UNENDED)), redacted)
    if len(uses) > TOLD_TOOLS:
        events.append(TurnUntraced(reason=f"only {TOLD_TOOLS} of {len(uses)} tools are told"))
    events += _used(addition, with_credits=with_credits)
    model, answer = _model(addition), final_answer(addition.records)
    return [
        *events,
        TurnTraced(
            model=None if model is None else redacted(model)[:_WORD_LIMIT],
            answer=None if answer is None else cut(redacted(answer), TEXT_LIMIT),
        ),
    ]


def _outcomes(records: Sequence[Record]) -> Iterator[tuple[str, _Outcome]]:
    for record in records:
        match record:
            case ToolResult(tool_use_id=use, text=text, succeeded=succeeded, at=at):
                failed = succeeded is False
                yield use, _Outcome(failed, text, at)
            case ToolUsesCancelled(tool_use_ids=ids, at=at):
                yield from ((use, _Outcome(True, _UNDONE, at)) for use in ids)
            case _:
                pass


def _of_use(
    use: ToolUse, outcome: _Outcome, redacted: Callable[[str], str]
) -> Iterator[AgentEvent]:
    places = tuple(redacted(path) for path in _paths(use))
    kind = "edit" if use.modified_file is not None else _KINDS.get(use.name)
    name = redacted(use.name)[:_WORD_LIMIT]
    told = (values.text(use.input, key) for key in _GIVEN if kind not in ("read", "edit"))
    given = next(filter(None, told), None)
    yield ToolStarted(
        id=use.id[:_WORD_LIMIT],
        name=name,
        kind=kind,
        locations=places,
        about=None if given is None else cut(redacted(given), _ERROR_LIMIT),
    )
    both = use.at is not None and outcome.at is not None
    took = max(0, (outcome.at or 0) - (use.at or 0)) / 1000 if both else 0.0
    yield ToolEnded(
        id=use.id[:_WORD_LIMIT],
        failed=outcome.failed,
        duration=took,
        error=redacted(outcome.said)[:_ERROR_LIMIT] if outcome.failed else None,
        output=None if outcome.failed else cut(redacted(outcome.said), TEXT_LIMIT) or None,
    )


def _paths(use: ToolUse) -> list[str]:
    """Return the files that a use names; reads may name several."""
    given: list[Mapping[str, object]] = [use.input, *values.items(use.input, "operations")]
    named = (values.text(each, key) for each in given for key in ("path", "file_path"))
    return [path for path in dict.fromkeys(named) if path][:_PATH_COUNT]


def _used(addition: Addition, *, with_credits: bool) -> Iterator[Usage]:
    spent = credits_of(addition.usages) if with_credits else None
    shares = [r.context_share for r in addition.records if isinstance(r, ModelAnswer)]
    told = [share for share in shares if share is not None and 0 <= share <= 100]
    share = told[-1] / 100 if told else None
    if spent is not None or share is not None:
        yield Usage(credits=spent, context_share=share)


def _model(addition: Addition) -> str | None:
    answered = [r.model for r in addition.records if isinstance(r, ModelAnswer) and r.model]
    used = [usage.model for usage in addition.usages if usage.model]
    return next(iter([*reversed(answered), *reversed(used)]), None)


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
            if heard.adopted:
                self._sight, self._trouble = None, None
                heard([TurnUntraced(reason="another daemon began the turn")])
            elif heard.launched and not lost:
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
        self.launched = self.adopted = False
        self.credits = False

    def __call__(self, events: Sequence[AgentEvent]) -> None:
        for event in events:
            if isinstance(event, Launched):
                self.launched, self.adopted = True, event.adopted
            elif isinstance(event, Usage) and event.credits is not None:
                self.credits = True
        self._on_events(events)


def _said(error: Exception) -> str:
    """Return what went wrong; for an unexpected error also where."""
    if isinstance(error, ConversationError | TransportError | OSError):
        return str(error)
    *_, frame = traceback.extract_tb(error.__traceback__)
    return f"{error!r} in {frame.name} ({os.path.basename(frame.filename)}:{frame.lineno})"
