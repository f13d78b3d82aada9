"""The issues of the repository as they are known, and what each of them waits for.

Rule 1: what is known changes by whole answers only; a page that fails changes nothing.
Rule 2: what an issue waits for is asked again when it has changed, and every ten minutes;
meanwhile the state of a blocker of this repository is the one in the list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import trio
from msgspec.structs import replace

from sortie.http.at_once import each
from sortie.http.budget import Use
from sortie.http.client import HttpClient
from sortie.model import Blocker, Issue, TrackerError
from sortie.trackers import UnreadableIssue
from sortie.trackers.github.api import PAGE, GitHubApi
from sortie.trackers.github.items import GitHubItem, GitHubRepository, issue_of, number_in
from sortie.trackers.github.search_filter import query_of
from sortie.trackers.http.changes import ChangingList
from sortie.trackers.http.label_states import LabelStates
from sortie.trackers.http.listed import ListedIssues, unreadable_issue

_READ_AT_ONCE = 500  # issues, some milliseconds of work, after which other tasks have their turn

_SECOND = timedelta(seconds=1)  # to which GitHub tells when something has changed


class GitHubCandidates:
    """All open issues, or all of them where closed ones are asked for too."""

    def __init__(
        self,
        client: HttpClient,
        api: GitHubApi,
        repository: GitHubRepository,
        query_filter: str | None,
        sweep: float,
    ) -> None:
        self._client = client
        self._api = api
        self._repository = repository
        self._filter = query_filter
        self._sweep = sweep
        self._list: ChangingList[GitHubItem] = ChangingList(
            lambda item: item.number, lambda item: item.updated_at, sweep=sweep
        )
        self._blockers: dict[str, tuple[GitHubItem, float, tuple[Blocker, ...]]] = {}
        self._has_dependencies = True
        self._paged: tuple[datetime, datetime] | None = None  # when the whole list was read
        self._repeats = False
        self._unreadable: dict[str, UnreadableIssue] = {}

    def put(self, item: GitHubItem) -> None:
        """Take over an issue that was read by its number, unless the list has a later one."""
        known = self._list.items.get(item.number)
        if known is not None and known.updated_at <= item.updated_at:
            self._list.put(item)

    def drop(self, number: str) -> None:
        """Forget an issue that is not there any more."""
        self._list.drop(number)

    async def fetch(
        self,
        is_wanted: Callable[[str], bool],
        states: LabelStates,
        listed: ListedIssues,
        *,
        closed_too: bool,
    ) -> tuple[Issue, ...]:
        """Return the issues whose state is wanted."""
        items = await self._items(closed_too=closed_too)
        chosen = [item for item in items.values() if is_wanted(item.state(states))]
        await self._read_blockers(chosen, states)
        issues = [issue_of(item, states, self._blockers_of(item, states)) for item in chosen]

        def named() -> list[Issue]:
            known = self._list.items.values()
            return [issue_of(i, states) for i in known if states.named(i.state(states)) is not None]

        return listed.take(issues, self._unreadable, named)

    async def blockers(
        self, item: GitHubItem, states: LabelStates, use: Use
    ) -> tuple[Blocker, ...]:
        """Ask what an issue waits for."""
        if item.blockers == 0 or (item.blockers is None and not self._has_dependencies):
            return ()
        hidden = Blocker(identifier=f"{item.issue.identifier}-hidden-blocker")
        listed = await self._api.blockers(item.number, use)
        if listed is None:
            if item.blockers:
                return (hidden,)
            if await self._api.issue(item.number) is not None:
                self._has_dependencies = False  # the server knows none; the issue is there
            return ()
        read = [self._repository.blocker(data, states) for data in listed]
        blockers = tuple(blocker for blocker, _ in read)
        seen_open = sum(is_open for _, is_open in read)
        return (*blockers, hidden) if (item.open_blockers or 0) > seen_open else blockers

    async def _items(self, *, closed_too: bool) -> Mapping[str, GitHubItem]:
        query = None
        if self._filter is not None:
            query = query_of(self._repository.full_name, self._filter, closed=closed_too)
            self._list.forget()  # a search knows no "since" that its index can be trusted with

        async def whole() -> list[GitHubItem]:
            if query is not None:
                return await self._parsed(await self._api.search(query), whole=True)
            began = trio.current_time()
            listed = await self._api.issues(closed_too=closed_too)
            ended = self._client.server_now()
            is_repeat, self._repeats = self._repeats, False
            several = len(listed) > PAGE and not closed_too and not is_repeat
            took = timedelta(seconds=trio.current_time() - began)
            self._paged = (ended - took - _SECOND, ended + _SECOND) if several else None
            return await self._parsed(listed, whole=True)

        async def since(time: datetime) -> list[GitHubItem]:
            listed = await self._api.issues(closed_too=True, since=time)
            items = await self._parsed(listed, whole=False)
            self._look_for_shifts(items)
            return items

        return await self._list.refresh(closed_too, trio.current_time(), whole, since)

    def _look_for_shifts(self, items: list[GitHubItem]) -> None:
        """Ask for the whole list once more where an issue was closed between two of its pages.

        It leaves the list, and the first one of the page behind it moves to the page before, which
        had been read.
        """
        if self._paged is None:
            return
        began, ended = self._paged
        if any(item.closed and began <= item.updated_at <= ended for item in items):
            self._paged, self._repeats = None, True
            self._list.forget()

    async def _parsed(self, listed: list[Any], *, whole: bool) -> list[GitHubItem]:
        """Return what can be read of a list, and note what cannot."""
        items: list[GitHubItem] = []
        unreadable = {} if whole else dict(self._unreadable)
        for place, data in enumerate(listed):
            if place % _READ_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            number = number_in(data)
            try:
                item = self._repository.item(data)
            except TrackerError as exc:
                name = number and self._repository.identifier(number)
                unreadable[number] = unreadable_issue(exc, number, name)
                self._list.drop(number)
                continue
            if item is not None:
                items.append(item)
                unreadable.pop(number, None)
        self._unreadable = unreadable
        return items

    async def _read_blockers(self, chosen: list[GitHubItem], states: LabelStates) -> None:
        """Read what has changed of what issues wait for."""
        now = trio.current_time()

        async def read(item: GitHubItem) -> None:
            found = await self.blockers(item, states, Use.LIST)
            self._blockers[item.number] = item, trio.current_time(), found

        await each(read, [item for item in chosen if not self._is_fresh(item, now)])
        numbers = {item.number for item in chosen}
        self._blockers = {n: known for n, known in self._blockers.items() if n in numbers}

    def _is_fresh(self, item: GitHubItem, now: float) -> bool:
        if item.blockers == 0:
            return True
        known = self._blockers.get(item.number)
        return known is not None and known[0] == item and now - known[1] < self._sweep

    def _blockers_of(self, item: GitHubItem, states: LabelStates) -> tuple[Blocker, ...]:
        known = self._blockers.get(item.number)
        if item.blockers == 0 or known is None:
            return ()
        return tuple(self._as_known(blocker, states) for blocker in known[2])

    def _as_known(self, blocker: Blocker, states: LabelStates) -> Blocker:
        """Return a blocker with the state that the list knows, which may be a later one."""
        known = None if blocker.id is None else self._list.items.get(blocker.id)
        return blocker if known is None else replace(blocker, state=known.state(states))
