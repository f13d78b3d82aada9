"""The issues of a project as the last searches told of them.

Rule 1: what is known changes only when a search was whole; of two answers about an issue the one
with the later change counts.
Rule 2: a search for changes is for all issues of the project, so that one that has left the states
asked for is seen to leave; what was deleted or hidden is seen by the next whole list.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

import trio
from msgspec import Struct
from msgspec.structs import replace

from sortie.http.client import HttpClient
from sortie.model import Issue, IssueId, TrackerError, state_key
from sortie.trackers import UnreadableIssue
from sortie.trackers.http.added_states import AddedStates
from sortie.trackers.http.changes import OVERLAP, SWEEP, ChangingList
from sortie.trackers.http.listed import ListedIssues, unreadable_issue
from sortie.trackers.jira import jql
from sortie.trackers.jira.editions import PAGE
from sortie.trackers.jira.fields import FieldRules, JiraIssue, jira_issue
from sortie.trackers.jira.site import Site

INDEX_LAG = timedelta(minutes=3)
"""How much later than others a change may come into the index of a search."""

OWN_CHANGE_LIFE = 300.0
"""Seconds for which a search is not believed about an issue that we have changed."""

_WHAT = "cannot list the issues to work on"


class SearchScope(Struct, frozen=True):
    """What a list is of: ``states`` are by ``state_key``, ``project`` is an id."""

    states: frozenset[str]
    project: str


class JiraCandidates:
    """The list of candidates, and what came with it; ``rules`` returns how issues are made now."""

    def __init__(
        self,
        client: HttpClient,
        rules: Callable[[Site], FieldRules],
        query_filter: str | None,
        sweep: float = SWEEP,
    ) -> None:
        self._client = client
        self._rules = rules
        self._filter = None if query_filter is None else jql.enclosed(query_filter)
        self.list: ChangingList[JiraIssue] = ChangingList(
            lambda item: item.id, lambda item: item.updated, sweep=sweep
        )
        self._refreshing = trio.Lock()
        self._written: dict[IssueId, tuple[float, JiraIssue]] = {}
        self._unfit: dict[IssueId, datetime | None] = {}  # by the filter, as changed at that time
        self._asked_at: datetime | None = None  # by the server's clock, with the last good answer
        self._nameless: dict[str, UnreadableIssue] = {}

    async def refresh(
        self, site: Site, names: list[str], listed: ListedIssues
    ) -> tuple[Issue, ...]:
        """Return the issues in the states of these names. Raises TrackerError."""
        async with self._refreshing:
            states = frozenset(map(state_key, names))
            base = f"project = {jql.quoted(site.project.key)}"
            rules = self._rules(site)
            in_states = in_any_of(names, rules.added)

            async def whole() -> list[JiraIssue]:
                conditions = [base, in_states, *([self._filter] if self._filter else [])]
                self._nameless, self._unfit = {}, {}
                return await self._found(site, jql.query(*conditions), rules)

            async def since(then: datetime) -> list[JiraIssue]:
                updated = f"updated >= -{self._minutes_since(self._start(then - INDEX_LAG))}m"
                changed = await self._found(site, jql.query(base, updated), rules)
                self._move_blockers(changed)
                await self._drop_unfit(site, changed, [base, in_states, updated], rules)
                return changed

            began = self._server_time()
            scope = SearchScope(states, site.project.id)
            found = await self.list.refresh(scope, trio.current_time(), whole, since)
            self._asked_at = began
            self._client.list_ended()
            fit = (item.issue for item in found.values() if item.project_id == site.project.id)
            chosen = [issue for issue in fit if issue and state_key(issue.state) in states]
            unreadable = {
                item.id: unreadable_issue(item.error, item.id, item.key)
                for item in found.values()
                if item.error is not None
            }
            known = self.list.items
            return listed.take(
                chosen,
                unreadable | self._nameless,
                lambda: [item.issue for item in known.values() if item.issue is not None],
            )

    def wrote(self, item: JiraIssue) -> None:
        """Take over how an issue stands that we have changed, whatever the index says a while."""
        self._written[item.id] = (trio.current_time(), item)
        self.list.put(item)

    def gone(self, issue_id: IssueId) -> None:
        """Take over that an issue is not there any more."""
        self._written.pop(issue_id, None)
        self.list.drop(issue_id)

    async def _found(self, site: Site, query: str, rules: FieldRules) -> list[JiraIssue]:
        """Return what a search gives, or what is known better."""
        now = trio.current_time()
        self._written = {i: it for i, it in self._written.items() if now - it[0] < OWN_CHANGE_LIFE}
        items = await site.edition.search(self._client, query, _WHAT, list(self._written))
        found = []
        for number, item in enumerate(items):
            if number % 100 == 99:
                await trio.lowlevel.checkpoint()
            try:
                found.append(self._latest(item, rules))
            except TrackerError as exc:  # it has no id by which it could be asked for
                self._nameless = {"": unreadable_issue(exc)}
        return found

    def _latest(self, item: object, rules: FieldRules) -> JiraIssue:
        found = jira_issue(item, rules)
        known, written = self.list.items.get(found.id), self._written.get(found.id)
        if known is not None and known.updated == found.updated:
            found = jira_issue(item, rules, known)
        for other in (known, written[1] if written else None):
            if other is not None and _is_later(other, found):
                found = other
        return known if known is not None and known == found else found

    async def _drop_unfit(
        self, site: Site, changed: list[JiraIssue], conditions: list[str], rules: FieldRules
    ) -> None:
        """Forget what has changed so that the user's filter does not choose it any more.

        The filter is asked about what it was not asked about as it is now.
        """
        if self._filter is None:
            return
        new = [i for i in changed if self.list.items.get(i.id) is not i and not self._is_unfit(i)]
        fit: set[IssueId] = set()
        if new:
            found = await self._found(site, jql.query(*conditions, self._filter), rules)
            fit = {item.id for item in found}
        for item in new:
            if item.id in fit:
                self._unfit.pop(item.id, None)
            else:
                self._unfit[item.id] = item.updated
        for item in [item for item in changed if self._is_unfit(item)]:
            self.list.drop(item.id)
            changed.remove(item)

    def _is_unfit(self, item: JiraIssue) -> bool:
        return item.id in self._unfit and self._unfit[item.id] == item.updated

    def _move_blockers(self, changed: Iterable[JiraIssue]) -> None:
        """Take over the new states of blockers, which change no issue that waits for them."""
        states = {item.id: item.blocking_state for item in changed}
        for item in list(self.list.items.values()):
            issue = item.issue
            if issue is None or not any(b.id in states for b in issue.blocked_by):
                continue
            blockers = tuple(
                replace(b, state=states[b.id]) if b.id is not None and b.id in states else b
                for b in issue.blocked_by
            )
            if blockers != issue.blocked_by:
                moved = replace(issue, blocked_by=blockers)
                self.list.put(dataclasses.replace(item, issue=moved))

    def _start(self, then: datetime) -> datetime:
        """Return the time since which changes are asked for.

        Where many issues were changed in one moment, as by an import, and none since, that is the
        last poll: they would come again with each.
        """
        known = self.list.items.values()
        again = sum(1 for i in known if i.updated is not None and i.updated >= then)
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
        return None if self._client.server_time is None else self._client.server_now()


def in_any_of(names: list[str], added: AddedStates) -> str:
    """Return the condition that an issue may be in one of these states.

    It may also find some whose own status is asked for and whose label puts them elsewhere. What
    is over is not found by its labels, which people leave on it.
    """
    own = added.own(names)
    labelled = [jql.one_of("status", own)] if own else []
    if labels := added.added(names):
        goes_on = ['statusCategory != "Done"']
        asked = set(map(state_key, own))
        if active := [s for s in added.own(added.states.active) if state_key(s) not in asked]:
            goes_on.append(jql.one_of("status", active))
        has_one = jql.one_of("labels", dict.fromkeys(s for lb in labels for s in _spellings(lb)))
        labelled.append(f"{has_one} AND {jql.any_of(*goes_on)}")
    return jql.any_of(*labelled)


def _spellings(label: str) -> tuple[str, ...]:
    """Return how people write a label: a search of Jira may tell upper case from lower."""
    return label, label.lower(), label.upper(), label.capitalize()


def _is_later(known: JiraIssue, found: JiraIssue) -> bool:
    return known.updated is not None and found.updated is not None and known.updated > found.updated
