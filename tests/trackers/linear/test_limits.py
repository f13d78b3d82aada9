"""Limits, refusals and what they mean; secrets in none of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sortie.model import TrackerError, TrackerErrorKind
from sortie.trackers import Tracker
from tests.trackers.linear.rig import opened
from tests.trackers.linear.service import API_KEY, OAUTH_TOKEN, LinearService
from tests.trackers.server.faults import Refuse
from tests.trackers.server.serving import TestServer

TODO = ("Todo",)
LIMITED = {"message": "Rate limit exceeded", "extensions": {"code": "RATELIMITED"}}


async def refusal(tracker: Tracker) -> TrackerError:
    """Return the error of a list."""
    with pytest.raises(TrackerError) as told:
        await tracker.fetch_candidates(TODO)
    return told.value


@pytest.mark.parametrize("status", [200, 400, 429, 503])
@pytest.mark.parametrize("by", [{"code": "RATELIMITED"}, {"type": "ratelimited"}])
async def test_a_limit_is_known_whatever_the_status(
    server: TestServer, tracker: Tracker, status: int, by: Mapping[str, str]
) -> None:
    """And is left alone for as long as it says."""
    body = {"errors": [{"message": "Rate limit exceeded", "extensions": by}]}
    server.inject(Refuse(status=status, body=body, headers={"Retry-After": "31"}))

    error = await refusal(tracker)

    assert (error.kind, error.retry_after) == (TrackerErrorKind.UNAVAILABLE, 31.0)


async def test_a_reset_is_in_milliseconds_by_the_servers_clock(
    server: TestServer, tracker: Tracker
) -> None:
    """Without Retry-After it is what is waited for, however wrong our clock or theirs is."""
    server.skew = timedelta(hours=3)
    reset = str(int((server.now() + timedelta(seconds=90)).timestamp() * 1000))
    headers = {
        "X-RateLimit-Requests-Limit": "5000",
        "X-RateLimit-Requests-Remaining": "0",
        "X-RateLimit-Requests-Reset": reset,
    }
    server.inject(Refuse(status=400, body={"errors": [LIMITED]}, headers=headers))

    error = await refusal(tracker)

    assert error.retry_after is not None
    assert 85 <= error.retry_after <= 91


async def test_what_is_left_is_told(
    service: LinearService, server: TestServer, tracker: Tracker
) -> None:
    """Requests and points of complexity, with the time at which they are full again."""
    server.skew = timedelta(hours=3)
    service.requests_left = 4712
    await tracker.fetch_candidates(TODO)

    budgets = {budget.name: budget for budget in tracker.budgets()}

    assert set(budgets) == {"requests", "complexity"}
    assert (budgets["requests"].limit, budgets["complexity"].limit) == (5000, 3_000_000)
    assert budgets["requests"].remaining == service.requests_left
    resets_at = budgets["requests"].resets_at
    assert resets_at is not None
    assert abs(resets_at - datetime.now(UTC) - timedelta(minutes=30)) < timedelta(seconds=5)


@pytest.mark.parametrize(
    ("status", "extensions", "message", "kind"),
    [
        (401, {"type": "authentication error"}, "no", TrackerErrorKind.CLOSED),
        (400, {"code": "AUTHENTICATION_ERROR"}, "no", TrackerErrorKind.CLOSED),
        (200, {"type": "forbidden"}, "no", TrackerErrorKind.PERMISSION),
        (200, {"type": "feature not accessible"}, "no", TrackerErrorKind.PERMISSION),
        (200, {"type": "usage limit exceeded"}, "no", TrackerErrorKind.CLOSED),
        (200, {"type": "invalid input"}, "Argument", TrackerErrorKind.INVALID),
        (200, {"type": "invalid input"}, "Entity not found: Issue", TrackerErrorKind.NOT_FOUND),
        (200, {}, "Entity not found", TrackerErrorKind.NOT_FOUND),
        (400, {"type": "graphql error"}, "no", TrackerErrorKind.INVALID),
        (200, {"type": "internal error"}, "no", TrackerErrorKind.UNAVAILABLE),
        (200, {"type": "lock timeout"}, "no", TrackerErrorKind.UNAVAILABLE),
        (200, {"type": "something new"}, "no", TrackerErrorKind.UNAVAILABLE),
        (200, "nonsense", "no", TrackerErrorKind.UNAVAILABLE),
    ],
)
async def test_errors_are_told_apart_by_what_they_say_and_not_by_their_status(
    server: TestServer,
    tracker: Tracker,
    status: int,
    extensions: Any,
    message: str,
    kind: TrackerErrorKind,
) -> None:
    """The words for people are passed on."""
    if isinstance(extensions, dict):
        extensions = {**extensions, "userPresentableMessage": "A word for people."}
    error = {"message": message, "extensions": extensions}
    server.inject(Refuse(status=status, body={"errors": [error]}))

    found = await refusal(tracker)

    assert found.kind is kind
    assert isinstance(extensions, str) or "A word for people." in str(found)


@pytest.mark.parametrize(
    ("key", "auth", "accepted"),
    [
        (API_KEY, "auto", True),
        (OAUTH_TOKEN, "auto", True),
        (API_KEY, "oauth", False),
        (OAUTH_TOKEN, "key", False),
    ],
)
async def test_a_key_is_sent_as_what_it_is(
    server: TestServer, key: str, auth: str, accepted: bool
) -> None:
    """A personal key stands bare, an OAuth token is a bearer's; the settings may say which."""
    async with opened(server, {"auth": auth}, api_key=key) as tracker:
        if accepted:
            assert await tracker.fetch_candidates(TODO) == ()
        else:
            assert (await refusal(tracker)).kind is TrackerErrorKind.CLOSED


async def test_the_key_stands_in_no_error_log_or_repr(
    server: TestServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Not even where the server repeats it, nor in what the HTTP library logs."""
    caplog.set_level(logging.DEBUG)
    async with opened(server) as tracker:
        body = {"errors": [{"message": f"bad key {API_KEY}"}]}
        server.inject(Refuse(status=400, body=body))
        error = await refusal(tracker)
        server.stop()
        gone = await refusal(tracker)
        server.start()
        texts = (str(error), str(gone), repr(vars(tracker)), caplog.text)

    assert "***" in str(error)
    for text in texts:
        assert API_KEY not in text
