"""A tracker over HTTP: how issues are read again and moved, whichever provider has them.

Rule 1: that no issue of several is there is believed only while their project can be seen.
Rule 2: a move reads, compares, writes and reads again; a change with a lost answer is looked for.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

import trio

from sortie.http.at_once import each
from sortie.http.client import HttpClient
from sortie.model import (
    Comment,
    Issue,
    IssueId,
    LostAnswer,
    RateBudget,
    TrackerError,
    TrackerErrorKind,
    same_state,
)
from sortie.model.trust import Endorsement, Right
from sortie.trackers import IssuesRead, Overview, TellsOfPeople, Tracker
from sortie.trackers.http.listed import ListedIssues

ItemT = TypeVar("ItemT")

MOVE_TRIES = 3
"""How often a change is made that was half done, or met another change being written."""

COMMENTS_LIFE = 600.0
"""Seconds for which the comments of an issue that has not changed are not asked for again."""

COMMENTS_REMEMBERED = 2000
"""Issues whose comments are remembered."""


class HttpTracker(Tracker, Generic[ItemT]):
    """Does by the steps of an adapter what all have in common; an item is an issue as it was read.

    ``reads_back``: an issue is read once more after a move. Without it the answer to the change
    tells how the issue stands. ``people`` is what the provider tells of them.
    """

    reads_back = True
    people: TellsOfPeople

    def __init__(self, client: HttpClient) -> None:
        self.client = client
        self._listed = ListedIssues()
        self._moving: WeakValueDictionary[IssueId, trio.Lock] = WeakValueDictionary()

    # The steps of an adapter; each raises TrackerError.

    @abstractmethod
    async def _read(
        self, ids: Sequence[IssueId]
    ) -> tuple[Mapping[IssueId, ItemT], Mapping[IssueId, TrackerError]]:
        """Return those of these issues that are there, and those that could not be read."""

    @abstractmethod
    async def _present(self, issue: Issue) -> ItemT:
        """Read an issue right before or after a change. Raises NOT_FOUND where it is not there."""

    @abstractmethod
    async def _whole(self, item: ItemT, together: int = 1) -> Issue:
        """Return an item with comments and blockers; so many issues are read together."""

    @abstractmethod
    async def _check_project(self) -> None:
        """Raise CLOSED where issues could not be seen at all."""

    @abstractmethod
    def _heard(self, item: ItemT) -> None:
        """Take over what was read of an issue, where the list has it."""

    @abstractmethod
    def _gone(self, issue_id: IssueId) -> None:
        """Take an issue out of the list that is not there any more."""

    @abstractmethod
    def _state_of(self, item: ItemT) -> str:
        """Return the state that an item is in."""

    @abstractmethod
    async def _change(self, item: ItemT, issue: Issue, state: str) -> ItemT | None:
        """Ask for a move to a state, and return the item as the answers tell it, if they do."""

    def _is_done(self, item: ItemT, state: str) -> bool:
        """Tell whether nothing is left to do of a move to a state."""
        return same_state(self._state_of(item), state)

    def _not_made(self, what: str) -> TrackerError:
        """Return the error for a change that was accepted and is not seen."""
        return TrackerError(TrackerErrorKind.UNAVAILABLE, what)

    # What follows from them

    async def fetch_by_ids(self, ids: Collection[IssueId]) -> IssuesRead:
        """Read these issues again, with their comments."""
        wanted = list(dict.fromkeys(ids))
        if not wanted:
            await trio.lowlevel.checkpoint()
            return IssuesRead()
        items, errors = await self._read(wanted)
        if not items and not errors:
            await self._check_project()
        failed = {issue_id: errors[issue_id] for issue_id in wanted if issue_id in errors}
        issues: dict[IssueId, Issue] = {}

        async def read(issue_id: IssueId) -> None:
            self._heard(items[issue_id])
            try:
                issues[issue_id] = await self._whole(items[issue_id], len(items))
            except TrackerError as exc:
                if exc.kind is TrackerErrorKind.CLOSED or exc.retry_after is not None:
                    raise
                if exc.kind is not TrackerErrorKind.NOT_FOUND:
                    failed[issue_id] = exc

        await each(read, [issue_id for issue_id in wanted if issue_id in items])
        for issue_id in wanted:
            if issue_id not in items and issue_id not in failed:
                self._gone(issue_id)
        return IssuesRead(issues=tuple(issues[i] for i in wanted if i in issues), failed=failed)

    async def transition(self, issue: Issue, state: str) -> Issue:
        """Move an issue, if it is still where the caller believes it to be.

        No provider compares and sets, so what a person does between our last look and the change
        may be written over; moves of this daemon are made one after the other.
        """
        async with self._moving.setdefault(issue.id, trio.Lock()):
            moved = await self._moved(issue, state)
        self._heard(moved)
        return await self._whole(moved)

    async def _moved(self, issue: Issue, state: str) -> ItemT:
        before = await self._present(issue)
        for last in (False,) * (MOVE_TRIES - 1) + (True,):
            if self._is_done(before, state):
                return before  # perhaps by an earlier try, whose answer was lost
            present = self._state_of(before)
            if not same_state(present, issue.state) and not same_state(present, state):
                raise _conflict(issue, present)
            told, refusal = None, None
            try:
                told = await self._change(before, issue, state)
            except TrackerError as exc:
                is_lost = isinstance(exc, LostAnswer)
                if exc.retry_after is not None or (
                    exc.kind is TrackerErrorKind.CLOSED and not is_lost
                ):
                    raise
                refusal = exc
            if told is not None and not self.reads_back:
                after = told
            else:
                after = await self._present(issue)
            if self._is_done(after, state):
                return after
            found = self._state_of(after)
            if refusal is None:
                if told is not None and after == before and self._is_done(told, state):
                    return told  # the read lags behind the change
                if same_state(found, present):
                    what = f"{issue.identifier} was moved to {state}, and is still in {found}"
                    raise self._not_made(what)
                raise _conflict(issue, found)
            if not same_state(found, present) and not same_state(found, state):
                raise _conflict(issue, found) from refusal
            may_pass = refusal.kind is TrackerErrorKind.UNAVAILABLE
            if last or (after == before and (isinstance(refusal, LostAnswer) or not may_pass)):
                raise refusal
            before = after
        raise AssertionError

    async def may(self, author_id: str, right: Right) -> bool:
        """See TellsOfPeople."""
        return await self.people.may(author_id, right)

    async def endorsement(self, issue: Issue, label: str) -> Endorsement | None:
        """See TellsOfPeople."""
        return await self.people.endorsement(issue, label)

    def overview(self) -> Overview:
        """Return what the last list told."""
        return self._listed.overview()

    def budgets(self) -> Sequence[RateBudget]:
        """Return what the last answers said of the provider's limits."""
        return self.client.budgets()

    def list_pause(self) -> float:
        """Return what the client makes of these."""
        return self.client.list_pause()


class CommentMemory:
    """Comments by issue, asked for again when the issue has changed, and every ten minutes."""

    def __init__(self) -> None:
        self._known: dict[IssueId, tuple[object, float, tuple[Comment, ...]]] = {}

    async def get(
        self, issue_id: IssueId, version: object, read: Callable[[], Awaitable[Iterable[Comment]]]
    ) -> tuple[Comment, ...]:
        """Return the comments of an issue as of this version of it. Raises what ``read`` does."""
        now = trio.current_time()
        known = self._known.pop(issue_id, None)
        if known is None or known[0] != version or now - known[1] > COMMENTS_LIFE:
            known = version, now, tuple(await read())
        self._known[issue_id] = known
        while len(self._known) > COMMENTS_REMEMBERED:
            del self._known[next(iter(self._known))]
        return known[2]

    def forget(self, issue_id: IssueId) -> None:
        """Have the comments of an issue read again."""
        self._known.pop(issue_id, None)


def _conflict(issue: Issue, present: str) -> TrackerError:
    return TrackerError(
        TrackerErrorKind.CONFLICT,
        f"{issue.identifier} was moved from {issue.state} to {present} meanwhile",
    )
