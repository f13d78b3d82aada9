"""Issues of one project of a Jira.

Rule 1: an issue is in the project whose id it tells; in another one it is not there, whatever it
is called.
Rule 2: a change reads, compares, writes and reads again; what was lost is looked for.
Rule 3: nothing is believed to be gone for everybody before the key and the project were asked for.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import trio
from msgspec.structs import replace

from sortie.model import (
    Comment,
    Issue,
    IssueId,
    TrackerError,
    TrackerErrorKind,
    same_state,
    state_key,
)
from sortie.model.checks import Check
from sortie.trackers import IssuesRead, Overview, RateBudget, Tracker, TrackerContext, TrackerStates
from sortie.trackers.http.changes import SWEEP
from sortie.trackers.http.client import HttpClient
from sortie.trackers.http.comments import OnceOnly
from sortie.trackers.jira.candidates import Candidates
from sortie.trackers.jira.checks import JiraChecks
from sortie.trackers.jira.comments import NewComment, body_of, read_comments
from sortie.trackers.jira.editions import issue_request
from sortie.trackers.jira.fields import Entry, FieldRules, entry_of
from sortie.trackers.jira.moves import offered_transitions, take
from sortie.trackers.jira.site import Site, SiteMemory
from sortie.trackers.jira.transitions import chosen

if TYPE_CHECKING:
    from sortie.trackers.jira import JiraSettings

COMMENTS_KEPT = 600.0
"""Seconds for which the comments of an issue that has not changed are not asked for again."""

_ISSUES_KEPT = 500

_NAME = re.compile(r"\d{1,18}|[A-Za-z][A-Za-z0-9_]{0,40}-\d{1,18}")


class JiraTracker(Tracker):
    """Issues of one project, in the cloud or in a data center."""

    def __init__(
        self,
        client: HttpClient,
        context: TrackerContext,
        settings: JiraSettings,
        sweep: float = SWEEP,
    ) -> None:
        assert context.project is not None
        self._client = client
        self._settings = settings
        self._filter = context.query_filter
        self._states = context.states
        self._priorities = {state_key(name): n for name, n in settings.priorities.items()}
        self.site = SiteMemory(client, settings.deployment, context.project)
        self._candidates = Candidates(client, self._rules, context.query_filter, sweep)
        self._once = OnceOnly()
        self._tried: OrderedDict[str, datetime | None] = OrderedDict()
        self._comments: OrderedDict[IssueId, tuple[datetime | None, float, tuple[Comment, ...]]]
        self._comments = OrderedDict()
        self._had_some = True  # so that an empty first list is looked into

    async def fetch_candidates(self, states: Collection[str]) -> Sequence[Issue]:
        """Return the issues in these states; the same tuple as before where nothing changed."""
        names = list({state_key(state): state.strip() for state in states}.values())
        if not names:
            await trio.lowlevel.checkpoint()
            return ()
        site = await self.site.get()
        try:
            found = await self._candidates.refresh(site, names)
        except TrackerError as exc:
            if exc.kind is TrackerErrorKind.INVALID:  # perhaps for a status that is not there
                await self.site.check_states(site, names)
            raise
        if not found and self._had_some:
            await self.site.check()
            await self.site.check_states(site, names)
        self._had_some = bool(found)
        return found

    async def fetch_by_ids(self, ids: Collection[IssueId]) -> IssuesRead:
        """Read these issues again; those of another project are not there."""
        wanted = list(dict.fromkeys(ids))
        if not wanted:
            await trio.lowlevel.checkpoint()
            return IssuesRead()
        site = await self.site.get()
        items, failed = await site.edition.by_ids(self._client, wanted)
        failures = dict(failed)
        if not items and not failures:
            await self.site.check()
        entries = [self._entry(site, item) for item in items]
        for gone in set(wanted) - failures.keys() - {entry.id for entry in entries}:
            self._candidates.gone(gone)
        issues = []
        for entry in entries:
            self._candidates.heard(entry)
            if entry.error is not None:
                failures[entry.id] = entry.error
            elif entry.issue is not None and entry.project_id == site.project.id:
                try:
                    issues.append(await self._with_comments(site, entry.issue))
                except TrackerError as exc:
                    if exc.kind is not TrackerErrorKind.NOT_FOUND:
                        raise
        return IssuesRead(
            issues=tuple(issues), failed={i: e for i, e in failures.items() if i in set(wanted)}
        )

    async def find(self, name: str) -> Issue | None:
        """Return the issue of that key or id; a key that it had before is good as well."""
        if not _NAME.fullmatch(name):
            await trio.lowlevel.checkpoint()
            return None
        site = await self.site.get()
        entry = await self._read(site, name, f"cannot read issue {name}")
        if entry is None:
            await self.site.check()
            return None
        if entry.error is not None:
            raise entry.error
        assert entry.issue is not None
        return await self._with_comments(site, entry.issue)

    async def transition(self, issue: Issue, state: str) -> Issue:
        """Take the transition to a state, and return the issue as it stands then."""
        site = await self.site.get()
        present = await self._present(site, issue)
        if same_state(present.state, state) and not same_state(issue.state, state):
            return await self._with_comments(site, present)  # moved before, and the answer lost
        if not same_state(present.state, issue.state):
            raise _moved_meanwhile(issue, present)
        if not same_state(present.state, state):
            present = await self._move(site, present, state)
        return await self._with_comments(site, present)

    async def comment(
        self, issue: Issue, body: str, key: str | None = None, *, again: bool = False
    ) -> None:
        """Add a comment, marked with its key by a property that no page of Jira shows."""
        site = await self.site.get()
        new = NewComment(
            client=self._client,
            site=site,
            issue=issue,
            body=body_of(site.edition, body),
            key=key,
            not_before=self._first_try(key),
        )
        try:
            await self._once.make(key, new.post, new.is_there, tried=again)
        finally:
            self._comments.pop(issue.id, None)

    def configure(self, states: TrackerStates) -> None:
        """Tell blockers' states by these names from now on."""
        self._states = states
        self._candidates.forget()
        self._had_some = True

    def overview(self) -> Overview:
        """Return the issues of the last lists."""
        return self._candidates.overview()

    def checks(self) -> Sequence[Check]:
        """See Tracker."""
        return JiraChecks(
            self._client,
            self.site,
            self._states,
            self._filter,
            self._settings.blocked_by,
        ).all()

    def budgets(self) -> Sequence[RateBudget]:
        """Return what the last answers said of limits, where Jira speaks of any."""
        return self._client.budgets()

    def list_pause(self) -> float:
        """See Tracker."""
        return self._client.list_pause()

    def _rules(self, site: Site) -> FieldRules:
        return FieldRules(
            browse=site.server.browse,
            read_text=site.edition.read_text,
            blocked_by=state_key(self._settings.blocked_by),
            priorities=self._priorities,
            states=self._states,
        )

    def _entry(self, site: Site, item: object) -> Entry:
        return entry_of(item, self._rules(site))

    async def _read(self, site: Site, name: str, what: str) -> Entry | None:
        """Return an issue of the project by id or key; None where it is not there."""
        answer = await self._client.ask(issue_request(site.edition, name, what))
        if answer.status == 404:
            return None
        entry = self._entry(site, answer.json())
        is_here = entry.error is not None or entry.project_id == site.project.id
        return entry if is_here else None

    async def _present(self, site: Site, issue: Issue) -> Issue:
        """Read an issue that is about to be changed, or was. Raises TrackerError."""
        entry = await self._read(site, issue.id, f"cannot read issue {issue.identifier}")
        if entry is None:
            self._candidates.gone(issue.id)
            raise TrackerError(
                TrackerErrorKind.NOT_FOUND,
                f"{issue.identifier} is not in project {site.project.key} any more, "
                "or the key's account may not see it",
            )
        if entry.error is not None or entry.issue is None:
            raise entry.error or AssertionError
        self._candidates.wrote(entry)
        return entry.issue

    async def _move(self, site: Site, present: Issue, state: str) -> Issue:
        """Take a transition, and return the issue as it is then.

        Raises TrackerError, CONFLICT where somebody else moved the issue.
        """
        before = present.state
        offered = await offered_transitions(self._client, site.edition, present)
        best = chosen(offered, present.identifier, before, state)
        refused = await take(self._client, site.edition, present, best)
        after = await self._present(site, present)
        if same_state(after.state, state):
            return after
        if not same_state(after.state, before):
            raise _moved_meanwhile(present, after) from refused
        if refused is not None:
            raise refused
        raise TrackerError(
            TrackerErrorKind.UNAVAILABLE,
            f"{present.identifier} was moved to {state}, and Jira still says {before}",
        )

    def _first_try(self, key: str | None) -> datetime | None:
        """Return when a comment was tried first, by the server's clock; now, if it was not."""
        heard = self._client.server_time
        if key is None or heard is None:
            return None if heard is None else heard[0]
        while len(self._tried) > _ISSUES_KEPT:
            self._tried.popitem(last=False)
        return self._tried.setdefault(key, heard[0])

    async def _with_comments(self, site: Site, issue: Issue) -> Issue:
        """Add the comments; they are not asked for again while the issue has not changed."""
        now = trio.current_time()
        known = self._comments.get(issue.id)
        if known is None or known[0] != issue.updated_at or now - known[1] > COMMENTS_KEPT:
            comments = await read_comments(
                self._client,
                site.edition,
                issue,
                restricted=self._settings.restricted_comments,
            )
            known = self._comments[issue.id] = (issue.updated_at, now, comments)
        self._comments.move_to_end(issue.id)
        while len(self._comments) > _ISSUES_KEPT:
            self._comments.popitem(last=False)
        return replace(issue, comments=known[2])


def _moved_meanwhile(issue: Issue, present: Issue) -> TrackerError:
    return TrackerError(
        TrackerErrorKind.CONFLICT,
        f"{issue.identifier} was moved from {issue.state} to {present.state} meanwhile",
    )
