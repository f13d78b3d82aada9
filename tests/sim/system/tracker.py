"""The tracker as one life of the daemon reaches it: truth that has to come through a bad line."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

import trio
from msgspec.structs import replace

from sortie.model import Issue, IssueId, TrackerError, TrackerErrorKind
from sortie.trackers import IssuesRead, Overview, Tracker
from tests.sim.system.plug import Plug
from tests.sim.system.trace import Trace
from tests.trackers.fake import FakeTracker

_T = TypeVar("_T")


@dataclass(slots=True)
class Line:
    """How requests fare. Each is a chance from 0 to 1, for any one request.

    ``unanswered``: it is carried out and the answer is lost; ``lost``: it is not carried out;
    ``hanging``: no answer ever; ``nonsense``: the adapter crashes on the answer; ``forgetful``: a
    re-read misses an issue that is there; ``lagging``: a list is as of some time ago. ``down``:
    nothing gets through. ``limited``: it is refused, with a time to be left alone for. ``delay`` is
    how many seconds a way takes at most. ``refusal`` is what writes meet.
    """

    down: bool = False
    unanswered: float = 0.0
    lost: float = 0.0
    hanging: float = 0.0
    nonsense: float = 0.0
    forgetful: float = 0.0
    lagging: float = 0.0
    limited: float = 0.0
    delay: float = 0.5
    refusal: TrackerErrorKind | None = None


@dataclass(slots=True)
class Tracked:
    """The tracker itself, with the line to it; it outlives the lives.

    ``past`` is how lists looked some time ago. ``moved`` is told of each transition made, and
    ``heard`` of each whose answer has reached the daemon.
    """

    truth: FakeTracker
    draw: Random
    trace: Trace
    line: Line = field(default_factory=Line)
    past: tuple[Issue, ...] = ()
    moved: Callable[[Issue, str], object] = lambda _issue, _state: None
    heard: Callable[[Issue, str], object] = lambda _issue, _state: None

    def remember(self) -> None:
        """Have lists that lag behind show what is there now."""
        self.past = tuple(self.truth._issues.values())


class SimTracker(Tracker):
    """A Tracker of one life. Whoever asks it before the time that it named does wrong."""

    def __init__(self, tracked: Tracked, plug: Plug) -> None:
        self._tracked = tracked
        self._plug = plug
        self._limited_at = self._limited_until = -math.inf

    async def fetch_candidates(self, states: Collection[str]) -> Sequence[Issue]:
        """See Tracker; a list may lag behind."""
        return await self._ask(lambda: self._list(states))

    async def find(self, name: str) -> Issue | None:
        """See Tracker."""
        return await self._ask(lambda: self._tracked.truth.find(name))

    async def fetch_by_ids(self, ids: Collection[IssueId]) -> IssuesRead:
        """See Tracker; an issue may be missed that is there."""
        wanted = sorted(ids)
        answer = await self._ask(lambda: self._tracked.truth.fetch_by_ids(wanted))
        if answer.issues and self._happens(self._tracked.line.forgetful):
            self._tracked.trace.note("tracker", f"forgets {answer.issues[0].identifier}")
            answer = replace(answer, issues=answer.issues[1:])
        return answer

    async def transition(self, issue: Issue, state: str) -> Issue:
        """See Tracker."""
        moved = await self._ask(lambda: self._transition(issue, state))
        self._tracked.heard(issue, state)
        return moved

    async def comment(
        self, issue: Issue, body: str, key: str | None = None, *, again: bool = False
    ) -> None:
        """See Tracker."""
        await self._ask(lambda: self._comment(issue, body, key, again=again))

    def overview(self) -> Overview:
        """See Tracker."""
        return self._tracked.truth.overview()

    def list_pause(self) -> float:
        """See Tracker; one that refuses requests now and then gets short of them too."""
        if not self._happens(self._tracked.line.limited):
            return 0.0
        return self._tracked.draw.uniform(1, 90)

    # What the other end does

    async def _list(self, states: Collection[str]) -> Sequence[Issue]:
        tracked = self._tracked
        if not self._happens(tracked.line.lagging):
            return await tracked.truth.fetch_candidates(states)
        tracked.trace.note("tracker", "lists what was")
        return await FakeTracker(tracked.past).fetch_candidates(states)

    async def _transition(self, issue: Issue, state: str) -> Issue:
        self._refuse()
        moved = await self._tracked.truth.transition(issue, state)
        self._tracked.trace.note("tracker", f"{issue.identifier} is moved to {state} by us")
        self._tracked.moved(issue, state)
        return moved

    async def _comment(self, issue: Issue, body: str, key: str | None, *, again: bool) -> None:
        self._refuse()
        await self._tracked.truth.comment(issue, body, key, again=again)

    def _refuse(self) -> None:
        if (kind := self._tracked.line.refusal) is not None:
            raise TrackerError(kind, f"the tracker refuses writes: {kind}")

    # The line

    async def _ask(self, request: Callable[[], Awaitable[_T]]) -> _T:
        if self._limited_at < trio.current_time() < self._limited_until:
            self._tracked.trace.wrong("the tracker is asked while it wants to be left alone")
        return await self._plug.through(lambda: self._through_the_line(request))

    async def _through_the_line(self, request: Callable[[], Awaitable[_T]]) -> _T:
        line, draw = self._tracked.line, self._tracked.draw
        there, back = draw.uniform(0, line.delay), draw.uniform(0, line.delay)
        lost, unanswered = self._happens(line.lost), self._happens(line.unanswered)
        hanging, nonsense = self._happens(line.hanging), self._happens(line.nonsense)
        limited = self._happens(line.limited)
        await trio.sleep(there)
        if limited:
            self._limited_at, seconds = trio.current_time(), draw.uniform(1, 90)
            self._limited_until = max(self._limited_until, self._limited_at + seconds)
            raise TrackerError(
                TrackerErrorKind.UNAVAILABLE, "too many requests", retry_after=seconds
            )
        if line.down or lost:
            raise TrackerError(TrackerErrorKind.UNAVAILABLE, "the request did not get through")
        answer = await request()
        await trio.sleep(math.inf if hanging else back)
        if unanswered:
            raise TrackerError(TrackerErrorKind.UNAVAILABLE, "the answer was lost")
        if nonsense:
            raise LookupError("the answer was nonsense")
        return answer

    def _happens(self, chance: float) -> bool:
        return self._tracked.draw.random() < chance
