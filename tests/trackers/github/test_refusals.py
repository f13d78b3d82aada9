"""What GitHub's refusals mean: a limit, a lack of permission, or something that passes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from sortie.model import TrackerError, TrackerErrorKind
from tests.trackers.github.opened import GitHub
from tests.trackers.server.faults import Fault, Html, Refuse

SECONDARY = {"message": "You have exceeded a secondary rate limit. Please wait a few minutes."}
FORBIDDEN = {"message": "Resource not accessible by personal access token"}

LIMITS: Mapping[str, tuple[Refuse, float]] = {
    "secondary, with a time": (
        Refuse(status=403, body=SECONDARY, headers={"Retry-After": "90"}),
        90.0,
    ),
    "secondary, without": (Refuse(status=403, body=SECONDARY), 60.0),
    "429, as plain text": (
        Refuse(status=429, body=b"Too many requests", content_type="text/plain"),
        60.0,
    ),
    "absurd": (Refuse(status=429, headers={"Retry-After": "99999999"}), 3600.0),
    "none": (Refuse(status=429, headers={"Retry-After": "soon"}), 60.0),
}


@pytest.mark.parametrize("name", LIMITS)
async def test_a_limit_is_left_alone_for_as_long_as_it_says(hub: GitHub, name: str) -> None:
    """It is neither a bad credential nor something to be tried again at once."""
    fault, seconds = LIMITS[name]
    hub.server.inject(fault)

    with pytest.raises(TrackerError) as refused:
        await hub.todo()

    assert refused.value.kind is TrackerErrorKind.UNAVAILABLE
    assert refused.value.retry_after == seconds
    assert len(hub.server.asked) == 1


async def test_the_end_of_the_hour_is_the_servers(hub: GitHub) -> None:
    """A reset is a time by its clock; ours may be hours off."""
    from datetime import timedelta

    hub.server.skew = timedelta(hours=9)
    hub.service.remaining = 0

    with pytest.raises(TrackerError) as refused:
        await hub.todo()

    assert refused.value.retry_after is not None
    assert 1795 <= refused.value.retry_after <= 1801
    asked = len(hub.server.asked)
    with pytest.raises(TrackerError) as refused:
        await hub.todo()
    assert refused.value.retry_after is not None
    assert len(hub.server.asked) == asked  # what is known to be empty is not asked


REFUSALS: Mapping[str, tuple[Fault, TrackerErrorKind]] = {
    "401": (Refuse(status=401, body={"message": "Bad credentials"}), TrackerErrorKind.CLOSED),
    "403": (Refuse(status=403, body=FORBIDDEN), TrackerErrorKind.CLOSED),
    "404": (Refuse(status=404, body={"message": "Not Found"}), TrackerErrorKind.NOT_FOUND),
    "410": (
        Refuse(status=410, body={"message": "Issues are disabled for this repo"}),
        TrackerErrorKind.CLOSED,
    ),
    "422": (
        Refuse(
            status=422,
            body={
                "message": "Validation Failed",
                "errors": [{"resource": "Issue", "field": "since", "code": "invalid"}],
            },
        ),
        TrackerErrorKind.INVALID,
    ),
    "500": (Refuse(status=500, body={}), TrackerErrorKind.UNAVAILABLE),
    "503": (Refuse(status=503, body=b"busy"), TrackerErrorKind.CLOSED),
    "a sign-in page": (Html(), TrackerErrorKind.UNAVAILABLE),
    "a retired version": (Refuse(status=400, body={"message": "x"}), TrackerErrorKind.INVALID),
    "a renamed repository": (
        Refuse(
            status=301, body={"message": "Moved"}, headers={"Location": "/api/v3/repositories/1"}
        ),
        TrackerErrorKind.CLOSED,
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
async def test_other_refusals_ask_for_no_time(hub: GitHub, name: str) -> None:
    """They say what GitHub said, and who is meant."""
    fault, kind = REFUSALS[name]
    hub.server.inject(fault)

    with pytest.raises(TrackerError) as refused:
        await hub.todo()

    assert (refused.value.kind, refused.value.retry_after) == (kind, None)
    assert str(refused.value).startswith("cannot list the issues of octo-org/hello-world")


async def test_polls_are_stretched_before_the_limit_is_hit(hub: GitHub) -> None:
    """So that what is left lasts until the hour is over."""
    hub.service.put(1, names=["Todo"])
    hub.service.put(2, names=["Todo"])
    hub.service.remaining = 5000
    await hub.todo()
    plenty = hub.tracker.list_pause()
    hub.service.relabel(1, "Review")
    hub.service.remaining = 221
    await hub.todo()
    short = hub.tracker.list_pause()

    assert plenty < 1
    assert 85 < short < 95  # 20 polls in half an hour
    (budget,) = hub.tracker.budgets()
    assert (budget.name, budget.limit, budget.remaining) == ("core", 5000, 220)
