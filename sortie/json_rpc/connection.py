"""The client's side of one connection to an agent, as a state machine: bytes in, events out.

    NEW -initialize-> INITIALIZING -> READY -open-> OPENING -> IDLE -prompt-> TURN -> IDLE
                                      READY -read-> READING -> READY
                                                     IDLE -set-> SETTING -> IDLE
                                                     TURN -cancel-> CANCELLING -> IDLE

An error brings READING and OPENING back to READY, and INITIALIZING to DEAD, as the end of the
stream does everywhere. There are no clocks in here: the driver has the deadlines, sends the pending
bytes after each call, and ends an agent that does not answer.

Rule 1: each request of the agent's is answered exactly once. Rule 2: a question is left open only
in TURN, where the driver has to answer it; everywhere else it is refused at once. Rule 3: what
comes never raises. Rule 4: one request that is waited for is under way at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum, auto
from typing import Any, ClassVar, Generic, TypeVar

from sortie.json_rpc import wire
from sortie.json_rpc.events import (
    ConnectionEvent,
    RequestAnswered,
    RequestDeclined,
    RequestFailed,
    SessionOpened,
)
from sortie.json_rpc.wire import (
    BadRequest,
    Id,
    Incoming,
    MessageReader,
    RpcError,
    RpcNotification,
    RpcRequest,
    RpcResult,
)
from sortie.lines import LINE_LIMIT


class ConnectionState(Enum):
    """Where a connection stands."""

    NEW = auto()
    INITIALIZING = auto()
    READY = auto()
    READING = auto()
    OPENING = auto()
    IDLE = auto()
    SETTING = auto()
    TURN = auto()
    CANCELLING = auto()
    DEAD = auto()


E = TypeVar("E")


class AgentConnection(Generic[E]):
    """A connection with at most one session; see the module. ``E`` are the protocol's own events.

    A protocol makes the requests, says what their answers mean, and which questions an agent may
    ask (``questions``, by method). ``turn_method`` is that of the request that a turn is.
    """

    questions: ClassVar[Collection[str]]
    turn_method: ClassVar[str]

    def __init__(self, line_limit: int = LINE_LIMIT) -> None:
        self.state = ConnectionState.NEW
        self.session_id = ""
        self._reader = MessageReader(line_limit)
        self._out: list[bytes] = []
        self._next_id = 1
        self._pending: tuple[int, str] | None = None
        self._asked: dict[tuple[type, Id], RpcRequest] = {}  # questions that are open

    # For protocols

    def cancel(self) -> None:
        """Have a turn end; does nothing outside of one."""
        raise NotImplementedError

    def _greeted(self, result: Mapping[str, Any]) -> ConnectionEvent:
        """Take the answer to the greeting, and go to READY."""
        raise NotImplementedError

    def _opened(self, method: str, result: Mapping[str, Any]) -> ConnectionEvent:
        """Take the answer to a request that opens a session; see ``_has_session``."""
        raise NotImplementedError

    def _turn_answered(self, method: str, result: Mapping[str, Any]) -> E | ConnectionEvent | None:
        """Take the answer to the request of a turn; see ``_end_turn``."""
        raise NotImplementedError

    def _told(self, notice: RpcNotification) -> E:
        """Take a notification."""
        raise NotImplementedError

    def _question(self, request: RpcRequest) -> E:
        """Take a question, which waits until ``answer``."""
        raise NotImplementedError

    def _refusal(self, method: str) -> Mapping[str, Any]:
        """Return the answer that refuses a question."""
        raise NotImplementedError

    # What the driver does

    @property
    def asked(self) -> str:
        """The method of the request that is under way, "" where none is."""
        return self._pending[1] if self._pending is not None else ""

    def answer(self, asked: Id, result: Mapping[str, Any]) -> None:
        """Answer a question that is open; does nothing where it is not any more."""
        if self._asked.pop(_key(asked), None) is not None:
            self._out.append(wire.result(asked, result))

    def data_to_send(self) -> bytes:
        """Return what is to be sent, each byte once."""
        data = b"".join(self._out)
        self._out.clear()
        return data

    # What comes

    def feed(self, chunk: bytes) -> list[E | ConnectionEvent]:
        """Take what the agent has written and return what it tells."""
        return self._take(self._reader.feed(chunk))

    def end(self) -> list[E | ConnectionEvent]:
        """Take the end of the stream; a last line without its end counts."""
        found = self._take(self._reader.close())
        self.state, self._pending = ConnectionState.DEAD, None
        self._asked.clear()
        self._out.clear()
        return found

    def _take(self, incoming: Sequence[Incoming]) -> list[E | ConnectionEvent]:
        events: list[E | ConnectionEvent] = []
        for each in incoming:
            match each:
                case RpcRequest():
                    events.append(self._asked_for(each))
                case BadRequest():
                    self._out.append(wire.error(None, wire.INVALID_REQUEST, "the id is none"))
                    events.append(RequestDeclined("", {}))
                case RpcNotification():
                    events.append(self._told(each))
                case RpcResult() | RpcError():
                    if (answered := self._answered(each)) is not None:
                        events.append(answered)
                case _:
                    events.append(each)
        return events

    def _asked_for(self, request: RpcRequest) -> E | ConnectionEvent:
        id_, method, key = request.id, request.method, _key(request.id)
        if method not in self.questions:
            self._out.append(wire.error(id_, wire.METHOD_NOT_FOUND, f"{method} is not offered"))
        elif self.state is not ConnectionState.TURN:
            self._out.append(wire.result(id_, self._refusal(method)))
        elif key in self._asked:
            message = "a request with this id is open"
            self._out.append(wire.error(id_, wire.INVALID_REQUEST, message))
        else:
            self._asked[key] = request
            return self._question(request)
        return RequestDeclined(method, request.params)

    def _answered(self, answer: RpcResult | RpcError) -> E | ConnectionEvent | None:
        # A comparison alone would take true and 1.0 for 1.
        ours = self._pending is not None and _key(answer.id) == _key(self._pending[0])
        if self._pending is None or not ours:
            return None  # an answer to nothing, or to what was answered before
        method = self._pending[1]
        self._pending = None
        if isinstance(answer, RpcError):
            return self._failed(method, answer.code, answer.message, answer.data)
        value = answer.value if isinstance(answer.value, dict) else {}
        match self.state:
            case ConnectionState.INITIALIZING:
                return self._greeted(value)
            case ConnectionState.OPENING:
                return self._opened(method, value)
            case ConnectionState.READING:
                self.state = ConnectionState.READY
                return RequestAnswered(method, value)
            case ConnectionState.SETTING:
                self.state = ConnectionState.IDLE
                return RequestAnswered(method, value)
            case _:
                return self._turn_answered(method, value)

    def _has_session(self, session_id: str, result: Mapping[str, Any]) -> SessionOpened:
        self.state, self.session_id = ConnectionState.IDLE, session_id
        return SessionOpened(session_id, result)

    def _end_turn(self) -> None:
        self._refuse_open_questions()
        self.state, self._pending = ConnectionState.IDLE, None

    def _failed(self, method: str, code: int, message: str, data: Any = None) -> RequestFailed:
        match self.state:
            case ConnectionState.INITIALIZING:
                self.state = ConnectionState.DEAD
            case ConnectionState.READING | ConnectionState.OPENING:
                self.state, self.session_id = ConnectionState.READY, ""
            case _:
                self._end_turn()
        return RequestFailed(method, code, message, data)

    def _refuse_open_questions(self) -> None:
        """Refuse all questions that are open: the turn is over, or is to be."""
        for request in self._asked.values():
            self._out.append(wire.result(request.id, self._refusal(request.method)))
        self._asked.clear()

    def _ask(
        self,
        needed: ConnectionState,
        next_state: ConnectionState,
        method: str,
        params: Mapping[str, Any],
    ) -> None:
        """Send a request that is waited for. Raises RuntimeError in a state that does not allow
        it."""
        if self.state is not needed:
            raise RuntimeError(f"{method} needs the state {needed.name}, not {self.state.name}")
        self.state = next_state
        self._pending = (self._next_id, method)
        self._send_request(method, params)

    def _send_request(self, method: str, params: Mapping[str, Any]) -> None:
        self._out.append(wire.request(self._next_id, method, params))
        self._next_id += 1


def _key(asked: Id) -> tuple[type, Id]:
    """Return what tells ids apart: 0, 0.0, "0" and null are four."""
    return (type(asked), asked)
