"""Turns the protocol events of one agent's process into the events of the port; pure.

One reader lives as long as a process and reads its turns one after another. Events outside of a
turn, or from a replayed conversation, are signs of life only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from sortie.acp.events import (
    ClientEvent,
    ExtensionTold,
    PermissionRequested,
    PromptAnswered,
    SessionUpdated,
)
from sortie.agents.acp.asking import Asking
from sortie.agents.acp.failures import MESSAGE_LIMIT, failure_of, worded
from sortie.agents.acp.permissions import PermissionAnswer, decide, grant, is_of_server
from sortie.agents.acp.reader_context import ReaderContext as ReaderContext
from sortie.agents.acp.reader_context import TurnOver
from sortie.agents.acp.tools import AcpToolCalls, EarlierCalls, ToolCall
from sortie.agents.acp.usage import UsageReader
from sortie.agents.acp.verdict import INJECTED, TurnEvidence
from sortie.agents.exits import Failure
from sortie.agents.output import LastAnswer
from sortie.agents.permissions import ruling_for
from sortie.agents.texts import Texts
from sortie.json_rpc import values
from sortie.json_rpc.events import RequestDeclined, RequestFailed
from sortie.lines import strip_escapes
from sortie.model import ErrorKind
from sortie.model.asked_permissions import Granted
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

_OF_MODES = ("current_mode_update", "config_option_update")


class UpdateReader:
    """See the module. ``over`` is the end of the turn, None until then.

    ``is_kiro``: the agent has sent one of Kiro's extensions, so its credits may follow the turn's
    end. ``refusal`` is set where the agent did, without asking, what the rules deny: then the turn
    must end. So it must once it ``waits_for_people``, who are asked whether the agent may.
    """

    def __init__(self, context: ReaderContext) -> None:
        self._context = context
        self.agent = context.agent
        self.usage = UsageReader(context.agent)
        self.asking = Asking(context.agent, context.settings)
        self.is_kiro = False
        self._texts = Texts(context.redacted)
        self._earlier = EarlierCalls()
        self.begin()
        self._in_turn = False

    @property
    def is_cut_short(self) -> bool:
        """Whether the turn has to end before the agent ends it."""
        return self.refusal is not None or self.waits_for_people

    @property
    def ends_turn(self) -> bool:
        """Whether the turn has ended, or has to."""
        return self.over is not None or self.is_cut_short

    def begin(self) -> None:
        """Begin a turn."""
        self.over: TurnOver | None = None
        self.refusal: Failure | None = None
        self.waits_for_people = False
        self._in_turn = True
        self._tools = AcpToolCalls(self._context.agent, self._context.workspace)
        self._evidence = TurnEvidence(self._context.agent)
        self._answer = LastAnswer()

    def take(self, event: ClientEvent) -> list[AgentEvent]:
        """Take an event of the protocol and return the events of the port."""
        if isinstance(event, SessionUpdated) and event.ours and event.kind in _OF_MODES:
            self.asking.take(event.body)
            self._refuse(self.asking.refusal())
        match event:
            case SessionUpdated(when="replay", kind="usage_update") if event.ours:
                self.usage.update(event.body)
            case SessionUpdated(when="replay", kind="tool_call" | "tool_call_update") if event.ours:
                self._earlier.replayed(event.body)
            case SessionUpdated() if event.ours and event.when != "replay":
                return self._clean(self._update(event))
            case ExtensionTold():
                return self._clean(self._extension(event))
            case RequestDeclined() if self._in_turn and event.method:
                return self._clean(self._declined(event))
            case PromptAnswered():
                return self._clean(self._answered(event))
            case RequestFailed(method="session/prompt"):
                return self._clean(self._failed(event))
            case _:
                pass
        return []

    def permit(self, event: PermissionRequested) -> tuple[PermissionAnswer, list[AgentEvent]]:
        """Take a permission request; return the answer to it, and its events."""
        call, events = self._tools.take(event.call)
        call.asked = True
        rules = self._context.settings.permissions
        server = self._context.server
        if server is not None and is_of_server(event.call, call.kind, server):
            answer = grant(event.options)
        else:
            asks = ruling_for(call.kind, rules, outside=call.outside).asks
            answer = decide(
                call.kind,
                outside=call.outside,
                options=event.options,
                rules=rules,
                granted=self._granted(call) if asks else None,
            )
        question = call.question
        if not answer.allowed:
            call.denied = True
            self._evidence.denied(self._texts.clean(question))
        told = PermissionAsked(question=question, answer=answer.reason)
        return answer, self._clean([*self._texts.flush(), *events, told])

    def _granted(self, call: ToolCall) -> Granted | None:
        """Return for how long people have allowed a call; have them asked where they have not."""
        permissions = self._context.permissions
        if permissions is None:
            return None
        granted = permissions.use(call.permission)
        if granted is None and not self.waits_for_people and call.permission != permissions.denied:
            self.waits_for_people = True
            permissions.ask_for(call.permission, self._lines(call.whole_question))
        return granted

    def end(self) -> list[AgentEvent]:
        """End a turn without an answer, and return the remaining events."""
        traced = [*self._answered_last(), self._traced()] if self._in_turn else []
        self._in_turn = False
        return self._clean([*self._texts.flush(), *self._tools.close(failed=True), *traced])

    # What is told

    def _update(self, event: SessionUpdated) -> list[AgentEvent]:
        body = event.body
        if event.kind == "usage_update":  # also outside of a turn: it counts what was used before
            used = self.usage.update(body)
            return [] if used is None else [used]
        if event.kind == "session_info_update" and (kiro := values.mapping(body, "_meta", "kiro")):
            used = self.usage.extension(kiro)
            return [] if used is None else [used]
        if not self._in_turn or event.when != "turn":
            return []
        match event.kind:
            case "agent_message_chunk":
                piece = values.block_text(body.get("content"))
                self._evidence.text(piece)
                if not piece.startswith(INJECTED):
                    self._answer.add(piece, values.text(body, "messageId"))
                return [*self._texts.add("", values.text(body, "messageId"), piece)]
            case "agent_thought_chunk":
                piece = values.block_text(body.get("content"))
                return [*self._texts.add("[thought] ", values.text(body, "messageId"), piece)]
            case "tool_call" | "tool_call_update" if not self._earlier.has(body):
                self._answer.close()
                return [*self._texts.flush(), *self._tool(body)]
            case "plan":
                return [*self._texts.flush(), *_plan(body)]
            case "session_info_update":
                self._evidence.info(body)
            case "current_mode_update":
                mode = values.text(body, "currentModeId") or values.text(body, "modeId")
                return [Notification(message=f"[mode] {mode}")] if mode else []
        return []

    def _tool(self, body: Mapping[str, Any]) -> list[AgentEvent]:
        call, events = self._tools.take(body)
        for event in events:
            if isinstance(event, ToolEnded):
                self._evidence.tool_ended(failed=event.failed)
                if not event.failed and not call.asked:
                    self._refuse(self.asking.ran_unasked(call.kind, outside=call.outside))
        return events

    def _refuse(self, failure: Failure | None) -> None:
        if failure is not None and self._in_turn and self.refusal is None:
            self.refusal = worded(failure, self._texts.clean, self._context.now)

    def _extension(self, event: ExtensionTold) -> list[AgentEvent]:
        params = event.params
        self.is_kiro = self.is_kiro or event.method.startswith("_kiro")
        if event.method == "_kiro.dev/metadata":
            used = self.usage.extension(params)
            return [] if used is None else [used]
        if event.method == "_kiro.dev/error/rate_limit" and self._in_turn:
            said = values.text(params, "message") or "its rate limit is reached"
            self._evidence.text(said)
            return [Notification(message=f"[limit] {said}")]
        return []

    def _declined(self, event: RequestDeclined) -> list[AgentEvent]:
        call, events = event.params.get("toolCall"), list[AgentEvent]()
        if isinstance(call, dict):
            known, events = self._tools.take(call)
            question = known.question
        else:
            about = values.text(event.params, "path") or values.text(event.params, "command") or ""
            question = f"{event.method} {about}".strip()
        return [*events, PermissionAsked(question=question, answer="declined")]

    # How a turn ends

    def _answered(self, event: PromptAnswered) -> list[AgentEvent]:
        used = self.usage.turn(event.result)
        used_tokens = any(each.output_tokens for each in used) or self.usage.knows_credits
        failure = self._evidence.failure(event.stop_reason, used_tokens=used_tokens)
        return [*self._close(failure), *used]

    def _failed(self, event: RequestFailed) -> list[AgentEvent]:
        return self._close(failure_of(event, ErrorKind.TURN_FAILED))

    def _close(self, failure: Failure | None) -> list[AgentEvent]:
        if failure is not None:
            failure = worded(failure, self._texts.clean, self._context.now)
        self.over = TurnOver(failure)
        self._in_turn = False
        ended = self._tools.close(failed=failure is not None)
        return [*self._texts.flush(), *ended, *self._answered_last(), self._traced()]

    def _answered_last(self) -> list[AgentEvent]:
        said = self._answer.text
        return [AnswerGiven(text=said)] if said else []

    def _traced(self) -> TurnTraced:
        """Return the event that closes the list of tools, with the model where it is known."""
        return TurnTraced(model=self.usage.answered or self.usage.model)

    def _clean(self, events: Sequence[AgentEvent]) -> list[AgentEvent]:
        """Take the secrets out of what is not clean yet; notifications of texts are."""
        return [self._cleaned(event) for event in events]

    def _cleaned(self, event: AgentEvent) -> AgentEvent:
        clean = self._texts.clean
        match event:
            case ToolStarted():
                places = tuple(map(clean, event.locations))
                return replace(event, name=clean(event.name), locations=places)
            case ToolEnded():
                error = None if event.error is None else clean(event.error, MESSAGE_LIMIT)
                return replace(
                    event,
                    locations=tuple(map(clean, event.locations)),
                    error=error,
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
        return self._context.redacted(UNUSABLE.sub("\ufffd", strip_escapes(text)))


def _plan(body: Mapping[str, Any]) -> list[AgentEvent]:
    entries = values.items(body, "entries")
    if not entries:
        return []
    done = sum(entry.get("status") == "completed" for entry in entries)
    here = [e for e in entries if e.get("status") == "in_progress"] or [
        e for e in entries if e.get("status") != "completed"
    ]
    now = values.text(here[0], "content") if here else None
    rest = f": {now}" if now else ""
    return [Notification(message=f"[plan] {done} of {len(entries)} done{rest}")]
