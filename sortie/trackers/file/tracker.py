"""The file tracker: issues are files, read again at each call and written back at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial

import trio
from msgspec.structs import replace

from sortie.http.under_lease import require_right_to_change
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
from sortie.model.checks import Check
from sortie.resources import run_in_thread
from sortie.telemetry.log.structlog_alone import structlog
from sortie.trackers import IssuesRead, Overview, Sightings, Tracker
from sortie.trackers.file.checks import file_checks
from sortie.trackers.file.disk import LockTaken
from sortie.trackers.file.entries import AUTHOR, AddComment, Change, IssueEntry, SetState
from sortie.trackers.file.fields import FIELD_NAME_LIMIT, harmless, is_name
from sortie.trackers.file.issue_files import IssueFiles
from sortie.trackers.file.issue_index import FilesRead, IssueIndex

_ISSUES_AT_ONCE = 500  # some milliseconds of work, after which other tasks have their turn

LOCK_WAIT = 10.0
"""Seconds that a change waits for another process to give up the lock."""

_LOCK_INTERVAL = 0.05

log = structlog.get_logger()


class FileTracker(Tracker):
    """A directory of Markdown issues or a JSON list of them, as a tracker.

    Rule 1: every answer is from a look at the files that began after the question.
    Rule 2: looks and changes run in threads; a look may be abandoned, a change never is.
    Rule 3: a list is the same object as before while no issue has changed.
    """

    def __init__(
        self, files: IssueFiles, sightings: Sightings, now: Callable[[], datetime]
    ) -> None:
        self._files = files
        self._sightings = sightings
        self._now = now
        self._reading = FilesRead()
        self._looking, self._changing = trio.Lock(), trio.Lock()
        self._complaints: dict[str, str] = {}
        self._logged: IssueIndex | None = None
        self._sighted: dict[IssueId, tuple[str, Sighting]] = {}
        self._list: tuple[IssueIndex, frozenset[str], tuple[Issue, ...]] | None = None

    async def fetch_candidates(self, states: Collection[str]) -> tuple[Issue, ...]:
        """Return the issues in these states; the same tuple as before where nothing changed."""
        wanted = frozenset(state_key(state) for state in states)
        known = (await self._look()).index
        if self._list is not None and self._list[0] is known and self._list[1] == wanted:
            return self._list[2]
        chosen = [found for found in known.found.values() if state_key(found.issue.state) in wanted]
        issues = await self._issues(known, chosen)
        self._list = known, wanted, issues
        self._sighted = {i: seen for i, seen in self._sighted.items() if i in known.found}
        return issues

    async def fetch_by_ids(self, ids: Collection[IssueId]) -> IssuesRead:
        """Read these issues again, whatever their states; see ``IssueFiles.reread``."""
        wanted = dict.fromkeys(ids)
        known = (await self._look(wanted)).index
        chosen = [known.found[i] for i in wanted if i in known.found]
        failed = {i: known.troubles[i].error() for i in wanted if i in known.troubles}
        return IssuesRead(issues=await self._issues(known, chosen), failed=failed)

    async def find(self, name: str) -> Issue | None:
        """Return the issue of that identifier, or else of that id."""
        known = (await self._look()).index
        found = known.identifiers.get(name) or known.found.get(IssueId(name))
        if found is not None:
            return (await self._issues(known, [found]))[0]
        for complaint in known.complaints:
            if name in complaint.names:
                raise TrackerError(TrackerErrorKind.INVALID, complaint.message)
        return None

    async def transition(self, issue: Issue, state: str) -> Issue:
        """Write a state into an issue's file and return the issue as it stands then."""
        if not is_name(state):
            raise TrackerError(
                TrackerErrorKind.INVALID,
                f"cannot move issue {issue.identifier}: {state[:60]!r} is not a state; "
                f"a state is one line of at most {FIELD_NAME_LIMIT} characters",
            )
        change = SetState(state=state.strip(), at=self._now())
        known, found = await self._change(issue, issue.state, change)
        return (await self._issues(known, [found]))[0]

    async def comment(
        self, issue: Issue, body: str, key: str | None = None, *, again: bool = False
    ) -> None:
        """Append a comment to an issue's file, signed by Sortie.

        A file holds no keys: one that may be there is, where the last of ours says the same.
        """
        del key
        text = harmless(body).rstrip("\n")
        if again and await self._last_said(issue) == text:
            return
        await self._change(issue, None, AddComment(body=text, at=self._now()))

    async def _last_said(self, issue: Issue) -> str | None:
        read = await self.fetch_by_ids([issue.id])
        comments = read.issues[0].comments if read.issues else ()
        ours = [comment.body for comment in comments if comment.author == AUTHOR]
        return ours[-1] if ours else None

    async def _change(
        self, issue: Issue, expected: str | None, change: Change
    ) -> tuple[IssueIndex, IssueEntry]:
        """Make a change, one after the other; a change that has begun ends although cancelled."""
        async with self._changing:
            with trio.move_on_after(LOCK_WAIT):
                while True:
                    with suppress(LockTaken):
                        require_right_to_change(f"cannot change issue {issue.identifier}")
                        reading, changed = await run_in_thread(
                            self._files.change, self._reading, issue.id, expected, change
                        )
                        return reading.index, changed
                    await trio.sleep(_LOCK_INTERVAL)
        raise TrackerError(
            TrackerErrorKind.UNAVAILABLE,
            f"cannot change issue {issue.identifier}: another process has held the lock of its "
            f"directory for {LOCK_WAIT:g} s",
        )

    def overview(self) -> Overview:
        """Return what the last look found; the same object as before where nothing changed."""
        return self._reading.index.overview

    def checks(self) -> Sequence[Check]:
        """Look whether the files can be read, and their directory written."""
        return file_checks(self._files)

    async def _look(self, ids: Collection[IssueId] | None = None) -> FilesRead:
        """Look at the files, with ``ids`` only at those that tell of these issues."""
        async with self._looking:
            at = self._now().timestamp()
            look = self._files.look if ids is None else partial(self._files.reread, ids=ids)
            look = partial(look, self._reading, at=at)
            self._reading = await run_in_thread(look, abandon_on_cancel=True)
            self._complain(self._reading.index)
            return self._reading

    def _complain(self, known: IssueIndex) -> None:
        """Log what is wrong in the files, each thing once until it changes."""
        if known is self._logged:
            return
        present: dict[str, str] = {}
        for event, complaints in (
            ("tracker.issue_malformed", known.complaints),
            ("tracker.file_ignored", known.ignored),
        ):
            for complaint in complaints:
                present[complaint.subject] = complaint.token
                if self._complaints.get(complaint.subject) != complaint.token:
                    log.warning(event, error=complaint.message)
        self._complaints, self._logged = present, known

    async def _issues(self, known: IssueIndex, chosen: Sequence[IssueEntry]) -> tuple[Issue, ...]:
        """Add what does not stand in the issues' own files: missing times, blockers' states."""
        await self._sight([found for found in chosen if _lacks_time(found.issue)])
        sighted, issues = self._sighted, []
        for found in chosen:
            issues.append(_complete(known, sighted, found))
            if len(issues) % _ISSUES_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
        return tuple(issues)

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


def _complete(
    known: IssueIndex, sighted: Mapping[IssueId, tuple[str, Sighting]], found: IssueEntry
) -> Issue:
    issue = found.issue
    if issue.blocked_by:
        holders = (known.identifiers.get(b.identifier) for b in issue.blocked_by)
        issue = replace(issue, blocked_by=tuple(map(_resolved, issue.blocked_by, holders)))
    if _lacks_time(issue):
        _, sighting = sighted[issue.id]
        issue = replace(
            issue,
            created_at=issue.created_at or sighting.first_seen,
            updated_at=issue.updated_at or sighting.changed_at,
        )
    return issue


def _lacks_time(issue: Issue) -> bool:
    return issue.created_at is None or issue.updated_at is None


def _resolved(blocker: Blocker, holder: IssueEntry | None) -> Blocker:
    if holder is None:
        return blocker
    issue = holder.issue
    return Blocker(identifier=blocker.identifier, id=issue.id, state=issue.state)
