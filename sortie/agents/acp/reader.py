"""Turns the protocol events of one agent's process into the events of the port; pure.

One reader lives as long as a process and reads its turns one after another. Events outside of a
turn, or from a replayed conversation, are signs of life only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sortie.acp.events import (
    ClientEvent,
    ExtensionTold,
    PermissionRequested,
    PromptAnswered,
    SessionUpdated,
)
from sortie.agents.acp.asking import Asking
from sortie.agents.acp.failures import failure_of, worded
from sortie.agents.acp.mcp_servers import COPILOT
from sortie.agents.acp.permissions import PermissionAnswer, decide, grant, is_of_server
from sortie.agents.acp.reader_context import ReaderContext as ReaderContext
from sortie.agents.acp.tools import AcpToolCalls, EarlierCalls
from sortie.agents.acp.usage import UsageReader
from sortie.agents.acp.verdict import INJECTED, TurnEvidence
from sortie.agents.exits import Failure
from sortie.agents.permissions import ruling_for
from sortie.agents.protocol_reader import ProtocolReader, plan_told
from sortie.json_rpc import values
from sortie.json_rpc.events import RequestDeclined, RequestFailed
from sortie.model import ErrorKind
from sortie.model.turns import (
    AgentEvent,
    Notification,
    PermissionAsked,
    ToolEnded,
)

_OF_MODES = ("current_mode_update", "config_option_update")


class UpdateReader(ProtocolReader[AcpToolCalls]):
    """See the module.

    ``is_kiro``: the agent has sent one of Kiro's extensions, so its credits may follow the turn's
    end. ``refusal`` is set where the agent did, without asking, what the rules deny: then the turn
    must end.
    """

    def __init__(self, context: ReaderContext) -> None:
        self._context = context
        self.agent = context.agent
        self.usage = UsageReader(context.agent)
        self.asking = Asking(context.agent, context.settings)
        self.is_kiro = False
        self._earlier = EarlierCalls()
        super().__init__(context.redacted)

    @property
    def is_cut_short(self) -> bool:
        """Whether the turn has to end before the agent ends it."""
        return self.refusal is not None or super().is_cut_short

    def begin(self) -> None:
        """Begin a turn."""
        super().begin()
        self.refusal: Failure | None = None
        self._evidence = TurnEvidence(self._context.agent)

    def _new_tools(self) -> AcpToolCalls:
        return AcpToolCalls(self._context.agent, self._context.workspace)

    def _model(self) -> str | None:
        return self.usage.answered or self.usage.model

    def _worded(self, failure: Failure) -> Failure:
        return worded(failure, self._texts.clean, self._context.now)

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
        announced = call.announced if self._context.agent == COPILOT else ""
        if server is not None and is_of_server(event.call, call.kind, server, announced):
            answer = grant(event.options)
        else:
            granted = None
            if ruling_for(call.kind, rules, outside=call.outside).asks:
                permissions, whole = self._context.permissions, call.whole_question
                granted = self._granted(permissions, call.permission, whole)
            answer = decide(
                call.kind,
                outside=call.outside,
                options=event.options,
                rules=rules,
                granted=granted,
            )
        question = call.question
        if not answer.allowed:
            call.denied = True
            self._evidence.denied(self._texts.clean(question))
        told = PermissionAsked(question=question, answer=answer.reason)
        return answer, self._clean([*self._texts.flush(), *events, told])

    def end(self) -> list[AgentEvent]:
        """End a turn, and return the remaining events."""
        return [*super().end(), *self.usage.credits()]

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
                return [
                    *self._texts.flush(),
                    *plan_told(values.items(body, "entries"), "content", "in_progress"),
                ]
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
            self.refusal = self._worded(failure)

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
