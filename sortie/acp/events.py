"""What a client's connection tells of what has come; see ``client``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from sortie.json_rpc.wire import Id, Junk
from sortie.lines import LineTooLong
from sortie.model.hiding import repr_without

When = Literal["replay", "turn", "late"]
"""Where an update stands: in the opening of a session, in a turn, or outside of both."""


class Initialized(Struct, frozen=True):
    """The agent speaks version 1; ``result`` has its name and what it can do."""

    result: Mapping[str, Any]

    __repr__ = repr_without("result")


class SessionOpened(Struct, frozen=True):
    """There is a session, new or gone on with; ``result`` has its modes and options."""

    session_id: str
    result: Mapping[str, Any]

    __repr__ = repr_without("result")


class SettingTaken(Struct, frozen=True):
    """The agent took a mode or an option."""

    method: str
    result: Mapping[str, Any]

    __repr__ = repr_without("result")


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


class RequestDeclined(Struct, frozen=True):
    """A request of the agent's was answered already, with no.

    It is something that is not offered, or a permission where none can be given: in a cancel,
    before the session is open, in a replay. ``method`` is "" where the request had no usable id.
    """

    method: str
    params: Mapping[str, Any]

    __repr__ = repr_without("params")


class PromptAnswered(Struct, frozen=True):
    """The turn is over. ``stop_reason`` is the agent's word, "" where it gave none."""

    stop_reason: str
    result: Mapping[str, Any]

    __repr__ = repr_without("result")


class RequestFailed(Struct, frozen=True):
    """A request of ours was answered with an error; one to ``session/prompt`` ends the turn."""

    method: str
    code: int
    message: str
    data: Any = None

    __repr__ = repr_without("data")


class ExtensionTold(Struct, frozen=True):
    """The agent tells something that the protocol does not know."""

    method: str
    params: Mapping[str, Any]

    __repr__ = repr_without("params")


ClientEvent = (
    Initialized
    | SessionOpened
    | SettingTaken
    | SessionUpdated
    | PermissionRequested
    | RequestDeclined
    | PromptAnswered
    | RequestFailed
    | ExtensionTold
    | Junk
    | LineTooLong
)
