"""The tracker as the rest of the program asks it: with time limits, and with the pauses it wants.

Rule 1: every request ends, with an answer that is what it is declared to be or with a TrackerError.
Rule 2: no request is made during a pause that the tracker asked for.
"""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from operator import attrgetter
from typing import TypeVar

import trio
from msgspec import Struct
from msgspec.structs import replace

from sortie.config.trust import TrustSettings
from sortie.model import Issue, IssueId, RateBudget, TrackerError, TrackerErrorKind
from sortie.model.checks import Check
from sortie.orchestrator.time_limits import PROGRESS_TIMEOUT, bounded
from sortie.orchestrator.tracker_answers import (
    Complain,
    Redact,
    SoundAnswers,
    sound_issue,
    sound_move,
)
from sortie.resources import note, shortage_behind
from sortie.telemetry import Publish, facts
from sortie.trackers import IssuesRead, Overview, Tracker, TrackerStates
from sortie.trackers.trust import Judge

LONGEST_PAUSE = 3600.0
"""Seconds of the longest pause, even if the tracker asks for more."""

CHANGES_PAUSE = 60.0
"""Seconds after which a tracker that could not tell of changes is asked again to do so."""

_COMPLAINT_LIMIT = 1000
"""Complaints that are remembered, so that a broken adapter fills neither log nor memory."""

_T = TypeVar("_T")
_end_of = attrgetter("until")


class TrackerPause(Struct, frozen=True, kw_only=True):
    """A pause that the tracker asked for; ``until`` is in trio's time."""

    until: float
    error: str


