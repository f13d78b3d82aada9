"""The client's side of the Agent Client Protocol on one connection; see AgentConnection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from sortie.acp.events import (
    AcpEvent,
    ExtensionTold,
    PermissionRequested,
    PromptAnswered,
    SessionUpdated,
    When,
)
from sortie.json_rpc import values, wire
from sortie.json_rpc.connection import AgentConnection, ConnectionState
from sortie.json_rpc.events import Initialized, RequestFailed, SessionOpened
from sortie.json_rpc.wire import Id, RpcNotification, RpcRequest

PROTOCOL_VERSION = 1
PERMISSION = "session/request_permission"
How = Literal["session/new", "session/load", "session/resume"]

_S = ConnectionState
_WHEN: Mapping[ConnectionState, When] = {
    _S.OPENING: "replay",
    _S.TURN: "turn",
    _S.CANCELLING: "turn",
}
_CAPABILITIES = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
_CANCELLED = {"outcome": {"outcome": "cancelled"}}


class ClientConnection(AgentConnection[AcpEvent]):
    """A connection with at most one session."""

    questions = (PERMISSION,)
    turn_method = "session/prompt"
    _how: How = "session/new"

    # What the driver does. Each raises RuntimeError in a state that does not allow it.

    def initialize(self, name: str, title: str, version: str) -> None:
        """Greet the agent."""
        info = {"name": name, "title": title, "version": version}
        self._ask(
            ConnectionState.NEW,
            ConnectionState.INITIALIZING,
            "initialize",
            {
                "protocolVersion": PROTOCOL_VERSION,
                "clientCapabilities": _CAPABILITIES,
                "clientInfo": info,
            },
        )

    def open(
        self,
        cwd: str,
        how: How = "session/new",
        session_id: str = "",
        servers: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Begin a session, or go on with the named one; ``cwd`` is absolute. ``servers`` are those
        of MCP that the agent is to connect to, as the protocol describes them."""
        named = {} if how == "session/new" else {"sessionId": session_id}
        params = {**named, "cwd": cwd, "mcpServers": list(servers)}
        self._ask(ConnectionState.READY, ConnectionState.OPENING, how, params)
        self._how, self.session_id = how, named.get("sessionId", "")

    def set(self, method: str, params: Mapping[str, Any]) -> None:
        """Set something of the session, as by ``session/set_mode``."""
        params = {"sessionId": self.session_id, **params}
        self._ask(ConnectionState.IDLE, ConnectionState.SETTING, method, params)

    def prompt(self, text: str, traceparent: str | None = None) -> None:
        """Begin a turn; ``traceparent`` is under what the agent's own spans belong.

        https://agentclientprotocol.com/protocol/extensibility keeps that key of ``_meta`` for it.
        """
        prompt = [{"type": "text", "text": text}]
        params: dict[str, Any] = {"sessionId": self.session_id, "prompt": prompt}
        if traceparent is not None:
            params["_meta"] = {"traceparent": traceparent}
        self._ask(ConnectionState.IDLE, ConnectionState.TURN, self.turn_method, params)

    def cancel(self) -> None:
        """Have a turn end; does nothing outside of one."""
        if self.state is not ConnectionState.TURN:
            return
        self.state = ConnectionState.CANCELLING
        self._out.append(wire.notice("session/cancel", {"sessionId": self.session_id}))
        self._refuse_open_questions()

    def answer_permission(self, asked: Id, option_id: str | None) -> None:
        """Choose an option of a permission that is open, None for none of them.

        Does nothing where the agent has taken it back, or the turn was cancelled.
        """
        chosen = {"outcome": {"outcome": "selected", "optionId": option_id}}
        self.answer(asked, _CANCELLED if option_id is None else chosen)

    # What comes

    def _question(self, request: RpcRequest) -> PermissionRequested:
        call = values.mapping(request.params, "toolCall")
        options = tuple(values.items(request.params, "options"))
        return PermissionRequested(request.id, call, options)

    def _refusal(self, method: str) -> Mapping[str, Any]:  # noqa: ARG002
        return _CANCELLED

    def _told(self, notice: RpcNotification) -> SessionUpdated | ExtensionTold:
        if notice.method == "session/update":
            update = values.mapping(notice.params, "update")
            named = notice.params.get("sessionId")
            ours = self.session_id in ("", named) or not isinstance(named, str)
            kind = values.text(update, "sessionUpdate") or ""
            return SessionUpdated(kind, update, _WHEN.get(self.state, "late"), ours)
        if notice.method == "$/cancel_request":
            taken_back = notice.params.get("requestId")
            if wire.is_id(taken_back):
                self.answer_permission(taken_back, None)
        return ExtensionTold(notice.method, notice.params)

    def _greeted(self, result: Mapping[str, Any]) -> Initialized | RequestFailed:
        version = result.get("protocolVersion")
        if type(version) is not int or version != PROTOCOL_VERSION:
            message = f"the agent speaks version {str(version)[:20]} of the protocol, not 1"
            return self._failed("initialize", wire.INVALID_PARAMS, message)
        self.state = ConnectionState.READY
        return Initialized(result)

    def _opened(self, method: str, result: Mapping[str, Any]) -> SessionOpened | RequestFailed:
        named: str | None = self.session_id
        if self._how == "session/new":
            named = values.text(result, "sessionId")
        if named is None:
            return self._failed(method, wire.INTERNAL_ERROR, "the answer names no session")
        return self._has_session(named, result)

    def _turn_answered(self, method: str, result: Mapping[str, Any]) -> PromptAnswered:  # noqa: ARG002
        self._end_turn()
        return PromptAnswered(values.text(result, "stopReason") or "", result)
