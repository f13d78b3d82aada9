"""A tracker in memory, with a switch for each way in which a real one fails."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import trio
from msgspec.structs import replace

from sortie.model import (
    Blocker,
    Comment,
    Issue,
    IssueId,
    RateBudget,
    TrackerError,
    TrackerErrorKind,
    same_state,
    state_key,
)
from sortie.model.checks import Check, CheckResult, passed
from sortie.trackers import IssuesRead, Overview, Tracker, UnreadableIssue

AUTHOR = "sortie"

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A transition that was made through the port."""

    identifier: str
    before: str
    after: str


class FakeTracker(Tracker):
    """Issues in memory, and what the world does to them.

    Rule 1: a read answers with the world as it was when it was asked, however slow it is.
    Rule 2: a write that failed changed nothing.

    Switches: ``down`` fails every call with that kind, ``delay`` (seconds) makes every call
    slow, ``unreadable`` fails the re-read of single issues and hides them from lists,
    ``transitions_fail``, ``comments_fail`` and ``writes_fail`` refuse writes, of all issues or
    of single ones. ``limits`` are its rate budgets.
    """

    def __init__(self, issues: Iterable[Issue] = ()) -> None:
        self.down: TrackerErrorKind | None = None
        self.retry_after: float | None = None
        self.delay = 0.0
        self.unreadable: dict[IssueId, TrackerErrorKind] = {}
        self.transitions_fail: TrackerErrorKind | None = None
        self.comments_fail: TrackerErrorKind | None = None
        self.limits: tuple[RateBudget, ...] = ()
        self.writes_fail: dict[IssueId, TrackerErrorKind] = {}
        self.moves: list[Moved] = []
        self.keys: list[str | None] = []  # of the comments that were made
        self._issues: dict[IssueId, Issue] = {}
        self._lost: dict[IssueId, Issue] = {}
        self._journeys: dict[IssueId, list[str]] = {}
        self._change = trio.Event()
        self._changes = self._changes_told = 0
        for issue in issues:
            self.put(issue)

    # What the world does

    def comments_on(self, issue_id: str) -> tuple[Comment, ...]:
        """Return what is said about an issue that is there."""
        return self._issues[IssueId(issue_id)].comments

    def put(self, issue: Issue) -> Issue:
        """Add an issue, or put it in another's place."""
        self._issues[issue.id] = issue
        self._changes += 1
        self._change.set()
        journey = self._journeys.setdefault(issue.id, [])
        if not journey or not same_state(journey[-1], issue.state):
            journey.append(issue.state)
        return issue

    def edit(self, issue_id: str, **changes: Any) -> Issue:
        """Change fields of an issue as a person would."""
        return self.put(replace(self._issues[IssueId(issue_id)], **changes))

    def lose(self, issue_id: str) -> None:
        """Make an issue vanish, until ``find_again``."""
        self._lost[IssueId(issue_id)] = self._issues.pop(IssueId(issue_id))

    def find_again(self, issue_id: str) -> None:
        """Bring a lost issue back as it was."""
        self.put(self._lost.pop(IssueId(issue_id)))

    # The port

    async def fetch_candidates(self, states: Collection[str]) -> Sequence[Issue]:
        """Return the readable issues in these states."""
        wanted = {state_key(state) for state in states}
        chosen = [
            self._with_blockers(issue)
            for issue in self._issues.values()
            if state_key(issue.state) in wanted and issue.id not in self.unreadable
        ]
        await self._answer()
        return chosen

    async def fetch_by_ids(self, ids: Collection[IssueId]) -> IssuesRead:
        """Return those issues that are there; the unreadable ones as failed."""
        wanted = [issue_id for issue_id in dict.fromkeys(ids) if issue_id in self._issues]
        failed = {i: self._error(self.unreadable[i]) for i in wanted if i in self.unreadable}
        issues = tuple(self._with_blockers(self._issues[i]) for i in wanted if i not in failed)
        await self._answer()
        return IssuesRead(issues=issues, failed=failed)

    async def find(self, name: str) -> Issue | None:
        """Return the issue of that identifier or id."""
        found = [i for i in self._issues.values() if name in (i.identifier, i.id)]
        await self._answer()
        if not found:
            return None
        if (kind := self.unreadable.get(found[0].id)) is not None:
            raise self._error(kind)
        return self._with_blockers(found[0])

    async def transition(self, issue: Issue, state: str) -> Issue:
        """Move an issue, if it is where the caller believes it to be."""
        await self._answer()
        present = self._present(issue.id, self.transitions_fail)
        if not same_state(present.state, issue.state):
            raise self._error(TrackerErrorKind.CONFLICT)
        self.moves.append(Moved(identifier=present.identifier, before=present.state, after=state))
        return self._with_blockers(self.put(replace(present, state=state)))

    async def comment(
        self, issue: Issue, body: str, key: str | None = None, *, again: bool = False
    ) -> None:
        """Append a comment, or find the one of that key."""
        await self._answer()
        present = self._present(issue.id, self.comments_fail)
        if again and key in self.keys:
            return
        self.keys.append(key)
        remark = Comment(author=AUTHOR, body=body, created_at=EPOCH)
        self.put(replace(present, comments=(*present.comments, remark)))

    async def changed(self) -> None:
        """Return once an issue was put since the last call."""
        while self._changes == self._changes_told:
            self._change = trio.Event()
            await self._change.wait()
        await trio.lowlevel.checkpoint()
        self._changes_told = self._changes

    def overview(self) -> Overview:
        """Return the issues as they are; the unreadable ones by their ids."""
        return Overview(
            issues=tuple(i for i in self._issues.values() if i.id not in self.unreadable),
            unreadable=tuple(
                UnreadableIssue(message=f"{i}: it is {kind}", names=frozenset({i}))
                for i, kind in self.unreadable.items()
            ),
        )

    def budgets(self) -> Sequence[RateBudget]:
        """Return the budgets that it was given."""
        return self.limits

    def checks(self) -> Sequence[Check]:
        """Look whether it is down."""

        async def read() -> CheckResult:
            await self._answer()
            return passed("it answers")

        return (Check(name="read", ask=read),)

    # Verdicts

    def states(self) -> dict[str, str]:
        """Return each issue's state, by identifier."""
        return {issue.identifier: issue.state for issue in self._issues.values()}

    def remarks(self, issue_id: str) -> tuple[str, ...]:
        """Return what was said on an issue through the port, in order."""
        comments = self._issues[IssueId(issue_id)].comments
        return tuple(comment.body for comment in comments if comment.author == AUTHOR)

    def journey(self, issue_id: str) -> tuple[str, ...]:
        """Return the states that an issue went through, whoever moved it."""
        return tuple(self._journeys[IssueId(issue_id)])

    def assert_all_in(self, *states: str) -> None:
        """Fail unless every issue is in one of these states."""
        wanted = {state_key(state) for state in states}
        astray = {i: state for i, state in self.states().items() if state_key(state) not in wanted}
        assert not astray, f"not in {sorted(states)}: {astray}"

    def assert_never_moved_from(self, *states: str) -> None:
        """Fail where a transition took an issue out of one of these states."""
        forbidden = {state_key(state) for state in states}
        wrong = [move for move in self.moves if state_key(move.before) in forbidden]
        assert not wrong, f"moved out of {sorted(states)}: {wrong}"

    async def _answer(self) -> None:
        await trio.lowlevel.checkpoint()
        if self.delay:
            await trio.sleep(self.delay)
        if self.down is not None:
            raise self._error(self.down)

    def _present(self, issue_id: IssueId, refusal: TrackerErrorKind | None) -> Issue:
        if issue_id not in self._issues:
            raise self._error(TrackerErrorKind.NOT_FOUND)
        reason = refusal or self.writes_fail.get(issue_id) or self.unreadable.get(issue_id)
        if reason is not None:
            raise self._error(reason)
        return self._issues[issue_id]

    def _error(self, kind: TrackerErrorKind) -> TrackerError:
        return TrackerError(kind, f"the fake tracker is {kind}", retry_after=self.retry_after)

    def _with_blockers(self, issue: Issue) -> Issue:
        if not issue.blocked_by:
            return issue
        known = {other.identifier: other for other in self._issues.values()}
        blockers = tuple(
            Blocker(
                identifier=blocker.identifier,
                id=known[blocker.identifier].id,
                state=known[blocker.identifier].state,
            )
            if blocker.identifier in known and known[blocker.identifier].id not in self.unreadable
            else Blocker(identifier=blocker.identifier)
            for blocker in issue.blocked_by
        )
        return replace(issue, blocked_by=blockers)
