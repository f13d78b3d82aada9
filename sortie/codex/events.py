"""What a connection to Codex tells of what has come; see ``client``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from sortie.json_rpc.wire import Id, Junk
from sortie.lines import LineTooLong
from sortie.model.hiding import repr_without


class ServerGreeted(Struct, frozen=True):
    """The server answers the greeting; ``result`` has its version and its directory."""

    result: Mapping[str, Any]

    __repr__ = repr_without("result")


class AccountRead(Struct, frozen=True):
    """The server says with which account it works."""

    result: Mapping[str, Any]

    __repr__ = repr_without("result")


class ThreadOpened(Struct, frozen=True):
    """There is a thread, new or gone on with; ``result`` has its model and its sandbox."""

    thread_id: str
    result: Mapping[str, Any]

    __repr__ = repr_without("result")


class TurnFinished(Struct, frozen=True):
    """The turn is over. ``status`` is Codex's word, "" where it gave none."""

    status: str
    turn: Mapping[str, Any]

    __repr__ = repr_without("turn")


class CallFailed(Struct, frozen=True):
    """A request of ours was answered with an error; one to ``turn/start`` ends the turn."""

    method: str
    code: int
    message: str

    __repr__ = repr_without("message")


class ApprovalAsked(Struct, frozen=True):
    """Codex asks whether it may do something, and waits until ``answer``."""

    id: Id
    method: str
    params: Mapping[str, Any]

    __repr__ = repr_without("params")


class CallDeclined(Struct, frozen=True):
    """A request of Codex's was answered already: it is not offered, or no turn is under way."""

    method: str
    params: Mapping[str, Any]

    __repr__ = repr_without("params")


class ServerTold(Struct, frozen=True):
    """Codex tells something.

    ``ours``: it is about the connection's thread or about none, and not about another one, such as
    a subagent's. ``in_turn``: it came while a turn was under way, and is about no earlier one.
    """

    method: str
    params: Mapping[str, Any]
    ours: bool = True
    in_turn: bool = True

    __repr__ = repr_without("params")


CodexEvent = (
    ServerGreeted
    | AccountRead
    | ThreadOpened
    | TurnFinished
    | CallFailed
    | ApprovalAsked
    | CallDeclined
    | ServerTold
    | Junk
    | LineTooLong
)