class GuardedTracker:
    """A tracker whose bugs, timeouts and rate limits are raised as TrackerError.

    What an adapter raises as ``retry_after`` leaves here as a number of seconds, LONGEST_PAUSE at
    most, or None.
    """

    def __init__(self, tracker: Tracker, publish: Publish) -> None:
        self._tracker = tracker
        self._publish = publish
        self._answers = SoundAnswers()
        self._judge = Judge(tracker, TrustSettings())
        self._complaints: set[str] = set()
        self._pause = TrackerPause(until=float("-inf"), error="")
        self._list_pause = self._pause
        self._lists_under_way = 0

    def hide(self, redact: Redact) -> None:
        """Pass on no issue with a secret in its texts from now on that ``redact`` knows."""
        self._answers.hide(redact)

    def trust(self, settings: TrustSettings) -> None:
        """Judge the authors of issues and comments by these settings from now on."""
        self._judge.settings = settings

    @property
    def pause(self) -> TrackerPause | None:
        """The pause in force, None where the tracker may be asked."""
        return _now(self._pause)

    @property
    def is_listing(self) -> bool:
        """Whether a request for candidates is under way."""
        return self._lists_under_way > 0

    async def fetch_candidates(self, states: Collection[str]) -> Sequence[Issue]:
        """See Tracker."""

        async def request() -> Sequence[Issue]:
            answer = await self._tracker.fetch_candidates(states)
            listed = self._answers.listed(answer, self._complaining("fetch_candidates"))
            return await self._judge.judged(listed)

        self._lists_under_way += 1
        try:
            return await self._ask("fetch_candidates", request)
        finally:
            self._lists_under_way -= 1

    async def fetch_by_ids(self, ids: Collection[IssueId]) -> IssuesRead:
        """See Tracker."""

        async def request() -> IssuesRead:
            answer = await self._tracker.fetch_by_ids(ids)
            read = self._answers.reread(answer, ids, self._complaining("fetch_by_ids"))
            return replace(read, issues=tuple(await self._judge.judged(read.issues)))

        answer = await self._ask("fetch_by_ids", request)
        for error in answer.failed.values():
            self._heed(error)
        return answer

    async def find(self, name: str) -> Issue | None:
        """See Tracker."""

        async def request() -> Issue | None:
            answer = await self._tracker.find(name)
            return None if answer is None else await self._sound(sound_issue(answer))

        return await self._ask("find", request)

    async def transition(self, issue: Issue, state: str) -> Issue:
        """See Tracker."""

        async def request() -> Issue:
            return await self._sound(
                sound_move(await self._tracker.transition(issue, state), issue)
            )

        return await self._ask("transition", request)

    async def _sound(self, issue: Issue) -> Issue:
        """Return an issue without secrets, with what its authors count for."""
        return (await self._judge.judged([self._answers.clean(issue)]))[0]

    async def complete_move(self, issue: Issue) -> None:
        """See Tracker."""
        await self._ask("complete_move", lambda: self._tracker.complete_move(issue))

    async def comment(
        self, issue: Issue, body: str, key: str | None = None, *, again: bool = False
    ) -> None:
        """See Tracker."""
        await self._ask("comment", lambda: self._tracker.comment(issue, body, key, again=again))

    async def changed(self) -> None:
        """See Tracker; returns only where issues may have changed, whatever fails meanwhile."""
        while True:
            await trio.sleep_until(self._pause.until)
            try:
                return await self._tracker.changed()
            except TrackerError as exc:
                self._heed(exc)
            except Exception:  # the edge: as for every request
                self._complaining("changed")(traceback.format_exc())
            await trio.sleep(CHANGES_PAUSE)

    def configure(self, states: TrackerStates) -> None:
        """See Tracker; an adapter's bug refuses the reload."""
        try:
            self._tracker.configure(states)
        except TrackerError:
            raise
        except Exception as exc:  # the edge: as for every request
            raise self._crashed("configure", exc) from exc

    def overview(self) -> Overview:
        """See Tracker; an adapter's bug makes it an empty one."""
        try:
            return self._tracker.overview()
        except Exception:  # the edge: as for every request
            self._complaining("overview")(traceback.format_exc())
            return Overview()

    def budgets(self) -> Sequence[RateBudget]:
        """See Tracker; an adapter's bug makes it none."""
        try:
            return tuple(self._tracker.budgets())
        except Exception:  # the edge: as for every request
            self._complaining("budgets")(traceback.format_exc())
            return ()

    def checks(self) -> Sequence[Check]:
        """See Tracker; each check is bounded as a request is. Raises TrackerError for a bug."""
        try:
            checks = tuple(self._tracker.checks())
        except Exception as exc:  # the edge: as for every request
            raise self._crashed("checks", exc) from exc
        return [
            replace(check, ask=partial(self._ask, f"check {check.name}", check.ask))
            for check in checks
        ]

    def list_pause(self) -> float:
        """See Tracker: LONGEST_PAUSE at most, and 0 after an adapter's bug."""
        try:
            return min(max(float(self._tracker.list_pause()), 0.0), LONGEST_PAUSE)
        except Exception:  # the edge: as for every request
            self._complaining("list_pause")(traceback.format_exc())
            return 0.0

    async def _ask(self, operation: str, request: Callable[[], Awaitable[_T]]) -> _T:
        """Make one request. Raises TrackerError for every failure, an adapter's crash included."""
        pause = self.pause
        if pause is None and operation == "fetch_candidates":
            pause = _now(self._list_pause)
        if pause is not None:
            await trio.lowlevel.checkpoint()
            raise TrackerError(
                TrackerErrorKind.UNAVAILABLE,
                pause.error,
                retry_after=pause.until - trio.current_time(),
                lists_only=self.pause is None,
            )
        began, error = trio.current_time(), "the answer was not waited for any more"
        try:
            answer = await bounded(request)
            error = ""
            return answer
        except TrackerError as exc:
            if (shortage := shortage_behind(exc)) is not None:
                note(shortage)
            self._heed(exc)
            error = str(exc)
            raise
        except trio.TooSlowError as exc:
            error = f"the tracker did not answer within {PROGRESS_TIMEOUT:g} s ({operation})"
            raise TrackerError(TrackerErrorKind.UNAVAILABLE, error) from exc
        except Exception as exc:  # the edge: an adapter's bug is one failed answer
            shortage = shortage_behind(exc)
            if shortage is not None:
                note(shortage)
                error = f"the tracker could not be asked ({operation}): {shortage}"
                raise TrackerError(TrackerErrorKind.CLOSED, error) from exc
            error = f"the tracker adapter crashed ({operation}): {type(exc).__name__}"
            self._publish(facts.AdapterCrashed(where=operation, traceback=traceback.format_exc()))
            raise TrackerError(TrackerErrorKind.UNAVAILABLE, error) from exc
        finally:
            self._publish(
                facts.TrackerAsked(
                    operation=operation,
                    result="error" if error else "success",
                    seconds=trio.current_time() - began,
                    error=error or None,
                )
            )

    def _crashed(self, where: str, bug: Exception) -> TrackerError:
        """Tell of an adapter's bug and return it as an error of what was asked."""
        self._publish(facts.AdapterCrashed(where=where, traceback=traceback.format_exc()))
        message = f"the tracker adapter crashed ({where}): {type(bug).__name__}"
        return TrackerError(TrackerErrorKind.INVALID, message)

    def _heed(self, error: TrackerError) -> None:
        """Begin the pause that an error asks for, if it asks for one."""
        asked = error.retry_after
        if isinstance(asked, bool) or not isinstance(asked, int | float) or not asked > 0:
            error.retry_after = None
            return
        seconds = error.retry_after = min(float(asked), LONGEST_PAUSE)
        pause = TrackerPause(until=trio.current_time() + seconds, error=str(error))
        if error.lists_only:
            self._list_pause = max(self._list_pause, pause, key=_end_of)
        elif pause.until > self._pause.until:
            self._pause, asked = pause, float(asked)
            began = facts.TrackerPauseBegan(seconds=seconds, asked=asked, error=pause.error)
            self._publish(began)

    def _complaining(self, operation: str) -> Complain:
        """Return a function that publishes what is wrong in an answer, each thing once."""

        def complain(flaw: str) -> None:
            if flaw in self._complaints:
                return
            if len(self._complaints) >= _COMPLAINT_LIMIT:
                self._complaints.clear()
            self._complaints.add(flaw)
            self._publish(facts.AdapterCrashed(where=operation, traceback=flaw))

        return complain


def _now(pause: TrackerPause) -> TrackerPause | None:
    return pause if pause.until > trio.current_time() else None
