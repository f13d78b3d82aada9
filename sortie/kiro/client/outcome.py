"""Decide by exit status and output of kiro-cli whether a turn ran."""

from __future__ import annotations

import signal
from collections.abc import Callable

from sortie.kiro.client.errors import (
    AuthenticationError,
    KiroSDKError,
    ProcessError,
    ToolPermissionError,
)
from sortie.kiro.client.process import KiroExit
from sortie.kiro.headless.trailer import TRAILER_PREFIX, Trailer, find_trailer
from sortie.lines import clean_line
from sortie.model.texts import end_of

_AUTHENTICATION_FAILED = "Authentication failed."
_APPROVAL_REQUIRED = "Tool approval required"
_SHOWN = 500
_MEANINGS = {
    2: "it did not accept its arguments; does this version know them all?",
    3: "a required MCP server did not start",
    4: "the agent's file was not found",
}


def find_outcome(finished: KiroExit, redact: Callable[[str], str]) -> Trailer:
    """Return the trailer of a turn that ran, else raise what says why it did not.

    An exit status of 0 alone proves nothing: kiro-cli exits so with a bad key too.
    """
    trailer = find_trailer(finished.stderr)
    if finished.status in (0, None) and trailer is not None:
        return trailer
    raise _failure(finished, ran=trailer is not None, said=said_on(finished.stderr, redact))


def said_on(stderr: str, redact: Callable[[str], str]) -> str:
    """Return the end of what was said on stderr, redacted, without escapes and trailers, in one
    line."""
    lines = (clean_line(line).strip() for line in stderr.split("\n"))
    told = "; ".join(line for line in lines if line and TRAILER_PREFIX not in line)
    told = redact(told)
    return told if len(told) <= _SHOWN else f"... {end_of(told, _SHOWN)}"


def _failure(finished: KiroExit, *, ran: bool, said: str) -> KiroSDKError:
    status, stderr = finished.status, finished.stderr
    also = f": {said}" if said else ""
    if _AUTHENTICATION_FAILED in stderr and not ran:
        return AuthenticationError(
            "KIRO_API_KEY, or the login of kiro-cli, is invalid or has expired", status
        )
    if _APPROVAL_REQUIRED in stderr:
        return ToolPermissionError(
            "kiro-cli gave up because a tool is not trusted; name it in allowed_tools, or set"
            f" trust_all_tools{also}"
        )
    if status is not None and status < 0:
        return ProcessError(f"kiro-cli was ended by {_signal_name(-status)}{also}", status)
    if status:
        meaning = f" ({_MEANINGS[status]})" if status in _MEANINGS else ""
        return ProcessError(f"kiro-cli exited with status {status}{meaning}{also}", status)
    return ProcessError(
        f"kiro-cli ended without the line of credits that proves that the turn ran{also}", status
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
