"""Turns what Codex tells into the events of the port; pure.

One reader lives as long as a process and reads its turns one after another. What comes outside of a
turn is a sign of life only, but for sums of tokens, which say what was used before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from sortie.agents.codex.failures import error_line, turn_failure
from sortie.agents.codex.items import ToolItems
from sortie.agents.codex.leave import leave_for
from sortie.agents.codex.settings import CodexSettings
from sortie.agents.codex.usage import AccountLimits, ThreadUsage
from sortie.agents.exits import Failure
from sortie.agents.protocol_reader import ProtocolReader, plan_told
from sortie.codex.approvals import denial, grant
from sortie.codex.events import ApprovalAsked, CodexEvent, ServerTold, TurnFinished
from sortie.json_rpc import values
from sortie.json_rpc.events import RequestDeclined, RequestFailed
from sortie.model import ErrorKind
from sortie.model.asked_permissions import AskedPermissions
from sortie.model.hiding import repr_without
from sortie.model.turns import (
    AgentEvent,
    Notification,
    PermissionAsked,
)

_ITEMS_KNOWN = 1000
_WARNINGS = {"warning": "message", "configWarning": "summary", "deprecationNotice": "summary"}
_THOUGHTS = ("item/reasoning/summaryTextDelta", "item/reasoning/textDelta")


class CodexContext(Struct, frozen=True, kw_only=True):
    """What reading depends on; ``redacted`` puts something else in the place of secrets.

    ``permissions`` are asked of people by it; None where they cannot be asked.
    """

    workspace: str
    settings: CodexSettings
    redacted: Callable[[str], str]
    permissions: AskedPermissions | None = None

    __repr__ = repr_without("redacted")


class CodexReader(ProtocolReader[ToolItems]):
    """See the module."""

    def __init__(self, context: CodexContext) -> None:
        self._context = context
        self.usage = ThreadUsage()
        self._limits = AccountLimits()
        super().__init__(context.redacted)

    def begin(self) -> None:
        """Begin a turn."""
        super().begin()
        self._items: dict[str, Mapping[str, Any]] = {}
        self._streamed: set[str] = set()

    def _new_tools(self) -> ToolItems:
        return ToolItems()

    def _model(self) -> str | None:
        return self.usage.model

    def take(self, event: CodexEvent) -> list[AgentEvent]:
        """Take an event of the protocol and return the events of the port."""
        match event:
            case TurnFinished():
                return self._clean(self._finished(event))
            case RequestFailed(method="turn/start"):
                message = f"codex did not begin the turn: {event.message} (error {event.code})"
                return self._clean(self._close(Failure(ErrorKind.TURN_FAILED, message)))
            case RequestDeclined() if self._in_turn and event.method:
                told = PermissionAsked(question=event.method, answer="declined: it is not offered")
                return self._clean([told])
            case ServerTold():
                return self._clean(self._told(event))
            case _:
                return []

    def approve(self, event: ApprovalAsked) -> tuple[Mapping[str, Any], list[AgentEvent]]:
        """Take a question of Codex's; return the answer to it, and its events."""
        item = self._items.get(values.text(event.params, "itemId") or "")
        rules, workspace = self._context.settings.permissions, self._context.workspace
        leave = leave_for(event.method, event.params, item, rules, workspace)
        allowed, reason = leave.allowed, leave.reason
        if leave.permission is not None:
            granted = self._granted(self._context.permissions, leave.permission, leave.whole)
            allowed = granted is not None
            by = "by a person" if allowed else "until a person allows it"
            reason = f"{'allowed' if allowed else 'denied'} {reason}, {by}"
        told = PermissionAsked(question=leave.question, answer=reason)
        answer = grant(event.method, event.params) if allowed else denial(event.method)
        return answer, self._clean([*self._texts.flush(), told])

    # What is told

    def _told(self, event: ServerTold) -> list[AgentEvent]:
        params = event.params
        match event.method:
            case "thread/tokenUsage/updated":
                used = self.usage.take(params, ours=event.ours, counts=event.in_turn)
                return [*used]
            case "thread/started" if not event.ours:
                self.usage.begun(values.text(params, "thread", "id") or "")
            case "account/rateLimits/updated":
                self._limits.take(params)
            case method if method in _WARNINGS:  # also of what came before the first turn
                said = values.text(params, _WARNINGS[method])
                return [Notification(message=f"[warning] {said}")] if said else []
            case "item/started" if not event.ours and self._in_turn:
                self._keep_changes(values.mapping(params, "item"))  # a subagent may ask, too
            case _ if event.ours and self._in_turn and event.in_turn:
                return self._of_turn(event.method, params)
        return []

    def _of_turn(self, method: str, params: Mapping[str, Any]) -> list[AgentEvent]:
        match method:
            case "item/started":
                return self._item_started(values.mapping(params, "item"))
            case "item/completed":
                return self._item_completed(values.mapping(params, "item"))
            case "item/agentMessage/delta":
                return self._piece("", params)
            case method if method in _THOUGHTS:
                return self._piece("[thought] ", params)
            case "turn/plan/updated":
                return [
                    *self._texts.flush(),
                    *plan_told(values.items(params, "plan"), "step", "inProgress"),
                ]
            case "error":
                return [*self._texts.flush(), Notification(message=f"[error] {error_line(params)}")]
            case "model/rerouted":
                self.usage.model = values.text(params, "toModel") or self.usage.model
                return [Notification(message=f"[model] {self.usage.model}")]
        return []

    def _piece(self, mark: str, params: Mapping[str, Any]) -> list[AgentEvent]:
        item = values.text(params, "itemId") or ""
        piece = values.text(params, "delta") or ""
        if len(self._streamed) < _ITEMS_KNOWN:
            self._streamed.add(item)
        if not mark:
            self._answer.add(piece, item)
        return [*self._texts.add(mark, item, piece)]

    def _item_started(self, item: Mapping[str, Any]) -> list[AgentEvent]:
        self._keep_changes(item)
        if item.get("type") == "contextCompaction":
            return [
                *self._texts.flush(),
                Notification(message="[session] the context is compacted"),
            ]
        begun = self._tools.started(item)
        return [*self._texts.flush(), *begun] if begun else []

    def _keep_changes(self, item: Mapping[str, Any]) -> None:
        """Keep a change of files: a question about it names the item alone."""
        id_ = values.text(item, "id")
        if id_ is not None and item.get("type") == "fileChange" and len(self._items) < _ITEMS_KNOWN:
            self._items[id_] = item

    def _item_completed(self, item: Mapping[str, Any]) -> list[AgentEvent]:
        id_, kind = values.text(item, "id") or "", item.get("type")
        if kind in ("agentMessage", "reasoning"):
            flushed: list[AgentEvent] = []
            if id_ not in self._streamed:
                flushed += self._whole(kind, id_, item)
            return [*flushed, *self._texts.flush()]
        self._items.pop(id_, None)
        self._answer.close()
        ended = self._tools.completed(item)
        return [*self._texts.flush(), *ended] if ended else []

    def _whole(self, kind: str, id_: str, item: Mapping[str, Any]) -> Sequence[AgentEvent]:
        """Take a message of which no pieces came."""
        if kind == "agentMessage":
            said = values.text(item, "text") or ""
            self._answer.add(said, id_)
            return self._texts.add("", id_, said)
        parts = item.get("summary")
        texts = [part for part in parts if isinstance(part, str)] if isinstance(parts, list) else []
        return self._texts.add("[thought] ", id_, "\n".join(texts))

    # How a turn ends

    def _finished(self, event: TurnFinished) -> list[AgentEvent]:
        error = values.mapping(event.turn, "error")
        return self._close(turn_failure(event.status, error, self._limits.resets_at))
