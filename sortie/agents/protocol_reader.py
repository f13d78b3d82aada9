"""Reads the turns of one process of an agent that is spoken with over a protocol; pure.

An adapter says what the messages of its protocol mean. What all turns have in common is in here:
how one ends, and that no secret is in what is told of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from sortie.agents.exits import Failure
from sortie.agents.output import LastAnswer
from sortie.agents.texts import Texts
from sortie.json_rpc import values
from sortie.lines import strip_escapes
from sortie.model.asked_permissions import AskedPermissions, Granted
from sortie.model.texts import UNUSABLE
from sortie.model.turns import (
    AgentEvent,
    AnswerGiven,
    Notification,
    PermissionAsked,
    ToolEnded,
    ToolStarted,
    TurnTraced,
    Usage,
)

MESSAGE_LIMIT = 1000
"""Characters of a failure that are shown."""


class TurnOver(Struct, frozen=True):
    """A turn has ended; ``failure`` is None where it is a good one."""

    failure: Failure | None


class OpenTools(Protocol):
    """The uses of tools in one turn."""

    def close(self, *, failed: bool) -> list[AgentEvent]:
        """End those that are open at the end of the turn."""
        ...


T = TypeVar("T", bound=OpenTools)


class ProtocolReader(Generic[T]):
    """Reads one turn after another; ``over`` is the end of a turn, None until then.

    Once it ``waits_for_people``, who are asked whether the agent may do something, the turn must
    end.
    """

    def __init__(self, redacted: Callable[[str], str]) -> None:
        self._redacted = redacted
        self._texts = Texts(redacted)
        self.begin()
        self._in_turn = False

    # For adapters

    def _new_tools(self) -> T:
        """Return the tools of a turn that begins."""
        raise NotImplementedError

    def _model(self) -> str | None:
        """Return the model of the turn, None where it is not known."""
        raise NotImplementedError

    def _worded(self, failure: Failure) -> Failure:
        """Return a failure as it may be shown."""
        # A carriage return would have what stands before it taken for a line that was redrawn.
        said = self._texts.clean(failure.message.replace("\r", " "), MESSAGE_LIMIT)
        return Failure(failure.kind, said, failure.resets_at)

    @property
    def is_cut_short(self) -> bool:
        """Whether the turn has to end before the agent ends it."""
        return self.waits_for_people

    # For all

    def begin(self) -> None:
        """Begin a turn."""
        self.over: TurnOver | None = None
        self.waits_for_people = False
        self._in_turn = True
        self._tools = self._new_tools()
        self._answer = LastAnswer()

    def end(self) -> list[AgentEvent]:
        """End a turn without an answer, and return the remaining events."""
        last = self._last() if self._in_turn else []
        self._in_turn = False
        return self._clean([*self._texts.flush(), *self._tools.close(failed=True), *last])

    def _granted(
        self, permissions: AskedPermissions | None, permission: str, what: str
    ) -> Granted | None:
        """Return for how long people have allowed something; have them asked where they have not.

        ``what`` says for what. None for ``permissions``: they cannot be asked.
        """
        if permissions is None:
            return None
        granted = permissions.use(permission)
        if granted is None and not self.waits_for_people and permission != permissions.denied:
            self.waits_for_people = True
            permissions.ask_for(permission, self._lines(what))
        return granted

    def _close(self, failure: Failure | None) -> list[AgentEvent]:
        """Take the end of a turn, and return the remaining events."""
        self.over = TurnOver(None if failure is None else self._worded(failure))
        self._in_turn = False
        ended = self._tools.close(failed=failure is not None)
        return [*self._texts.flush(), *ended, *self._last()]

    def _last(self) -> list[AgentEvent]:
        """Return the last words, and the event that closes the list of tools."""
        said, traced = self._answer.text, TurnTraced(model=self._model())
        return [AnswerGiven(text=said), traced] if said else [traced]

    def _clean(self, events: Sequence[AgentEvent]) -> list[AgentEvent]:
        """Take the secrets out of what is not clean yet; notifications of texts are."""
        return [self._cleaned(event) for event in events]

    def _cleaned(self, event: AgentEvent) -> AgentEvent:
        clean = self._texts.clean
        match event:
            case ToolStarted():
                places = tuple(map(clean, event.locations))
                about = None if event.about is None else clean(event.about)
                return replace(event, name=clean(event.name), locations=places, about=about)
            case ToolEnded():
                return replace(
                    event,
                    locations=tuple(map(clean, event.locations)),
                    error=None if event.error is None else clean(event.error, MESSAGE_LIMIT),
                    about=None if event.about is None else clean(event.about),
                    output=None if event.output is None else self._lines(event.output),
                )
            case PermissionAsked():
                return PermissionAsked(question=clean(event.question), answer=event.answer)
            case AnswerGiven(text=text):
                return AnswerGiven(text=self._lines(text))
            case Usage(model=str(model)) | TurnTraced(model=str(model)):
                return replace(event, model=clean(model))
            case Notification(message=message) if message.startswith("["):
                return replace(event, message=clean(message) or "-")
            case _:
                return event

    def _lines(self, text: str) -> str:
        """Return a text of several lines without secrets, and fit to be stored."""
        return self._redacted(UNUSABLE.sub("\ufffd", strip_escapes(text)))


def plan_told(steps: Sequence[Mapping[str, Any]], text: str, under_way: str) -> list[AgentEvent]:
    """Return what is told of a plan; ``text`` is the key of a step's text, ``under_way`` the status
    of one that is under way."""
    if not steps:
        return []
    done = sum(step.get("status") == "completed" for step in steps)
    here = [s for s in steps if s.get("status") == under_way] or [
        s for s in steps if s.get("status") != "completed"
    ]
    now = values.text(here[0], text) if here else None
    rest = f": {now}" if now else ""
    return [Notification(message=f"[plan] {done} of {len(steps)} done{rest}")]
