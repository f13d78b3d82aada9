"""The client's side of one connection to ``codex app-server``: bytes in, events out.

    NEW -initialize-> INITIALIZING -> READY -open-> OPENING -> IDLE -start_turn-> TURN -> IDLE
                                      READY -read_account-> READING -> READY
                                      TURN -interrupt-> INTERRUPTING -> IDLE

An error brings OPENING and READING back to READY, and INITIALIZING to DEAD, as the end of the
stream does everywhere. There are no clocks in here: the driver has the deadlines, sends the pending
bytes after each call, and ends a program that does not answer.

Rule 1: each request of Codex's is answered exactly once. Rule 2: an approval is left open only in
TURN, where the driver has to answer it; everywhere else it is denied at once. Rule 3: what comes
never raises. Rule 4: one request of ours is under way at a time, but for the one that interrupts.
Rule 5: a turn ends by ``turn/completed`` with its id, or by an error to ``turn/start``, whichever
comes first; nothing that follows counts for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Any, Literal

from sortie.codex.approvals import APPROVALS, denial
from sortie.codex.events import (
    AccountRead,
    ApprovalAsked,
    CallDeclined,
    CallFailed,
    CodexEvent,
    ServerGreeted,
    ServerTold,
    ThreadOpened,
    TurnFinished,
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
    RpcResult,
)
from sortie.lines import LINE_LIMIT

Opening = Literal["thread/start", "thread/resume"]
_EARLY_ENDS = 16
"""Turns whose end came before the answer that names them; more are none of ours."""


class CodexState(Enum):
    """Where a connection stands."""

    NEW = auto()
    INITIALIZING = auto()
    READY = auto()
    READING = auto()
    OPENING = auto()
    IDLE = auto()
    TURN = auto()
    INTERRUPTING = auto()
    DEAD = auto()


_IN_TURN = (CodexState.TURN, CodexState.INTERRUPTING)


class CodexConnection:
    """A connection with at most one thread of its own; see the module."""

    def __init__(self, line_limit: int = LINE_LIMIT) -> None:
        self.state = CodexState.NEW
        self.thread_id = ""
        self._reader = MessageReader(line_limit)
        self._out: list[bytes] = []
        self._next_id = 1
        self._pending: tuple[int, str] | None = None
        self._turn_id: str | None = None
        self._early: dict[str, Mapping[str, Any]] = {}  # ends that came before the turn's id
        self._asked: dict[tuple[type, Id], tuple[Id, str]] = {}  # approvals that are open

    @property
    def asked(self) -> str:
        """The method of the request that is under way, "" where none is."""
        return self._pending[1] if self._pending is not None else ""

    # What the driver does. Each raises RuntimeError in a state that does not allow it.

    def initialize(self, name: str, title: str, version: str) -> None:
        """Greet the server."""
        info = {"name": name, "title": title, "version": version}
        able = {"experimentalApi": False, "requestAttestation": False}
        params = {"clientInfo": info, "capabilities": able}
        self._ask(CodexState.NEW, CodexState.INITIALIZING, "initialize", params)

    def read_account(self) -> None:
        """Ask with which account the server works, without refreshing its login."""
        self._ask(CodexState.READY, CodexState.READING, "account/read", {"refreshToken": False})

    def open(self, params: Mapping[str, Any], thread_id: str | None = None) -> None:
        """Begin a thread, or go on with the named one without its history."""
        how: Opening = "thread/start"
        if thread_id is not None:
            how, params = "thread/resume", {"threadId": thread_id, "excludeTurns": True, **params}
        self._ask(CodexState.READY, CodexState.OPENING, how, params)
        self.thread_id = thread_id or ""

    def start_turn(self, text: str, sandbox: Mapping[str, Any]) -> None:
        """Begin a turn with a policy of the sandbox, which goes for those that follow, too."""
        given = [{"type": "text", "text": text, "text_elements": []}]
        self._turn_id = None
        self._early.clear()
        params = {"threadId": self.thread_id, "input": given, "sandboxPolicy": sandbox}
        self._ask(CodexState.IDLE, CodexState.TURN, "turn/start", params)

    def interrupt(self) -> None:
        """Have a turn end; does nothing outside of one."""
        if self.state is not CodexState.TURN:
            return
        self.state = CodexState.INTERRUPTING
        self._leave_none_open()
        if self._turn_id is not None:  # else as soon as it is known
            self._send_interrupt(self._turn_id)

    def answer(self, asked: Id, result: Mapping[str, Any]) -> None:
        """Answer an approval that is open; does nothing where it is not any more."""
        if self._asked.pop(_key(asked), None) is not None:
            self._out.append(wire.result(asked, result))

    def data_to_send(self) -> bytes:
        """Return what is to be sent, each byte once."""
        data = b"".join(self._out)
        self._out.clear()
        return data

    # What comes

    def feed(self, chunk: bytes) -> list[CodexEvent]:
        """Take what Codex has written and return what it tells."""
        return self._take(self._reader.feed(chunk))

    def end(self) -> list[CodexEvent]:
        """Take the end of the stream; a last line without its end counts."""
        found = self._take(self._reader.close())
        self.state, self._pending = CodexState.DEAD, None
        self._asked.clear()
        self._out.clear()
        return found

    def _take(self, incoming: Sequence[Incoming]) -> list[CodexEvent]:
        events: list[CodexEvent] = []
        for each in incoming:
            match each:
                case RpcRequest():
                    events.append(self._asked_for(each))
                case BadRequest():
                    self._out.append(wire.error(None, wire.INVALID_REQUEST, "the id is none"))
                    events.append(CallDeclined("", {}))
                case RpcNotification():
                    events.append(self._told(each))
                case RpcResult() | RpcError():
                    if (answered := self._answered(each)) is not None:
                        events.append(answered)
                case _:
                    events.append(each)
        return events

    def _asked_for(self, request: RpcRequest) -> CodexEvent:
        key = _key(request.id)
        if request.method not in APPROVALS:
            message = f"{request.method} is not offered"
            self._out.append(wire.error(request.id, wire.METHOD_NOT_FOUND, message))
        elif key in self._asked:
            message = "a request with this id is open"
            self._out.append(wire.error(request.id, wire.INVALID_REQUEST, message))
        elif self.state is not CodexState.TURN:
            self._out.append(wire.result(request.id, denial(request.method)))
        else:
            self._asked[key] = (request.id, request.method)
            return ApprovalAsked(request.id, request.method, request.params)
        return CallDeclined(request.method, request.params)

    def _told(self, notice: RpcNotification) -> CodexEvent:
        params = notice.params
        named = values.text(params, "threadId") or values.text(params, "thread", "id")
        ours = named is None or named == self.thread_id
        in_turn = self.state in _IN_TURN
        if in_turn and ours:
            if notice.method == "turn/started" and (id_ := values.text(params, "turn", "id")):
                self._known(id_)
            told = values.text(params, "turnId")
            in_turn = told is None or told == self._turn_id  # else of a turn before
            if notice.method == "turn/completed":
                turn = values.mapping(params, "turn")
                if (ended := self._completed(turn)) is not None:
                    return ended
        return ServerTold(notice.method, params, ours, in_turn)

    def _known(self, turn_id: str) -> None:
        """Take the id of the turn that was asked for; the first one counts."""
        if self._turn_id is not None:
            return
        self._turn_id = turn_id
        if self.state is CodexState.INTERRUPTING:
            self._send_interrupt(turn_id)

    def _completed(self, turn: Mapping[str, Any]) -> TurnFinished | None:
        id_ = values.text(turn, "id") or ""
        if self._turn_id is None and len(self._early) < _EARLY_ENDS:
            self._early[id_] = turn
        return self._finished(turn) if id_ == self._turn_id else None

    def _finished(self, turn: Mapping[str, Any]) -> TurnFinished:
        self._leave_none_open()
        self.state, self._pending = CodexState.IDLE, None
        return TurnFinished(values.text(turn, "status") or "", turn)

    def _answered(self, answer: RpcResult | RpcError) -> CodexEvent | None:
        # A comparison alone would take true and 1.0 for 1.
        ours = self._pending is not None and _key(answer.id) == _key(self._pending[0])
        if self._pending is None or not ours:
            return None  # to nothing, to what was answered before, or to turn/interrupt
        method = self._pending[1]
        self._pending = None
        if isinstance(answer, RpcError):
            return self._failed(method, answer.code, answer.message)
        value = answer.value if isinstance(answer.value, dict) else {}
        match self.state:
            case CodexState.INITIALIZING:
                self.state = CodexState.READY
                self._out.append(wire.notice("initialized", {}))
                return ServerGreeted(value)
            case CodexState.READING:
                self.state = CodexState.READY
                return AccountRead(value)
            case CodexState.OPENING:
                return self._opened(method, value)
            case _:
                return self._begun(method, value)

    def _opened(self, method: str, result: Mapping[str, Any]) -> CodexEvent:
        named = values.text(result, "thread", "id")
        if named is None or self.thread_id not in ("", named):
            return self._failed(method, wire.INTERNAL_ERROR, "the answer names another thread")
        self.state, self.thread_id = CodexState.IDLE, named
        return ThreadOpened(named, result)

    def _begun(self, method: str, result: Mapping[str, Any]) -> CodexEvent | None:
        id_ = values.text(result, "turn", "id")
        if id_ is None:
            return self._failed(method, wire.INTERNAL_ERROR, "the answer names no turn")
        self._known(id_)
        early = self._early.get(self._turn_id or "")
        return None if early is None else self._finished(early)

    def _failed(self, method: str, code: int, message: str) -> CodexEvent:
        match self.state:
            case CodexState.INITIALIZING:
                self.state = CodexState.DEAD
            case CodexState.READING | CodexState.OPENING:
                self.state, self.thread_id = CodexState.READY, ""
            case _:
                self.state = CodexState.IDLE
        self._leave_none_open()
        return CallFailed(method, code, message)

    def _leave_none_open(self) -> None:
        """Deny all approvals that are open: the turn is over, or is to be."""
        self._out += [wire.result(id_, denial(method)) for id_, method in self._asked.values()]
        self._asked.clear()

    def _send_interrupt(self, turn_id: str) -> None:
        params = {"threadId": self.thread_id, "turnId": turn_id}
        self._out.append(wire.request(self._next_id, "turn/interrupt", params))
        self._next_id += 1

    def _ask(
        self, needed: CodexState, next_state: CodexState, method: str, params: Mapping[str, Any]
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
