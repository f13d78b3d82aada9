"""What a connection to Codex tells of what has come; see ``client``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from sortie.json_rpc.events import ConnectionEvent
from sortie.json_rpc.wire import Id
from sortie.model.hiding import repr_without


class TurnFinished(Struct, frozen=True):
    """The turn is over. ``status`` is Codex's word, "" where it gave none."""

    status: str
    turn: Mapping[str, Any]

    __repr__ = repr_without("turn")


class ApprovalAsked(Struct, frozen=True):
    """Codex asks whether it may do something, and waits until ``answer``."""

    id: Id
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


ThreadEvent = TurnFinished | ApprovalAsked | ServerTold
CodexEvent = ConnectionEvent | ThreadEvent
