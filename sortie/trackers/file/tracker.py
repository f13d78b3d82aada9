"""The file tracker: issues are files, read again at each call and written back at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime

import trio

from sortie.dataclass import dataclass
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
from sortie.trackers import IssuesRead, Overview, Sightings, Tracker, UnreadableIssue
from sortie.trackers.file.checks import file_checks
from sortie.trackers.file.entries import AUTHOR, AddComment, IssueEntry, SetState
from sortie.trackers.file.fields import NAME_LIMIT, harmless, is_name
from sortie.trackers.file.issue_files import IssueFiles
from sortie.trackers.file.issue_index import IssueIndex
from sortie.trackers.file.reading import Reading
from sortie.trackers.file.shared_changes import SharedChanges

_ISSUES_AT_ONCE = 500  # some milliseconds of work, after which other tasks have their turn

log = structlog.get_logger()


@dataclass(slots=True)
class _Look:
    """One look at the files, for all who ask before it begins; ``ids`` is None for all issues."""

    ids: set[IssueId] | None = field(default_factory=set)
    reading: Reading | None = None  # None until it has ended well


@dataclass(frozen=True, slots=True, kw_only=True)
class _Completed:
    """An issue as it is given, and what it was made from."""

    written: Issue
    blocking: tuple[Issue | None, ...]
    issue: Issue


class FileTracker(Tracker):
    """A directory of Markdown issues or a JSON list of them, as a tracker.

    Rule 1: every answer is from a look at the files that began after the question.
    Rule 2: looks and changes run in threads; a look may be abandoned, a change never is.
    Rule 3: an issue is given as the same object as before while nothing in it has changed.
    """

    def __init__(
        self, files: IssueFiles, sightings: Sightings, now: Callable[[], datetime]
    ) -> None:
        self._files = files
        self._sightings = sightings
        self._now = now
        self._reading = Reading()
        self._next_look = _Look()
        self._looking = trio.Lock()
        self._changes = SharedChanges(files, lambda: self._reading)
        self._complaints: dict[str, str] = {}
        self._told_of: IssueIndex | None = None
        self._sighted: dict[IssueId, tuple[str, Sighting]] = {}
        self._completed: dict[IssueId, _Completed] = {}
        self._list: tuple[IssueIndex, frozenset[str], tuple[Issue, ...]] | None = None
        self._overview: tuple[IssueIndex, Overview] | None = None

    async def fetch_candidates(self, states: Collection[str]) -> tuple[Issue, ...]:
        """Return the issues in these states; the same tuple as before where nothing changed."""
        wanted = frozenset(state_key(state) for state in states)
        known = (await self._look()).index
        if self._list is not None and self._list[0] is known and self._list[1] == wanted:
            return self._list[2]
        chosen = [found for found in known.found.values() if found.state_key in wanted]
        issues = await self._issues(known, chosen)
        self._list = known, wanted, issues
        self._forget_all_but(known)
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
                f"a state is one line of at most {NAME_LIMIT} characters",
            )
        change = SetState(state=state.strip(), at=self._now())
        known, found = await self._changes.make(issue, issue.state, change)
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
        await self._changes.make(issue, None, AddComment(body=text, at=self._now()))

    async def _last_said(self, issue: Issue) -> str | None:
        read = await self.fetch_by_ids([issue.id])
        comments = read.issues[0].comments if read.issues else ()
        ours = [comment.body for comment in comments if comment.author == AUTHOR]
        return ours[-1] if ours else None

    def overview(self) -> Overview:
        """Return what the last look found; the same object as before where nothing changed."""
        known = self._reading.index
        if self._overview is None or self._overview[0] is not known:
            overview = Overview(
                issues=tuple(found.issue for found in known.found.values()),
                unreadable=tuple(
                    UnreadableIssue(message=c.message, names=c.names) for c in known.complaints
                ),
            )
            self._overview = known, overview
        return self._overview[1]

    def checks(self) -> Sequence[Check]:
        """Look whether the files can be read, and their directory written."""
        return file_checks(self._files)

    async def _look(self, ids: Collection[IssueId] | None = None) -> Reading:
        """Look at the files; those who ask while a look is under way share the next one.

        With ``ids``, only at what tells of these issues.
        """
        look = self._next_look
        if ids is None or look.ids is None:
            look.ids = None
        else:
            look.ids.update(ids)
        async with self._looking:
            if look.reading is None:
                if look is self._next_look:
                    self._next_look = _Look()
                look.reading = self._reading = await self._looked(look.ids)
                self._complain(look.reading.index)
        return look.reading

    async def _looked(self, ids: Collection[IssueId] | None) -> Reading:
        at = self._now().timestamp()
        if ids is None:
            return await run_in_thread(self._files.look, self._reading, at, abandon_on_cancel=True)
        return await run_in_thread(
            self._files.reread, self._reading, ids, at, abandon_on_cancel=True
        )

    def _complain(self, known: IssueIndex) -> None:
        """Log what is wrong in the files, each thing once until it changes."""
        if known is self._told_of:
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
        self._complaints, self._told_of = present, known

    async def _issues(self, known: IssueIndex, chosen: Sequence[IssueEntry]) -> tuple[Issue, ...]:
        """Add what does not stand in the issues' own files: missing times, blockers' states."""
        await self._sight([found for found in chosen if _lacks_time(found.issue)])
        sighted, issues = self._sighted, []
        for found in chosen:
            issues.append(self._complete(known, sighted, found))
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
        self,
        known: IssueIndex,
        sighted: Mapping[IssueId, tuple[str, Sighting]],
        found: IssueEntry,
    ) -> Issue:
        written = found.issue
        if not written.blocked_by and not _lacks_time(written):
            return written
        holders = [known.identifiers.get(blocker.identifier) for blocker in written.blocked_by]
        blocking = tuple([None if holder is None else holder.issue for holder in holders])
        before = self._completed.get(written.id)
        if before is not None and before.written is written and before.blocking == blocking:
            return before.issue
        issue = replace(written, blocked_by=tuple(map(_resolved, written.blocked_by, blocking)))
        if _lacks_time(issue):
            _, sighting = sighted[issue.id]
            issue = replace(
                issue,
                created_at=issue.created_at or sighting.first_seen,
                updated_at=issue.updated_at or sighting.changed_at,
            )
        self._completed[issue.id] = _Completed(written=written, blocking=blocking, issue=issue)
        return issue

    def _forget_all_but(self, known: IssueIndex) -> None:
        """Keep nothing about issues that are gone, once these could be many."""
        if len(self._completed) > len(known.found):
            self._completed = {i: c for i, c in self._completed.items() if i in known.found}
        if len(self._sighted) > len(known.found):
            self._sighted = {i: s for i, s in self._sighted.items() if i in known.found}


def _lacks_time(issue: Issue) -> bool:
    return issue.created_at is None or issue.updated_at is None


def _resolved(blocker: Blocker, holder: Issue | None) -> Blocker:
    if holder is None:
        return blocker
    return Blocker(identifier=blocker.identifier, id=holder.id, state=holder.state)
