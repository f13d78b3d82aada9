"""The client's side of one connection to ``codex app-server``; see AgentConnection.

A session is a thread. Rule: a turn ends by ``turn/completed`` with its id, or by an error to
``turn/start``, whichever comes first; nothing that follows counts for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from sortie.codex.approvals import APPROVALS, denial
from sortie.codex.events import ApprovalAsked, ServerTold, ThreadEvent, TurnFinished
from sortie.json_rpc import values, wire
from sortie.json_rpc.connection import AgentConnection, ConnectionState
from sortie.json_rpc.events import Initialized, RequestFailed, SessionOpened
from sortie.json_rpc.wire import RpcNotification, RpcRequest
from sortie.lines import LINE_LIMIT

Opening = Literal["thread/start", "thread/resume"]
_EARLY_ENDS = 16
"""Turns whose end came before the answer that names them; more are none of ours."""

_IN_TURN = (ConnectionState.TURN, ConnectionState.CANCELLING)


class CodexConnection(AgentConnection[ThreadEvent]):
    """A connection with at most one thread of its own; see the module."""

    questions = APPROVALS
    turn_method = "turn/start"

    def __init__(self, line_limit: int = LINE_LIMIT) -> None:
        super().__init__(line_limit)
        self._turn_id: str | None = None
        self._early: dict[str, Mapping[str, Any]] = {}  # ends that came before the turn's id

    # What the driver does. Each raises RuntimeError in a state that does not allow it.

    def initialize(self, name: str, title: str, version: str) -> None:
        """Greet the server."""
        info = {"name": name, "title": title, "version": version}
        able = {"experimentalApi": False, "requestAttestation": False}
        params = {"clientInfo": info, "capabilities": able}
        self._ask(ConnectionState.NEW, ConnectionState.INITIALIZING, "initialize", params)

    def read_account(self) -> None:
        """Ask with which account the server works, without refreshing its login."""
        self._ask(
            ConnectionState.READY, ConnectionState.READING, "account/read", {"refreshToken": False}
        )

    def open(self, params: Mapping[str, Any], thread_id: str | None = None) -> None:
        """Begin a thread, or go on with the named one without its history."""
        how: Opening = "thread/start"
        if thread_id is not None:
            how, params = "thread/resume", {"threadId": thread_id, "excludeTurns": True, **params}
        self._ask(ConnectionState.READY, ConnectionState.OPENING, how, params)
        self.session_id = thread_id or ""

    def start_turn(self, text: str, sandbox: Mapping[str, Any]) -> None:
        """Begin a turn with a policy of the sandbox, which goes for those that follow, too."""
        given = [{"type": "text", "text": text, "text_elements": []}]
        self._turn_id = None
        self._early.clear()
        params = {"threadId": self.session_id, "input": given, "sandboxPolicy": sandbox}
        self._ask(ConnectionState.IDLE, ConnectionState.TURN, self.turn_method, params)

    def cancel(self) -> None:
        """Have a turn end; does nothing outside of one."""
        if self.state is not ConnectionState.TURN:
            return
        self.state = ConnectionState.CANCELLING
        self._refuse_open_questions()
        if self._turn_id is not None:  # else as soon as it is known
            self._send_interrupt(self._turn_id)

    # What comes

    def _question(self, request: RpcRequest) -> ApprovalAsked:
        return ApprovalAsked(request.id, request.method, request.params)

    def _refusal(self, method: str) -> Mapping[str, Any]:
        return denial(method)

    def _told(self, notice: RpcNotification) -> ServerTold | TurnFinished:
        params = notice.params
        named = values.text(params, "threadId") or values.text(params, "thread", "id")
        ours = named is None or named == self.session_id
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
        if self.state is ConnectionState.CANCELLING:
            self._send_interrupt(turn_id)

    def _completed(self, turn: Mapping[str, Any]) -> TurnFinished | None:
        id_ = values.text(turn, "id") or ""
        if self._turn_id is None and len(self._early) < _EARLY_ENDS:
            self._early[id_] = turn
        return self._finished(turn) if id_ == self._turn_id else None

    def _finished(self, turn: Mapping[str, Any]) -> TurnFinished:
        self._end_turn()
        return TurnFinished(values.text(turn, "status") or "", turn)

    def _greeted(self, result: Mapping[str, Any]) -> Initialized:
        self.state = ConnectionState.READY
        self._out.append(wire.notice("initialized", {}))
        return Initialized(result)

    def _opened(self, method: str, result: Mapping[str, Any]) -> SessionOpened | RequestFailed:
        named = values.text(result, "thread", "id")
        if named is None or self.session_id not in ("", named):
            return self._failed(method, wire.INTERNAL_ERROR, "the answer names another thread")
        return self._has_session(named, result)

    def _turn_answered(
        self, method: str, result: Mapping[str, Any]
    ) -> TurnFinished | RequestFailed | None:
        id_ = values.text(result, "turn", "id")
        if id_ is None:
            return self._failed(method, wire.INTERNAL_ERROR, "the answer names no turn")
        self._known(id_)
        early = self._early.get(self._turn_id or "")
        return None if early is None else self._finished(early)

    def _send_interrupt(self, turn_id: str) -> None:
        self._send_request("turn/interrupt", {"threadId": self.session_id, "turnId": turn_id})
