"""What an error of Codex's means for a turn; pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sortie.agents.exits import Failure
from sortie.agents.usage_limit import names_a_limit
from sortie.json_rpc import values
from sortie.model import ErrorKind

LOGIN = (
    "log in with `codex login` as the user of this host, or set CODEX_API_KEY or OPENAI_API_KEY in"
    " the environment of the daemon"
)
_UNAUTHORIZED = 401


def turn_failure(
    status: str, error: Mapping[str, Any], resets_at: datetime | None
) -> Failure | None:
    """Return why a turn failed that ended with a status; None: it is a good one.

    The message is in Codex's words, secrets included.
    """
    if status == "completed":
        return None
    if status == "interrupted":
        return Failure(ErrorKind.TURN_CANCELLED, "codex says that the turn was interrupted")
    if status != "failed":
        return Failure(ErrorKind.TURN_FAILED, f"codex ended the turn with {status or 'no'} status")
    said = values.text(error, "message") or "codex gave no reason for the failure of its turn"
    details = values.text(error, "additionalDetails")
    if details is not None and details not in said:
        said = f"{said}: {details}"
    name, http = _named(error.get("codexErrorInfo"))
    if name == "usageLimitExceeded" or names_a_limit(said):
        return Failure(ErrorKind.USAGE_LIMIT, said, resets_at)
    if name == "unauthorized" or http == _UNAUTHORIZED:
        return Failure(ErrorKind.RESPONSE_ERROR, f"codex is not logged in: {said}; {LOGIN}")
    return Failure(ErrorKind.TURN_FAILED, f"{said} ({name})" if name not in ("", "other") else said)


def error_line(params: Mapping[str, Any]) -> str:
    """Return what an ``error`` notification says, in a line."""
    error = values.mapping(params, "error")
    said = values.text(error, "message") or "no message"
    details = values.text(error, "additionalDetails")
    return f"{said}: {details}" if details is not None else said


def _named(info: object) -> tuple[str, int | None]:
    """Return the name of an error for programs, "" for none, and the status of HTTP it is about."""
    if isinstance(info, str):
        return info, None
    for name, about in values.mapping(info).items():
        return str(name), values.count(about, "httpStatusCode")
    return "", None
