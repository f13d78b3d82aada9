"""The client's side of one connection to an agent, as a state machine: bytes in, events out.

    NEW -initialize-> INITIALIZING -> READY -open-> OPENING -> IDLE -prompt-> TURN -> IDLE
                                                     IDLE -set-> SETTING -> IDLE
                                                     TURN -cancel-> CANCELLING -> IDLE

An error brings OPENING back to READY, and INITIALIZING to DEAD, as the end of the stream does
everywhere. There are no clocks in here: the driver has the deadlines, sends the pending bytes after
each call, and ends an agent that does not answer.

Rule 1: each request of the agent's is answered exactly once. Rule 2: a permission is left open
only in TURN, where the driver has to answer it; everywhere else it is answered ``cancelled`` at
once. Rule 3: what comes never raises. Rule 4: one request of ours is under way at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Any, Literal

from sortie.acp.events import (
    ClientEvent,
    ExtensionTold,
    Initialized,
    PermissionRequested,
    PromptAnswered,
    RequestDeclined,
    RequestFailed,
    SessionOpened,
    SessionUpdated,
    SettingTaken,
    When,
)
from sortie.json_rpc import values, wire
from sortie.json_rpc.wire import (
    BadRequest,
    Id,
    Incoming,
    MessageReader,
    RpcError,
    RpcNotification,
    RpcRequest,
)
from sortie.lines import LINE_LIMIT

PROTOCOL_VERSION = 1
PERMISSION = "session/request_permission"
How = Literal["session/new", "session/load", "session/resume"]


class ConnectionState(Enum):
    """Where a connection stands."""

    NEW = auto()
    INITIALIZING = auto()
    READY = auto()
    OPENING = auto()
    IDLE = auto()
    SETTING = auto()
    TURN = auto()
    CANCELLING = auto()
    DEAD = auto()


_S = ConnectionState
_WHEN: Mapping[ConnectionState, When] = {
    _S.OPENING: "replay",
    _S.TURN: "turn",
    _S.CANCELLING: "turn",
}
_CAPABILITIES = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
_CANCELLED = {"outcome": {"outcome": "cancelled"}}


class ClientConnection:
    """A connection with at most one session; see the module."""

    def __init__(self, line_limit: int = LINE_LIMIT) -> None:
        self.state = ConnectionState.NEW
        self.session_id = ""
        self._reader = MessageReader(line_limit)
        self._out: list[bytes] = []
        self._next_id = 1
        self._pending: tuple[int, str] | None = None
        self._asked: dict[tuple[type, Id], Id] = {}  # permissions that are open
        self._how: How = "session/new"

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
        self._ask(ConnectionState.IDLE, ConnectionState.TURN, "session/prompt", params)

    def cancel(self) -> None:
        """Have a turn end; does nothing outside of one."""
        if self.state is not ConnectionState.TURN:
            return
        self.state = ConnectionState.CANCELLING
        self._out.append(wire.notice("session/cancel", {"sessionId": self.session_id}))
        self._leave_none_open()

    def answer_permission(self, asked: Id, option_id: str | None) -> None:
        """Choose an option of a permission that is open, None for none of them.

        Does nothing where the agent has taken it back, or the turn was cancelled.
        """
        if _key(asked) not in self._asked:
            return
        del self._asked[_key(asked)]
        chosen = {"outcome": {"outcome": "selected", "optionId": option_id}}
        self._out.append(wire.result(asked, _CANCELLED if option_id is None else chosen))

    def data_to_send(self) -> bytes:
        """Return what is to be sent, each byte once."""
        data = b"".join(self._out)
        self._out.clear()
        return data

    # What comes

    def feed(self, chunk: bytes) -> list[ClientEvent]:
        """Take what the agent has written and return what it tells."""
        return self._take(self._reader.feed(chunk))

    def end(self) -> list[ClientEvent]:
        """Take the end of the stream; a last line without its end counts."""
        found = self._take(self._reader.close())
        self.state, self._pending = ConnectionState.DEAD, None
        self._asked.clear()
        self._out.clear()
        return found

    def _take(self, incoming: Sequence[Incoming]) -> list[ClientEvent]:
        events: list[ClientEvent] = []
        for each in incoming:
            match each:
                case RpcRequest():
                    events.append(self._asked_for(each))
                case BadRequest():
                    fault = wire.error(None, wire.INVALID_REQUEST, "the id is none")
                    self._out.append(fault)
                    events.append(RequestDeclined("", {}))
                case RpcNotification():
                    events.append(self._told(each))
                case wire.RpcResult() | RpcError():
                    if (answered := self._answered(each)) is not None:
                        events.append(answered)
                case _:
                    events.append(each)
        return events

    def _asked_for(self, request: RpcRequest) -> ClientEvent:
        if request.method != PERMISSION:
            message = f"{request.method} is not offered"
            self._out.append(wire.error(request.id, wire.METHOD_NOT_FOUND, message))
            return RequestDeclined(request.method, request.params)
        if self.state is not ConnectionState.TURN:
            self._out.append(wire.result(request.id, _CANCELLED))
            return RequestDeclined(request.method, request.params)
        if _key(request.id) in self._asked:
            message = "a request with this id is open"
            self._out.append(wire.error(request.id, wire.INVALID_REQUEST, message))
            return RequestDeclined(request.method, request.params)
        self._asked[_key(request.id)] = request.id
        call = values.mapping(request.params, "toolCall")
        options = tuple(values.items(request.params, "options"))
        return PermissionRequested(request.id, call, options)

    def _told(self, notice: RpcNotification) -> ClientEvent:
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

    def _answered(self, answer: wire.RpcResult | RpcError) -> ClientEvent | None:
        # A comparison alone would take true and 1.0 for 1.
        ours = self._pending is not None and _key(answer.id) == _key(self._pending[0])
        if self._pending is None or not ours:
            return None  # an answer to nothing, or to what was answered before
        method = self._pending[1]
        self._pending = None
        if isinstance(answer, RpcError):
            return self._failed(method, answer.code, answer.message, answer.data)
        value = answer.value if isinstance(answer.value, dict) else {}
        if method == "initialize":
            return self._initialized(value)
        if self.state is ConnectionState.OPENING:
            return self._opened(method, value)
        self._leave_none_open()
        self.state = ConnectionState.IDLE
        if method == "session/prompt":
            return PromptAnswered(values.text(value, "stopReason") or "", value)
        return SettingTaken(method, value)

    def _initialized(self, result: Mapping[str, Any]) -> ClientEvent:
        version = result.get("protocolVersion")
        if type(version) is not int or version != PROTOCOL_VERSION:
            message = f"the agent speaks version {str(version)[:20]} of the protocol, not 1"
            return self._failed("initialize", wire.INVALID_PARAMS, message, None)
        self.state = ConnectionState.READY
        return Initialized(result)

    def _opened(self, method: str, result: Mapping[str, Any]) -> ClientEvent:
        if self._how == "session/new":
            named = values.text(result, "sessionId")
            if named is None:
                return self._failed(
                    method, wire.INTERNAL_ERROR, "the answer names no session", None
                )
            self.session_id = named
        self.state = ConnectionState.IDLE
        return SessionOpened(self.session_id, result)

    def _failed(self, method: str, code: int, message: str, data: Any) -> ClientEvent:
        match self.state:
            case ConnectionState.INITIALIZING:
                self.state = ConnectionState.DEAD
            case ConnectionState.OPENING:
                self.state, self.session_id = ConnectionState.READY, ""
            case _:
                self.state = ConnectionState.IDLE
        self._leave_none_open()
        return RequestFailed(method, code, message, data)

    def _leave_none_open(self) -> None:
        """Answer all permissions that are open: the turn is over, or is to be."""
        self._out += [wire.result(asked, _CANCELLED) for asked in self._asked.values()]
        self._asked.clear()

    def _ask(
        self,
        needed: ConnectionState,
        next_state: ConnectionState,
        method: str,
        params: Mapping[str, Any],
    ) -> None:
        if self.state is not needed:
            raise RuntimeError(f"{method} needs the state {needed.name}, not {self.state.name}")
        self.state = next_state
        self._pending = (self._next_id, method)
        self._out.append(wire.request(self._next_id, method, params))
        self._next_id += 1


def _key(asked: Id) -> tuple[type, Id]:
    """Return what tells ids apart: 0, 0.0, "0" and null are four."""
    return (type(asked), asked)
