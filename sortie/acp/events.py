"""What a client's connection tells of what has come; see ``client``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from sortie.json_rpc.events import ConnectionEvent
from sortie.json_rpc.wire import Id
from sortie.model.hiding import repr_without

When = Literal["replay", "turn", "late"]
"""Where an update stands: in the opening of a session, in a turn, or outside of both."""


class SessionUpdated(Struct, frozen=True):
    """The agent tells something of a session; ``kind`` is "" where it does not say of what kind.

    ``ours``: it is the connection's session, and not one beside it, such as a subagent's.
    """

    kind: str
    body: Mapping[str, Any]
    when: When = "turn"
    ours: bool = True

    __repr__ = repr_without("body")


class PermissionRequested(Struct, frozen=True):
    """The agent asks whether a tool may be used; it waits until ``answer_permission``."""

    id: Id
    call: Mapping[str, Any]
    options: tuple[Mapping[str, Any], ...]

    __repr__ = repr_without("call", "options")


class PromptAnswered(Struct, frozen=True):
    """The turn is over. ``stop_reason`` is the agent's word, "" where it gave none."""

    stop_reason: str
    result: Mapping[str, Any]

    __repr__ = repr_without("result")


class ExtensionTold(Struct, frozen=True):
    """The agent tells something that the protocol does not know."""

    method: str
    params: Mapping[str, Any]

    __repr__ = repr_without("params")


AcpEvent = SessionUpdated | PermissionRequested | PromptAnswered | ExtensionTold
ClientEvent = ConnectionEvent | AcpEvent
