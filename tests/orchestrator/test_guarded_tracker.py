"""What becomes of a request to the tracker for which this machine lacks something."""

from __future__ import annotations

import errno

import pytest
import trio

from sortie.model import TrackerError, TrackerErrorKind
from sortie.orchestrator.guarded_tracker import ask
from sortie.resources import Shortages, keep_account
from sortie.telemetry import facts
from sortie.telemetry.facts import Fact


def translated() -> TrackerError:
    """Return what an adapter makes of it that knows what it met."""
    error = TrackerError(TrackerErrorKind.UNAVAILABLE, "could not connect")
    error.__cause__ = OSError(errno.EMFILE, "Too many open files")
    return error


@pytest.mark.parametrize("error", [OSError(errno.EMFILE, "Too many open files"), translated()])
async def test_a_shortage_that_a_request_meets_is_on_the_account(error: Exception) -> None:
    """Readiness names it, nobody is said to have crashed, and the request has failed."""
    told: list[Fact] = []
    shortages = Shortages()
    keep_account(shortages)

    async def request() -> None:
        await trio.lowlevel.checkpoint()
        raise error

    with pytest.raises(TrackerError):
        await ask("fetch_candidates", request, told.append)

    assert ["limit of open files" in sentence for sentence in shortages.shortages] == [True]
    assert [type(fact) for fact in told] == [facts.TrackerAsked]
