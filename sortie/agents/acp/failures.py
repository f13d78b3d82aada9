"""What an agent's error answer means; pure.

The message is often just "Internal error"; the cause is in ``data``, in a different place for each
agent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from sortie.agents.exits import Failure
from sortie.agents.protocol_reader import MESSAGE_LIMIT
from sortie.agents.usage_limit import names_a_limit, reset_time
from sortie.json_rpc import values, wire
from sortie.json_rpc.events import RequestFailed
from sortie.model import ErrorKind

_CAUSES = ("message", "details", "detail", "error", "cause", "reason", "description")
_NAMES = ("errorKind", "errorName", "codexErrorInfo", "codex_error_info")
_LIMITS = frozenset({"usageLimitExceeded", "usage_limit_exceeded"})
"""What both bridges to Codex name the limits of an account."""

_NESTED = 3
"""How deep a cause is looked for: a cause may have a cause."""


def failure_of(event: RequestFailed, kind: ErrorKind) -> Failure:
    """Return the failure that an error is, with its cause in the agent's words, secrets included.

    Without a login it is the same for every request.
    """
    names = [_short(value) for value in _named(event.data)]
    said = event.message or "no message"
    for cause in _causes(event.data):
        if cause not in said:
            said = f"{said}: {cause}"
    if names:
        said = f"{said} ({', '.join(names)})"
    if event.code == wire.AUTH_REQUIRED:
        message = f"the agent is not logged in: {said}; log in first, as the user of this host"
        return Failure(ErrorKind.RESPONSE_ERROR, message)
    if kind is ErrorKind.TURN_FAILED and not _LIMITS.isdisjoint(names):
        kind = ErrorKind.USAGE_LIMIT
    return Failure(kind, f"{said} (error {event.code} to {event.method})")


def worded(
    failure: Failure, clean: Callable[[str, int], str], now: Callable[[], datetime]
) -> Failure:
    """Return a failure as it may be shown; one that names a usage limit is one.

    ``clean`` redacts a text and then cuts it. ``now`` returns the time, with a zone.
    """
    # A carriage return would have what stands before it taken for a line that was redrawn.
    said, kind = clean(failure.message.replace("\r", " "), MESSAGE_LIMIT), failure.kind
    if kind is ErrorKind.TURN_FAILED and names_a_limit(failure.message):
        kind = ErrorKind.USAGE_LIMIT
    if kind is ErrorKind.USAGE_LIMIT:
        return Failure(kind, said, reset_time(failure.message, now()))
    return Failure(kind, said)


def _causes(data: Any, depth: int = 0) -> Iterator[str]:
    """Yield what data say in words, the first of them first; else all that they are, as JSON."""
    if isinstance(data, str):
        if data.strip():
            yield data.strip()
        return
    if not isinstance(data, dict) or depth == _NESTED:
        if data not in (None, {}, []):
            yield _short(data)
        return
    found = [cause for key in _CAUSES if key in data for cause in _causes(data[key], depth + 1)]
    if not found and not any(_named(data)):
        found = [_short(data)] if data else []
    yield from dict.fromkeys(found)


def _named(data: Any) -> Iterator[Any]:
    """Yield the words by which agents name an error for programs."""
    given = values.mapping(data)
    yield from (given[key] for key in _NAMES if given.get(key))


def _short(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:  # brackets nearly without an end
        return "[...]"
