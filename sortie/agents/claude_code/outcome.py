"""How a turn of Claude Code ended: its last result, its exit status and its stderr."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sortie.agents.claude_code.messages import text_of
from sortie.agents.exits import Failure
from sortie.agents.usage_limit import from_seconds, names_a_limit, reset_time
from sortie.json_rpc.values import items, mapping
from sortie.lines import strip_escapes
from sortie.model import ErrorKind
from sortie.model.texts import start_of

_SHOWN = 1000
_LIMIT_ERRORS = frozenset({"rate_limit", "billing_error"})
_MEANINGS = {255: "where it runs over SSH, the connection failed"}


class Outcome:
    """Collects the messages that decide whether a turn completed.

    Rule: a turn with a result has completed if the result's ``is_error`` is false, its ``subtype``
    is success and the exit status is 0. No single one of these is enough: an API failure has the
    subtype ``success``, too, and an interrupted turn exits with 0. A turn without a result has
    completed if it exits with 0 and the last message was the model's.
    """

    def __init__(self) -> None:
        self._result: Mapping[str, Any] | None = None
        self._api_error: Mapping[str, Any] = {}
        self._refused_until: datetime | None = None
        self._stderr = ""
        self._began = False
        self._answered = False
        self.id_taken = False

    def assistant(self, event: Mapping[str, Any], synthetic: bool) -> None:
        """Take a message; one that the model did not write says what the API refused."""
        self._began = True
        self._answered = not synthetic
        self._api_error = event if synthetic else {}

    def rate_limit(self, info: Mapping[str, Any]) -> None:
        """Take a message about the account's limits."""
        refused = info.get("status") == "rejected"
        self._refused_until = from_seconds(info.get("resetsAt")) if refused else None

    def result(self, event: Mapping[str, Any]) -> None:
        """Take a result; the last one counts."""
        self._result = event

    def stderr(self, line: str) -> None:
        """Take a line of stderr."""
        self._stderr = line
        self.id_taken |= "Session ID" in line and "already in use" in line

    @property
    def conversation_missing(self) -> bool:
        """Whether there was no conversation with the id that was to be resumed."""
        result = self._result or {}
        return (
            not self._began
            and result.get("subtype") == "error_during_execution"
            and "No conversation found" in _message(result)
        )

    def failure(self, status: int) -> Failure | None:
        """Return why the turn failed, None where it completed."""
        result = self._result
        if result is not None and not _is_success(result):
            message = _message(result) or f"it ended with {text_of(result.get('subtype'))!r}"
            return self._limit(result, message) or Failure(
                ErrorKind.TURN_FAILED, f"claude-code reported a failure: {message}"
            )
        if status == 0:
            message = "claude-code exited with 0, and neither an answer nor a result was seen"
            answered = result is not None or self._answered
            return None if answered else Failure(ErrorKind.TURN_FAILED, message)
        meaning = _MEANINGS.get(status) or self._stderr
        reason = f"{status} ({start_of(meaning, _SHOWN)})" if meaning else str(status)
        message = f"claude-code exited with a non-zero status: {reason}"
        return Failure(ErrorKind.PORT_EXIT, message)

    def _limit(self, result: Mapping[str, Any], message: str) -> Failure | None:
        """Return the failure that the account's limit is."""
        error = self._api_error
        if not error:
            return None
        named = text_of(error.get("api_error")) or text_of(result.get("api_error"))
        is_limit = named == "usage_limit_reached" or text_of(error.get("error")) in _LIMIT_ERRORS
        if not is_limit and not names_a_limit(message):
            return None
        params = mapping(error.get("api_error_params"))
        told = from_seconds(mapping(params.get("rate_limit_info")).get("resetsAt"))
        resets_at = told or self._refused_until or _worded(message, error.get("timestamp"))
        text = f"claude-code may not go on for now: {message}"
        return Failure(ErrorKind.USAGE_LIMIT, text, resets_at)


def _is_success(result: Mapping[str, Any]) -> bool:
    return result.get("subtype") == "success" and result.get("is_error") is False


def _message(result: Mapping[str, Any]) -> str:
    """Return what a result says, on one line."""
    errors = result.get("errors")
    told = [text_of(error) for error in errors] if isinstance(errors, list) else []
    told += [text_of(error.get("message")) for error in items(errors)]
    texts = [text for text in told if text] or [text_of(result.get("result"))]
    shown = " ".join(strip_escapes(start_of("; ".join(texts), 2 * _SHOWN)).split())
    return start_of(shown, _SHOWN)


def _worded(message: str, timestamp: object) -> datetime | None:
    """Return the time that a message words, as seen from when it was written."""
    try:
        now = datetime.fromisoformat(text_of(timestamp))
    except ValueError:
        return None
    return reset_time(message, now) if now.utcoffset() is not None else None
