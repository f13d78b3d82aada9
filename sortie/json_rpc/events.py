"""What a connection to an agent tells of what has come, in any protocol; see ``connection``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from sortie.json_rpc.wire import Junk
from sortie.lines import LineTooLong
from sortie.model.hiding import repr_without


class Initialized(Struct, frozen=True):
    """The agent has answered the greeting; ``result`` has its name and what it can do."""

    result: Mapping[str, Any]

    __repr__ = repr_without("result")


class SessionOpened(Struct, frozen=True):
    """There is a session, new or gone on with; ``result`` has what the agent tells of it."""

    session_id: str
    result: Mapping[str, Any]

    __repr__ = repr_without("result")


class RequestAnswered(Struct, frozen=True):
    """The agent has answered another request of ours."""

    method: str
    result: Mapping[str, Any]

    __repr__ = repr_without("result")


class RequestFailed(Struct, frozen=True):
    """A request of ours was answered with an error; one to the request of a turn ends it."""

    method: str
    code: int
    message: str
    data: Any = None

    __repr__ = repr_without("message", "data")


class RequestDeclined(Struct, frozen=True):
    """A request of the agent's was answered already, with no.

    It is something that is not offered, or a question outside of a turn, such as in a cancel or in
    a replay. ``method`` is "" where the request had no usable id.
    """

    method: str
    params: Mapping[str, Any]

    __repr__ = repr_without("params")


ConnectionEvent = (
    Initialized
    | SessionOpened
    | RequestAnswered
    | RequestFailed
    | RequestDeclined
    | Junk
    | LineTooLong
)
