"""Asking the tracker: every request is bounded, timed, and answered, whatever it raises."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TypeVar

import trio

from sortie.model import Issue, IssueId, TrackerError, TrackerErrorKind
from sortie.telemetry import Publish, facts
from sortie.trackers import IssuesRead, Tracker

PATIENCE = 60.0
"""Seconds after which a tracker that does not answer is taken to be unavailable."""

_T = TypeVar("_T")


async def ask(operation: str, request: Callable[[], Awaitable[_T]], publish: Publish) -> _T:
    """Make one request. Raises TrackerError for every failure, a crash of the adapter included."""
    began, error = trio.current_time(), "nobody waited for the answer any more"
    try:
        with trio.fail_after(PATIENCE):
            answer = await request()
        error = ""
        return answer
    except TrackerError as exc:
        error = str(exc)
        raise
    except trio.TooSlowError as exc:
        error = f"the tracker did not answer within {PATIENCE:g} s ({operation})"
        raise TrackerError(TrackerErrorKind.UNAVAILABLE, error) from exc
    except Exception as exc:  # the edge: an adapter's bug is one failed answer
        error = f"the tracker adapter crashed ({operation}): {type(exc).__name__}"
        publish(facts.AdapterCrashed(where=operation, traceback=traceback.format_exc()))
        raise TrackerError(TrackerErrorKind.UNAVAILABLE, error) from exc
    finally:
        publish(
            facts.TrackerAsked(
                operation=operation,
                result="error" if error else "success",
                seconds=trio.current_time() - began,
                error=error or None,
            )
        )


class AskedTracker:
    """A tracker whose every request goes through ``ask``."""

    def __init__(self, tracker: Tracker, publish: Publish) -> None:
        self._tracker = tracker
        self._publish = publish

    async def fetch_candidates(self, states: Collection[str]) -> Sequence[Issue]:
        """See Tracker."""
        return await ask(
            "fetch_candidates", lambda: self._tracker.fetch_candidates(states), self._publish
        )

    async def fetch_by_ids(self, ids: Collection[IssueId]) -> IssuesRead:
        """See Tracker."""
        return await ask("fetch_by_ids", lambda: self._tracker.fetch_by_ids(ids), self._publish)

    async def fetch_by_states(self, states: Collection[str]) -> Sequence[Issue]:
        """See Tracker."""
        return await ask(
            "fetch_by_states", lambda: self._tracker.fetch_by_states(states), self._publish
        )

    async def transition(self, issue: Issue, state: str) -> Issue:
        """See Tracker."""
        return await ask(
            "transition", lambda: self._tracker.transition(issue, state), self._publish
        )

    async def comment(self, issue: Issue, body: str) -> None:
        """See Tracker."""
        await ask("comment", lambda: self._tracker.comment(issue, body), self._publish)
