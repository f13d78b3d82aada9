"""Errors keep their cause, wherever an agent puts it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sortie.agents.acp.failures import failure_of, worded
from sortie.agents.exits import Failure
from sortie.agents.protocol_reader import MESSAGE_LIMIT
from sortie.agents.texts import Texts
from sortie.json_rpc.events import RequestFailed
from sortie.model import ErrorKind

NOW = datetime(2026, 11, 24, tzinfo=UTC)
SECRET = "sk-a-secret-value"
CLEAN = Texts(lambda text: text.replace(SECRET, "***")).clean


def failure(data: Any, message: str = "Internal error", code: int = -32603) -> Failure:
    event = RequestFailed("session/prompt", code, message, data)
    return worded(failure_of(event, ErrorKind.TURN_FAILED), CLEAN, lambda: NOW)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "Internal error"),
        ("the history is broken", "Internal error: the history is broken"),
        ({"message": "it broke"}, "Internal error: it broke"),
        ({"details": "it broke"}, "Internal error: it broke"),
        ({"message": "it broke", "details": "at 7"}, "Internal error: it broke: at 7"),
        ({"message": "Internal error"}, "Internal error"),
        ({"error": {"message": "it broke"}}, "Internal error: it broke"),
        ({"cause": {"error": "deep"}}, "Internal error: deep"),
        ({"errorKind": "max_output_tokens"}, "Internal error (max_output_tokens)"),
        (
            {"message": "slow down", "errorName": "APIError"},
            "Internal error: slow down (APIError)",
        ),
        (
            {"message": "429", "codex_error_info": {"failed_attempts": {"status": 429}}},
            'Internal error: 429 ({"failed_attempts": {"status": 429}})',
        ),
        ({"service": "session", "id": 7}, 'Internal error: {"service": "session", "id": 7}'),
        (["a", 1], 'Internal error: ["a", 1]'),
        (7, "Internal error: 7"),
        ({}, "Internal error"),
        ("", "Internal error"),
    ],
)
def test_an_error_says_its_cause(data: Any, said: str) -> None:
    """Beside its message, once; what has no known place is told as it is."""
    assert failure(data) == Failure(
        ErrorKind.TURN_FAILED, f"{said} (error -32603 to session/prompt)"
    )


@pytest.mark.parametrize(
    "data",
    [
        {"message": "no words of it", "codexErrorInfo": "usageLimitExceeded"},
        {"message": "no words of it", "codex_error_info": "usage_limit_exceeded"},
        {"message": "You have hit your usage limit."},
        {"details": "Quota exceeded"},
        "You are out of credits",
    ],
)
def test_a_usage_limit_may_stand_in_the_data(data: Any) -> None:
    """By its words, or by the name that the bridges to Codex give it."""
    assert failure(data).kind is ErrorKind.USAGE_LIMIT


def test_a_limit_of_pace_is_none_of_the_account() -> None:
    """Codex names it otherwise."""
    data = {"message": "too fast", "codexErrorInfo": "rateLimitExceeded"}

    assert failure(data).kind is ErrorKind.TURN_FAILED


def test_the_end_of_a_limit_is_read_from_its_cause() -> None:
    """Where it is said without doubt."""
    data = {"message": "usage limit reached, try again in 2 hours"}

    assert failure(data).resets_at == datetime(2026, 11, 24, 2, tzinfo=UTC)


def test_without_a_login_the_cause_is_told_too() -> None:
    """And what to do."""
    said = failure({"message": "token expired"}, "Authentication required", -32000)

    assert said.kind is ErrorKind.RESPONSE_ERROR
    assert "Authentication required: token expired; log in first" in said.message


def test_a_cause_is_redacted_and_bounded() -> None:
    """Wherever a secret stands, also at the cut."""
    for padding in (0, MESSAGE_LIMIT - 30, 8 * MESSAGE_LIMIT - 25):
        message = failure({"message": "x" * padding + " " + SECRET}).message
        assert len(message) <= MESSAGE_LIMIT
        assert "secret" not in message
    assert "secret" not in failure({"unknown": [SECRET]}).message


@given(st.recursive(st.none() | st.integers() | st.text(), st.lists) | st.text())
@example("\r")
def test_no_data_break_it(data: Any) -> None:
    """Any value of JSON."""
    for each in (data, {"message": data}, {"cause": {"details": data}}, {"errorKind": data}):
        assert failure(each).message.startswith("Internal error")


def test_deep_data_break_nothing() -> None:
    """As deep as JSON is read."""
    assert failure(json.loads("[" * 900 + "]" * 900)).message.startswith("Internal error")
