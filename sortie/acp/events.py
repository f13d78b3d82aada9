"""What a client's connection tells of what has come; see ``client``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sortie.acp.wire import Id, Junk
from sortie.lines import LineTooLong

When = Literal["replay", "turn", "late"]
"""Where an update stands: in the opening of a session, in a turn, or outside of both."""


@dataclass(frozen=True, slots=True)
class Initialized:
    """The agent speaks version 1; ``result`` has its name and what it can do."""

    result: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """There is a session, new or gone on with; ``result`` has its modes and options."""

    session_id: str
    result: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class SettingTaken:
    """The agent took a mode or an option."""

    method: str
    result: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class SessionUpdated:
    """The agent tells something of a session; ``kind`` is "" where it does not say of what kind.

    ``ours``: it is the connection's session, and not one beside it, such as a subagent's.
    """

    kind: str
    body: Mapping[str, Any] = field(repr=False)
    when: When = "turn"
    ours: bool = True


@dataclass(frozen=True, slots=True)
class PermissionRequested:
    """The agent asks whether a tool may be used; it waits until ``answer_permission``."""

    id: Id
    call: Mapping[str, Any] = field(repr=False)
    options: tuple[Mapping[str, Any], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class RequestDeclined:
    """A request of the agent's was answered already, with no.

    It is something that is not offered, or a permission where none can be given: in a cancel,
    before the session is open, in a replay. ``method`` is "" where the request had no usable id.
    """

    method: str
    params: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class PromptAnswered:
    """The turn is over. ``stop_reason`` is the agent's word, "" where it gave none."""

    stop_reason: str
    result: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """A request of ours was answered with an error; one to ``session/prompt`` ends the turn."""

    method: str
    code: int
    message: str
    data: Any = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ExtensionTold:
    """The agent tells something that the protocol does not know."""

    method: str
    params: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class StrayAnswer:
    """An answer to what was not asked, or was answered before."""

    id: Id


@dataclass(frozen=True, slots=True)
class ConnectionEnded:
    """Nothing comes any more; ``pending`` is the method that is still to be answered."""

    pending: str | None


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
    | StrayAnswer
    | ConnectionEnded
    | Junk
    | LineTooLong
)
