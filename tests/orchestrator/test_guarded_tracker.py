"""What becomes of a request to the tracker that does not end as the port says."""

from __future__ import annotations

import errno
from collections.abc import Collection, Sequence

import pytest
import trio

from sortie.model import Issue, TrackerError, TrackerErrorKind
from sortie.orchestrator.guarded_tracker import GuardedTracker
from sortie.resources import Shortages, keep_account
from sortie.telemetry import facts
from sortie.telemetry.facts import Fact
from tests.trackers.fake import FakeTracker


class Raising(FakeTracker):
    """A tracker whose lists fail with an error."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._raised = error

    async def fetch_candidates(self, states: Collection[str]) -> Sequence[Issue]:
        await trio.lowlevel.checkpoint()
        raise self._raised


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

    with pytest.raises(TrackerError):
        await GuardedTracker(Raising(error), told.append).fetch_candidates(["todo"])

    assert ["limit of open files" in sentence for sentence in shortages.shortages] == [True]
    assert [type(fact) for fact in told] == [facts.TrackerAsked]


async def test_a_bug_of_an_adapter_is_one_failed_answer() -> None:
    """The error names the request and the kind of bug, not what the bug says, which may hold a
    secret; the traceback is told of as a fact."""
    told: list[Fact] = []

    guarded = GuardedTracker(Raising(KeyError("a secret")), told.append)

    with pytest.raises(TrackerError) as caught:
        await guarded.fetch_candidates(["todo"])

    sentence = "the tracker adapter crashed (fetch_candidates): KeyError"
    assert (caught.value.kind, str(caught.value)) == (TrackerErrorKind.UNAVAILABLE, sentence)
    assert [type(fact) for fact in told] == [facts.AdapterCrashed, facts.TrackerAsked]
