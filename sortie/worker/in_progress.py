"""Moving an issue to the in-progress state: before all else of its run, or beside its turns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from sortie.model import (
    LOCAL,
    Issue,
    TrackerError,
    same_state,
)
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from sortie.trackers.outages import OutagePauses
from sortie.worker.context import Assignment, RunContext, RunReporter, RunScopes
from sortie.worker.outcome import workspace_needed

_T = TypeVar("_T")


class InProgressMove:
    """The move of a run's issue to the in-progress state, if one is named.

    A tracker that refuses it is told of, and the run goes on without. One in an outage is asked
    again while turns are taken.
    """

    def __init__(
        self, job: Assignment, context: RunContext, reporter: RunReporter, scopes: RunScopes
    ) -> None:
        self._job = job
        self._context = context
        self._reporter = reporter
        self._scopes = scopes
        self._state = context.settings.tracker.in_progress_state
        self._pauses = OutagePauses()
        self._again_at: float | None = None  # None: it is made, refused, or not wanted

    async def make(self) -> Issue:
        """Move the issue and return it as it is then. Raises Abandoned where the host of the run
        cannot be reached."""
        issue = self._job.issue
        if self._state is None or same_state(self._state, issue.state):
            return issue
        if self._context.transport.host != LOCAL:  # before the tracker shows that work begins
            with workspace_needed():
                await self._context.workspaces.reach()
        return await self._try(issue, self._state)

    async def beside(self, issue: Issue, turn: Callable[[], Awaitable[_T]]) -> _T:
        """Take a turn, and make up meanwhile for a move that an outage has kept from being made.

        The caller reads the issue after the turn, and learns by that what became of it.
        """
        if self._again_at is None or not same_state(issue.state, self._job.issue.state):
            return await turn()
        error: Exception | None = None
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._make_up, issue)
                try:
                    end = await turn()
                except Exception as exc:  # not passed on: the nursery would wrap it
                    error = exc
                nursery.cancel_scope.cancel()
        finally:
            if error is not None:
                raise error
        return end

    async def _make_up(self, issue: Issue) -> None:
        assert self._state is not None
        while self._again_at is not None:
            await trio.sleep_until(self._again_at)
            await self._try(issue, self._state)

    async def _try(self, issue: Issue, state: str) -> Issue:
        """Try the move once, and tell what came of it."""
        error: TrackerError | None = None
        # A stop must not come between the move and the telling of it: it would look as if a
        # person had moved the issue.
        await trio.lowlevel.checkpoint()
        with self._scopes.shield() as shield:
            try:
                issue = await self._context.tracker.transition(issue, state)
            except TrackerError as exc:
                error = exc
            else:
                self._reporter.tell(ev.IssueMoved(self._job.run_id, issue, True))
        is_outage = error is not None and error.kind.is_outage
        self._again_at = None
        if error is not None and is_outage:
            self._again_at = trio.current_time() + self._pauses.after(error)
        why = "the daemon was told to leave at once" if shield.cancelled_caught else error
        self._reporter.publish(
            facts.TransitionCompleted(
                issue=issue,
                lifecycle="dispatch",
                state=state,
                result="success" if why is None else "error",
                error=None if why is None else str(why),
                closed=is_outage,
            )
        )
        return issue
