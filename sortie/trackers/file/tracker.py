"""The file tracker: issues are files, read again at each call and written back at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime

import structlog
import trio

from sortie.model import (
    Blocker,
    Issue,
    IssueId,
    Sighting,
    StoreError,
    TrackerError,
    TrackerErrorKind,
    state_key,
)
from sortie.resources import run_in_thread
from sortie.trackers import IssuesRead, Overview, Sightings, Tracker, UnreadableIssue
from sortie.trackers.file.disk import LockTaken
from sortie.trackers.file.entries import AddComment, Change, IssueEntry, SetState
from sortie.trackers.file.fields import NAME_LIMIT, harmless, is_name
from sortie.trackers.file.issue_files import IssueFiles
from sortie.trackers.file.issue_index import Reading

LOCK_PATIENCE = 10.0
"""Seconds that a change waits for another process to give up the lock."""

_LOCK_INTERVAL = 0.05

_ISSUES_AT_ONCE = 100  # some milliseconds of work, after which other tasks have their turn

log = structlog.get_logger()


class FileTracker(Tracker):
    """A directory of Markdown issues or a JSON list of them, as a tracker.

    Rule 1: every answer is from a look at the files that began after the question.
    Rule 2: looks and changes run in threads; a look may be abandoned, a change never is.
    """

    def __init__(
        self, files: IssueFiles, sightings: Sightings, now: Callable[[], datetime]
    ) -> None:
        self._files = files
        self._sightings = sightings
        self._now = now
        self._reading = Reading()
        self._looks_begun = 0
        self._last_good_look = 0
        self._looking = trio.Lock()
        self._changing = trio.Lock()
        self._complaints: dict[str, str] = {}
        self._sighted: dict[IssueId, tuple[str, Sighting]] = {}

    async def fetch_candidates(self, states: Collection[str]) -> Sequence[Issue]:
        """Return the issues in these states, with their blockers' states, in any order."""
        wanted = {state_key(state) for state in states}
        reading = await self._look()
        chosen = [found for found in reading.found.values() if found.state_key in wanted]
        return await self._issues(reading, chosen)

    async def fetch_by_ids(self, ids: Collection[IssueId]) -> IssuesRead:
        """Read these issues again, whatever their states."""
        reading = await self._look()
        wanted = dict.fromkeys(ids)
        chosen = [reading.found[i] for i in wanted if i in reading.found]
        failed = {i: reading.troubles[i].error() for i in wanted if i in reading.troubles}
        return IssuesRead(issues=tuple(await self._issues(reading, chosen)), failed=failed)

    async def find(self, name: str) -> Issue | None:
        """Return the issue of that identifier, or else of that id."""
        reading = await self._look()
        found = reading.identifiers.get(name) or reading.found.get(IssueId(name))
        if found is not None:
            return (await self._issues(reading, [found]))[0]
        for complaint in reading.complaints:
            if name in complaint.names:
                raise TrackerError(TrackerErrorKind.INVALID, complaint.message)
        return None

    async def transition(self, issue: Issue, state: str) -> Issue:
        """Write a state into an issue's file and return the issue as it stands then."""
        if not is_name(state):
            raise TrackerError(
                TrackerErrorKind.INVALID,
                f"cannot move issue {issue.identifier}: {state[:60]!r} is not a state; "
                f"a state is one line of at most {NAME_LIMIT} characters",
            )
        change = SetState(state=state.strip(), at=self._now())
        reading, found = await self._change(issue, issue.state, change)
        return (await self._issues(reading, [found]))[0]

    async def comment(self, issue: Issue, body: str) -> None:
        """Append a comment to an issue's file, signed by Sortie."""
        text = harmless(body).rstrip("\n")
        await self._change(issue, None, AddComment(body=text, at=self._now()))

    def overview(self) -> Overview:
        """Return what the last look found."""
        reading = self._reading
        return Overview(
            issues=tuple(found.issue for found in reading.found.values()),
            unreadable=tuple(
                UnreadableIssue(message=c.message, names=c.names) for c in reading.complaints
            ),
        )

    async def _look(self) -> Reading:
        """Look at the files; those who ask while a look is under way share the next one."""
        asked_after = self._looks_begun
        async with self._looking:
            if self._last_good_look > asked_after:
                return self._reading
            self._looks_begun += 1
            self._reading = await run_in_thread(
                self._files.look,
                self._reading,
                self._now().timestamp(),
                abandon_on_cancel=True,
            )
            self._last_good_look = self._looks_begun
        self._complain(self._reading)
        return self._reading

    async def _change(
        self, issue: Issue, expected: str | None, change: Change
    ) -> tuple[Reading, IssueEntry]:
        async with self._changing:
            with trio.move_on_after(LOCK_PATIENCE):
                while True:
                    try:
                        return await run_in_thread(
                            self._files.change, self._reading, issue.id, expected, change
                        )
                    except LockTaken:
                        await trio.sleep(_LOCK_INTERVAL)
        raise TrackerError(
            TrackerErrorKind.UNAVAILABLE,
            f"cannot change issue {issue.identifier}: another process has held the lock of its "
            f"directory for {LOCK_PATIENCE:g} s",
        )

    def _complain(self, reading: Reading) -> None:
        """Log what is wrong in the files, each thing once until it changes."""
        present: dict[str, str] = {}
        for event, complaints in (
            ("tracker.issue_malformed", reading.complaints),
            ("tracker.file_ignored", reading.ignored),
        ):
            for complaint in complaints:
                present[complaint.subject] = complaint.token
                if self._complaints.get(complaint.subject) != complaint.token:
                    log.warning(event, error=complaint.message)
        self._complaints = present

    async def _issues(self, reading: Reading, chosen: Sequence[IssueEntry]) -> Sequence[Issue]:
        """Add what does not stand in the issues' own files: missing times, blockers' states."""
        await self._sight([found for found in chosen if _lacks_time(found.issue)])
        issues: list[Issue] = []
        for found in chosen:
            if len(issues) % _ISSUES_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            issues.append(self._completed(reading, found))
        return issues

    async def _sight(self, chosen: Iterable[IssueEntry]) -> None:
        unknown: dict[str, str] = {
            found.issue.id: found.digest
            for found in chosen
            if self._sighted.get(found.issue.id, ("",))[0] != found.digest
        }
        if not unknown:
            return
        try:
            sightings = await self._sightings.sight(unknown)
        except StoreError as exc:
            raise TrackerError(
                TrackerErrorKind.UNAVAILABLE, f"cannot tell how old issues are: {exc}"
            ) from exc
        for issue_id, digest in unknown.items():
            self._sighted[IssueId(issue_id)] = (digest, sightings[issue_id])

    def _completed(self, reading: Reading, found: IssueEntry) -> Issue:
        issue = found.issue
        if _lacks_time(issue):
            _, sighting = self._sighted[issue.id]
            issue = replace(
                issue,
                created_at=issue.created_at or sighting.first_seen,
                updated_at=issue.updated_at or sighting.changed_at,
            )
        if issue.blocked_by:
            blockers = tuple(_resolved(reading, blocker) for blocker in issue.blocked_by)
            issue = replace(issue, blocked_by=blockers)
        return issue


def _lacks_time(issue: Issue) -> bool:
    return issue.created_at is None or issue.updated_at is None


def _resolved(reading: Reading, blocker: Blocker) -> Blocker:
    found = reading.identifiers.get(blocker.identifier)
    if found is None:
        return blocker
    return Blocker(identifier=blocker.identifier, id=found.issue.id, state=found.issue.state)
