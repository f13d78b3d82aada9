"""The issues of a project as the last searches told of them.

Rule 1: what is known changes only when a search was whole; of two answers about an issue the one
with the later change counts.
Rule 2: a search for changes is for all issues of the project, so that one that has left the states
asked for is seen to leave; what was deleted or hidden is seen by the next whole list.
Rule 3: where nothing has changed, the same tuple of the same issues is given.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Protocol

import trio
from msgspec import Struct
from msgspec.structs import replace

from sortie.model import Issue, IssueId, TrackerError, state_key
from sortie.telemetry.log.structlog_alone import structlog
from sortie.trackers import Overview, UnreadableIssue
from sortie.trackers.http.changes import OVERLAP, SWEEP, ChangingList
from sortie.trackers.http.client import HttpClient
from sortie.trackers.jira import jql
from sortie.trackers.jira.editions import PAGE
from sortie.trackers.jira.fields import Entry, FieldRules, entry_of
from sortie.trackers.jira.site import Site

INDEX_LAG = timedelta(minutes=3)
"""How much later than others a change may come into the index of a search."""

WRITTEN = 300.0
"""Seconds for which a search is not believed about an issue that we have changed."""

_WHAT = "cannot list the issues to work on"

log = structlog.get_logger()


class KnowsRules(Protocol):
    """How issues are made now; a reload changes it."""

    def __call__(self, site: Site) -> FieldRules: ...


class _Scope(Struct, frozen=True):
    """What a list is of; ``project`` and ``names`` are what is searched for."""

    states: frozenset[str]  # as they are compared
    project: str


class Candidates:
    """The list of candidates, and what came with it."""

    def __init__(
        self,
        client: HttpClient,
        rules: KnowsRules,
        query_filter: str | None,
        sweep: float = SWEEP,
    ) -> None:
        self._client = client
        self._rules = rules
        self._filter = None if query_filter is None else jql.enclosed(query_filter)
        self._list: ChangingList[Entry] = ChangingList(
            lambda entry: entry.id, lambda entry: entry.updated, sweep=sweep
        )
        self._refreshing = trio.Lock()
        self._written: dict[IssueId, tuple[float, Entry]] = {}
        self._unfit: dict[IssueId, datetime | None] = {}  # by the filter, as changed at that time
        self._answer: tuple[Issue, ...] = ()
        self._overview: Overview | None = None
        self._asked_at: datetime | None = None  # by the server's clock, with the last good answer
        self._nameless: tuple[UnreadableIssue, ...] = ()
        self._complaints: dict[str, str] = {}

    def forget(self) -> None:
        """Ask for the whole list next time, as issues are made by other rules now."""
        self._list.forget()

    async def refresh(self, site: Site, names: list[str]) -> tuple[Issue, ...]:
        """Return the issues in the states of these names. Raises TrackerError."""
        async with self._refreshing:
            states = frozenset(map(state_key, names))
            scope = _Scope(states, site.project.id)
            base = f"project = {jql.quoted(site.project.key)}"
            in_states = jql.one_of("status", names)
            rules = self._rules(site)

            async def whole() -> list[Entry]:
                conditions = [base, in_states, *([self._filter] if self._filter else [])]
                self._nameless, self._unfit = (), {}
                return await self._entries(site, jql.query(*conditions), rules)

            async def since(then: datetime) -> list[Entry]:
                updated = f"updated >= -{self._minutes_since(self._start(then - INDEX_LAG))}m"
                changed = await self._entries(site, jql.query(base, updated), rules)
                self._tell_waiting(changed)
                await self._drop_unfit(site, changed, [base, in_states, updated], rules)
                return changed

            began = self._server_time()
            found = await self._list.refresh(scope, trio.current_time(), whole, since)
            self._asked_at = began
            self._client.list_ended()
            self._overview = None
            self._complain(found.values())
            fit = (e.issue for e in found.values() if e.project_id == site.project.id)
            chosen = tuple(i for i in fit if i is not None and state_key(i.state) in states)
            same = len(chosen) == len(self._answer) and all(
                one is other for one, other in zip(chosen, self._answer, strict=True)
            )
            self._answer = self._answer if same else chosen
            return self._answer

    def wrote(self, entry: Entry) -> None:
        """Take over how an issue stands that we have changed, whatever the index says a while."""
        self._written[entry.id] = (trio.current_time(), entry)
        self._list.put(entry)

    def heard(self, entry: Entry) -> None:
        """Take over what a re-read told of an issue, if the list has it."""
        self._list.put(entry)

    def gone(self, issue_id: IssueId) -> None:
        """Take over that an issue is not there any more."""
        self._written.pop(issue_id, None)
        self._list.drop(issue_id)

    def known(self, issue_id: IssueId) -> Entry | None:
        """Return what is known of an issue."""
        return self._list.items.get(issue_id)

    def overview(self) -> Overview:
        """Return all that is known; the same object as before where nothing was asked since."""
        if self._overview is None:
            entries = self._list.items.values()
            unreadable = (
                UnreadableIssue(message=str(e.error), names=frozenset({e.id, e.key} - {""}))
                for e in entries
                if e.error is not None
            )
            self._overview = Overview(
                issues=tuple(e.issue for e in entries if e.issue is not None),
                unreadable=(*unreadable, *self._nameless),
            )
        return self._overview

    async def _entries(self, site: Site, query: str, rules: FieldRules) -> list[Entry]:
        """Return what a search gives, or what we know better."""
        now = trio.current_time()
        self._written = {i: it for i, it in self._written.items() if now - it[0] < WRITTEN}
        items = await site.edition.search(self._client, query, _WHAT, list(self._written))
        entries = []
        for number, item in enumerate(items):
            if number % 100 == 99:
                await trio.lowlevel.checkpoint()
            try:
                entries.append(self._fresher(item, rules))
            except TrackerError as exc:  # nobody could ask for it by a name
                self._nameless = (UnreadableIssue(message=str(exc)),)
        return entries

    def _fresher(self, item: object, rules: FieldRules) -> Entry:
        found = entry_of(item, rules)
        known, written = self._list.items.get(found.id), self._written.get(found.id)
        if known is not None and known.updated == found.updated:
            found = entry_of(item, rules, known)
        for other in (known, written[1] if written else None):
            if other is not None and _is_later(other, found):
                found = other
        return known if known == found and known is not None else found

    async def _drop_unfit(
        self, site: Site, changed: list[Entry], conditions: list[str], rules: FieldRules
    ) -> None:
        """Forget what has changed so that the user's filter does not choose it any more.

        The filter is asked about what it was not asked about as it is now.
        """
        if self._filter is None:
            return
        new = [e for e in changed if self._list.items.get(e.id) is not e and not self._is_unfit(e)]
        fit: set[IssueId] = set()
        if new:
            found = await self._entries(site, jql.query(*conditions, self._filter), rules)
            fit = {entry.id for entry in found}
        for entry in new:
            if entry.id in fit:
                self._unfit.pop(entry.id, None)
            else:
                self._unfit[entry.id] = entry.updated
        for entry in [entry for entry in changed if self._is_unfit(entry)]:
            self._list.drop(entry.id)
            changed.remove(entry)

    def _is_unfit(self, entry: Entry) -> bool:
        return entry.id in self._unfit and self._unfit[entry.id] == entry.updated

    def _tell_waiting(self, changed: Iterable[Entry]) -> None:
        """Take over the new states of blockers, which do not count as changes of who waits."""
        states = {entry.id: entry.blocking_state for entry in changed}
        for entry in list(self._list.items.values()):
            issue = entry.issue
            if issue is None or not any(b.id in states for b in issue.blocked_by):
                continue
            blockers = tuple(
                replace(b, state=states[b.id]) if b.id is not None and b.id in states else b
                for b in issue.blocked_by
            )
            if blockers != issue.blocked_by:
                self._list.put(
                    dataclasses.replace(entry, issue=replace(issue, blocked_by=blockers))
                )

    def _start(self, then: datetime) -> datetime:
        """Return the time since which changes are asked for.

        Where many issues were changed in one moment, as by an import, and none since, that is the
        last poll: they would come again with each.
        """
        known = self._list.items.values()
        again = sum(1 for e in known if e.updated is not None and e.updated >= then)
        if again <= PAGE or self._asked_at is None:
            return then
        return max(then, self._asked_at - OVERLAP - INDEX_LAG)

    def _minutes_since(self, then: datetime) -> int:
        """Return how many whole minutes ago that was, by the server's clock, rounded up."""
        now = self._server_time()
        if now is None:
            return 1 + math.ceil(SWEEP / 60)
        return max(1, math.ceil((now - then).total_seconds() / 60) + 1)

    def _server_time(self) -> datetime | None:
        heard = self._client.server_time
        if heard is None:
            return None
        return heard[0] + timedelta(seconds=trio.current_time() - heard[1])

    def _complain(self, entries: Iterable[Entry]) -> None:
        """Log what cannot be read, each thing once until it changes."""
        present: dict[str, str] = {e.id: str(e.error) for e in entries if e.error is not None}
        present |= {str(n): it.message for n, it in enumerate(self._nameless)}
        for name, message in present.items():
            if self._complaints.get(name) != message:
                log.warning("tracker.issue_malformed", error=message)
        self._complaints = present


def _is_later(known: Entry, found: Entry) -> bool:
    return known.updated is not None and found.updated is not None and known.updated > found.updated
