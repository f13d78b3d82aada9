"""JSON-RPC messages on a byte stream, one a line; for either side of a connection.

Whatever comes is taken: what is no message is told as Junk, what is too long as Oversize, and
the next line is read again. A batch is read as its members.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sortie.model.texts import start_of

LINE_LIMIT = 10 * 1024 * 1024
"""Bytes that a line may have. Agents were seen to write 3 MB."""

JUNK_SHOWN = 200
"""Characters of a line that is no message which are kept."""

Id = int | float | str | None
"""A request's id, as it came: 0, "0" and null are three ids."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
AUTH_REQUIRED = -32000
NOT_FOUND = -32002
CANCELLED = -32800


@dataclass(frozen=True, slots=True)
class Request:
    """The other side asks, and waits for an answer with the same id."""

    id: Id
    method: str
    params: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class BadRequest:
    """A request whose id nobody could answer to."""


@dataclass(frozen=True, slots=True)
class Notice:
    """The other side tells something; a JSON-RPC notification."""

    method: str
    params: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Result:
    """The other side answers; a result may be any value."""

    id: Id
    value: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """The other side answers that it could not; what it left out is 0, "" and None."""

    id: Id
    code: int
    message: str
    data: Any = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Junk:
    """A line that is no message; at most JUNK_SHOWN characters of it."""

    text: str


@dataclass(frozen=True, slots=True)
class Oversize:
    """A line of more than ``limit`` bytes, which is dropped: it may be a request."""

    limit: int


Message = Request | BadRequest | Notice | Result | ErrorAnswer
Incoming = Message | Junk | Oversize


class MessageReader:
    r"""Cuts a byte stream into messages; how it comes in chunks makes no difference.

    Rule 1: lines end with ``\n`` alone; U+2028 and its like are part of them. Rule 2: no more than
    the limit and one chunk is ever held. Rule 3: a line that is too long is told where it passes
    the limit: its end may never come. Rule 4: nothing that comes raises.
    """

    __slots__ = ("_held", "_is_skipping", "_limit", "_seen")

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._held = bytearray()
        self._seen = 0  # bytes of what is held that have no end of line in them
        self._is_skipping = False  # the rest of a line that is too long

    def feed(self, chunk: bytes) -> list[Incoming]:
        """Return what this chunk completes."""
        self._held += chunk
        end = self._held.find(b"\n", self._seen)
        if end < 0:
            return self._keep()
        found: list[Incoming] = []
        begin = 0
        while end >= 0:
            found += self._line(bytes(self._held[begin:end]))
            begin = end + 1
            end = self._held.find(b"\n", begin)
        del self._held[:begin]
        return [*found, *self._keep()]

    def close(self) -> list[Incoming]:
        """Return what the last line is, where it has no end of line."""
        rest = bytes(self._held)
        self._held.clear()
        self._seen = 0
        return self._line(rest)

    def _keep(self) -> list[Incoming]:
        """Keep the begin of a line, unless it is too long already."""
        found: list[Incoming] = []
        if len(self._held) > self._limit and not self._is_skipping:
            self._is_skipping = True
            found.append(Oversize(self._limit))
        if self._is_skipping:
            self._held.clear()
        self._seen = len(self._held)
        return found

    def _line(self, line: bytes) -> list[Incoming]:
        if self._is_skipping:
            self._is_skipping = False
            return []
        if len(line) > self._limit:
            return [Oversize(self._limit)]
        return list(_messages(line)) if line.strip() else []


def _messages(line: bytes) -> Iterator[Incoming]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):  # RecursionError: brackets without an end
        yield _junk(line)
        return
    members = value if isinstance(value, list) else [value]
    for member in members:
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
            return Notice(method, params)
        return Request(value["id"], method, params) if is_id(value["id"]) else BadRequest()
    if "id" not in value or not is_id(value["id"]):
        return None
    if isinstance(error := value.get("error"), dict):
        return _error(value["id"], error)
    return Result(value["id"], value.get("result"))


def _error(answered: Id, error: Mapping[str, Any]) -> ErrorAnswer:
    code, message = error.get("code"), error.get("message")
    return ErrorAnswer(
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


def _junk(line: bytes) -> Junk:
    text = line.lstrip()[: 32 * JUNK_SHOWN].decode(errors="replace")  # the rest is not looked at
    return Junk(start_of(text.strip(), JUNK_SHOWN))


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
