"""JSON-RPC messages on a byte stream, one a line; for either side of a connection.

Every line is accepted: a line that is no message becomes Junk, a line that is too long becomes
LineTooLong, and reading goes on with the next line. A batch is read as its members.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from sortie.lines import LINE_LIMIT, LineTooLong, RawLineSplitter
from sortie.model.hiding import repr_without
from sortie.model.texts import start_of

JUNK_SHOWN = 200
"""Characters that are kept of a line that is no message."""

Id = int | float | str | None
"""A request's id, as it came: 0, "0" and null are three ids."""

INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
AUTH_REQUIRED = -32000


class RpcRequest(Struct, frozen=True):
    """The other side asks, and waits for an answer with the same id."""

    id: Id
    method: str
    params: Mapping[str, Any]

    __repr__ = repr_without("params")


class BadRequest(Struct, frozen=True):
    """A request whose id cannot be put into an answer."""


class RpcNotification(Struct, frozen=True):
    """The other side tells something; a JSON-RPC notification."""

    method: str
    params: Mapping[str, Any]

    __repr__ = repr_without("params")


class RpcResult(Struct, frozen=True):
    """The other side answers; a result may be any value."""

    id: Id
    value: Any

    __repr__ = repr_without("value")


class RpcError(Struct, frozen=True):
    """The other side answers that it could not; what it left out is 0, "" and None."""

    id: Id
    code: int
    message: str
    data: Any = None

    __repr__ = repr_without("data")


class Junk(Struct, frozen=True):
    """A line that is no message; at most JUNK_SHOWN characters of it."""

    text: str


Message = RpcRequest | BadRequest | RpcNotification | RpcResult | RpcError
Incoming = Message | Junk | LineTooLong


class MessageReader:
    """Cuts a byte stream into messages; how it comes in chunks makes no difference.

    Rule 1: no more than the limit and one chunk is ever held. Rule 2: no input raises.
    """

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._lines = RawLineSplitter(limit)

    def feed(self, chunk: bytes) -> list[Incoming]:
        """Return what this chunk completes."""
        return [message for line in self._lines.feed(chunk) for message in _messages(line)]

    def close(self) -> list[Incoming]:
        """Return what the last line is, where it has no end of line."""
        return [message for line in self._lines.close() for message in _messages(line)]


def _messages(line: str | LineTooLong) -> Iterator[Incoming]:
    if isinstance(line, LineTooLong):
        yield line
        return
    if not line.strip():
        return
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):  # RecursionError: brackets without an end
        yield _junk(line)
        return
    for member in value if isinstance(value, list) else [value]:
        message = _message(member)
        yield _junk(line) if message is None else message


def _message(value: Any) -> Message | None:
    if not isinstance(value, dict):
        return None
    method = value.get("method")
    if isinstance(method, str):
        given = value.get("params")
        params = given if isinstance(given, dict) else {}
        if "id" not in value:
            return RpcNotification(method, params)
        return RpcRequest(value["id"], method, params) if is_id(value["id"]) else BadRequest()
    if "id" not in value or not is_id(value["id"]):
        return None
    if isinstance(error := value.get("error"), dict):
        return _error(value["id"], error)
    return RpcResult(value["id"], value.get("result"))


def _error(answered: Id, error: Mapping[str, Any]) -> RpcError:
    code, message = error.get("code"), error.get("message")
    return RpcError(
        answered,
        code if isinstance(code, int) else 0,
        message if isinstance(message, str) else "",
        error.get("data"),
    )


def is_id(value: object) -> bool:
    """Tell whether a value may be a request's id."""
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or (isinstance(value, int | str) and not isinstance(value, bool))


def _junk(line: str) -> Junk:
    return Junk(start_of(line[: 32 * JUNK_SHOWN].strip(), JUNK_SHOWN))


def request(number: Id, method: str, params: Mapping[str, Any]) -> bytes:
    """Return the line of a request."""
    return _encoded({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def notice(method: str, params: Mapping[str, Any]) -> bytes:
    """Return the line of a notification."""
    return _encoded({"jsonrpc": "2.0", "method": method, "params": params})


def result(answered: Id, value: Any) -> bytes:
    """Return the line of an answer."""
    return _encoded({"jsonrpc": "2.0", "id": answered, "result": value})


def error(answered: Id, code: int, message: str) -> bytes:
    """Return the line of an answer that something could not be done."""
    fault = {"code": code, "message": message}
    return _encoded({"jsonrpc": "2.0", "id": answered, "error": fault})


def _encoded(message: Mapping[str, Any]) -> bytes:
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair, as in an id that is given back
        return json.dumps(message, separators=(",", ":")).encode() + b"\n"
