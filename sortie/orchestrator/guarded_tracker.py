"""Asking the tracker: every request is bounded, timed, and answered, whatever it raises."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TypeVar

import trio

from sortie.model import Issue, IssueId, TrackerError, TrackerErrorKind
from sortie.orchestrator.tracker_answers import Complain, sound_issues, sound_move, sound_read
from sortie.resources import note, shortage_behind
from sortie.telemetry import Publish, facts
from sortie.trackers import IssuesRead, Overview, Tracker

_TOLD_AT_MOST = 1000
"""Complaints that are remembered, so that a broken adapter fills neither log nor memory."""

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
        if (shortage := shortage_behind(exc)) is not None:
            note(shortage)
        error = str(exc)
        raise
    except trio.TooSlowError as exc:
        error = f"the tracker did not answer within {PATIENCE:g} s ({operation})"
        raise TrackerError(TrackerErrorKind.UNAVAILABLE, error) from exc
    except Exception as exc:  # the edge: an adapter's bug is one failed answer
        shortage = shortage_behind(exc)
        if shortage is not None:
            note(shortage)
            error = f"the tracker could not be asked ({operation}): {shortage}"
            raise TrackerError(TrackerErrorKind.CLOSED, error) from exc
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


class GuardedTracker:
    """A tracker whose every request goes through ``ask``, and whose answers are what they are
    declared to be: an adapter's bug must not reach the scheduler."""

    def __init__(self, tracker: Tracker, publish: Publish) -> None:
        self._tracker = tracker
        self._publish = publish
        self._told: set[str] = set()

    async def fetch_candidates(self, states: Collection[str]) -> Sequence[Issue]:
        """See Tracker."""

        async def request() -> Sequence[Issue]:
            answer = await self._tracker.fetch_candidates(states)
            return sound_issues(answer, self._complaining("fetch_candidates"))

        return await ask("fetch_candidates", request, self._publish)

    async def fetch_by_ids(self, ids: Collection[IssueId]) -> IssuesRead:
        """See Tracker."""

        async def request() -> IssuesRead:
            answer = await self._tracker.fetch_by_ids(ids)
            return sound_read(answer, ids, self._complaining("fetch_by_ids"))

        return await ask("fetch_by_ids", request, self._publish)

    async def fetch_by_states(self, states: Collection[str]) -> Sequence[Issue]:
        """See Tracker."""

        async def request() -> Sequence[Issue]:
            answer = await self._tracker.fetch_by_states(states)
            return sound_issues(answer, self._complaining("fetch_by_states"))

        return await ask("fetch_by_states", request, self._publish)

    async def transition(self, issue: Issue, state: str) -> Issue:
        """See Tracker."""

        async def request() -> Issue:
            return sound_move(await self._tracker.transition(issue, state), issue)

        return await ask("transition", request, self._publish)

    async def comment(self, issue: Issue, body: str) -> None:
        """See Tracker."""
        await ask("comment", lambda: self._tracker.comment(issue, body), self._publish)

    def overview(self) -> Overview:
        """See Tracker; an adapter's bug makes it an empty one."""
        try:
            return self._tracker.overview()
        except Exception:  # the edge: as for every request
            self._complaining("overview")(traceback.format_exc())
            return Overview()

    def _complaining(self, operation: str) -> Complain:
        """Return how to tell of what is wrong in an answer: each thing once."""

        def complain(flaw: str) -> None:
            if flaw in self._told:
                return
            if len(self._told) >= _TOLD_AT_MOST:
                self._told.clear()
            self._told.add(flaw)
            self._publish(facts.AdapterCrashed(where=operation, traceback=flaw))

        return complain
