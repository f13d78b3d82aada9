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
from msgspec import Struct
from msgspec.structs import replace

from sortie.model import Blocker, Issue, TrackerError, TrackerErrorKind
from sortie.telemetry.log.structlog_alone import structlog
from sortie.trackers import Overview, UnreadableIssue
from sortie.trackers.github.api import PAGE, GitHubApi
from sortie.trackers.github.items import Item, Repository, issue_of, number_of
from sortie.trackers.github.label_states import LabelStates
from sortie.trackers.github.search_filter import query_of
from sortie.trackers.http.budget import Use
from sortie.trackers.http.changes import ChangingList

log = structlog.get_logger()

_AT_ONCE = 8
"""Tasks that read what issues wait for; the client makes fewer requests at a time."""

_READ_AT_ONCE = 500  # issues, some milliseconds of work, after which other tasks have their turn

_SECOND = timedelta(seconds=1)  # to which GitHub tells when something has changed

_TOLD_AT_MOST = 1000  # complaints that are remembered


class _Edges(Struct, frozen=True, kw_only=True):
    """What an issue waits for, as of the issue that was asked about."""

    item: Item
    read_at: float
    blockers: tuple[Blocker, ...]


class Candidates:
    """All open issues, or all of them where closed ones are asked for too."""

    def __init__(
        self, api: GitHubApi, repository: Repository, query_filter: str | None, sweep: float
    ) -> None:
        self._api = api
        self._repository = repository
        self._filter = query_filter
        self._sweep = sweep
        self._list: ChangingList[Item] = ChangingList(
            lambda item: item.number, lambda item: item.updated_at, sweep=sweep
        )
        self._edges: dict[str, _Edges] = {}
        self._has_dependencies = True
        self._paged: tuple[datetime, datetime] | None = None  # when the whole list was read
        self._repeats = False
        self._unreadable: dict[str, str] = {}
        self._told: set[str] = set()
        self._given: dict[str, tuple[Item, LabelStates, Issue]] = {}
        self._answer: tuple[Issue, ...] = ()
        self._overview: tuple[LabelStates, Overview] | None = None

    def forget(self) -> None:
        """Ask for the whole list next time."""
        self._list.forget()

    def put(self, item: Item) -> None:
        """Take over an issue that was read by its number, unless the list has a later one."""
        known = self._list.items.get(item.number)
        if known is not None and known.updated_at <= item.updated_at:
            self._list.put(item)
            self._overview = None

    def drop(self, number: str) -> None:
        """Forget an issue that is not there any more."""
        self._list.drop(number)
        self._overview = None

    def overview(self, states: LabelStates) -> Overview:
        """Return the issues that are in a state which somebody named, and unreadable ones."""
        if self._overview is None or self._overview[0] is not states:
            self._overview = states, self._overviewed(states)
        return self._overview[1]

    def _overviewed(self, states: LabelStates) -> Overview:
        items = self._list.items.values()
        named = (item for item in items if states.named(item.state(states)) is not None)
        return Overview(
            issues=tuple(issue_of(item, states) for item in named),
            unreadable=tuple(
                UnreadableIssue(
                    message=message,
                    names=frozenset({number, self._repository.identifier(number)} - {""}),
                )
                for number, message in self._unreadable.items()
            ),
        )

    async def fetch(
        self, is_wanted: Callable[[str], bool], states: LabelStates, *, closed_too: bool
    ) -> tuple[Issue, ...]:
        """Return the issues whose state is wanted; the same tuple where nothing has changed."""
        items = await self._items(closed_too=closed_too)
        self._overview = None
        chosen = [item for item in items.values() if is_wanted(item.state(states))]
        await self._read_edges(chosen, states)
        issues = tuple(
            self._as_given(item, states, self._blockers_of(item, states)) for item in chosen
        )
        if len(issues) != len(self._answer) or any(
            one is not other for one, other in zip(issues, self._answer, strict=True)
        ):
            self._answer = issues
        return self._answer

    async def blockers(self, item: Item, states: LabelStates, use: Use) -> tuple[Blocker, ...]:
        """Ask what an issue waits for."""
        if item.blockers == 0 or (item.blockers is None and not self._has_dependencies):
            return ()
        listed = await self._api.blockers(item.number, use)
        if listed is None:
            return await self._without_route(item)
        read = [self._repository.blocker(data, states) for data in listed]
        blockers = tuple(blocker for blocker, _ in read)
        hidden = (item.open_blockers or 0) - sum(is_open for _, is_open in read)
        if hidden > 0:
            called = f"{item.issue.identifier}-hidden-blocker"
            return (*blockers, *(Blocker(identifier=called) for _ in range(min(hidden, 1))))
        return blockers

    async def _without_route(self, item: Item) -> tuple[Blocker, ...]:
        """Tell a server that knows no dependencies from an issue that is gone."""
        if item.blockers:
            return (Blocker(identifier=f"{item.issue.identifier}-hidden-blocker"),)
        if await self._api.issue(item.number) is not None:
            self._has_dependencies = False
        return ()

    async def _items(self, *, closed_too: bool) -> Mapping[str, Item]:
        query = None
        if self._filter is not None:
            query = query_of(self._repository.full_name, self._filter, closed=closed_too)
            self._list.forget()  # a search knows no "since" that its index can be trusted with

        async def whole() -> list[Item]:
            if query is not None:
                return await self._read(await self._api.search(query), whole=True)
            began = trio.current_time()
            listed = await self._api.issues(closed_too=closed_too)
            ended = self._api.server_now()
            is_repeat, self._repeats = self._repeats, False
            several = len(listed) > PAGE and not closed_too and not is_repeat
            took = timedelta(seconds=trio.current_time() - began)
            self._paged = (ended - took - _SECOND, ended + _SECOND) if several else None
            return await self._read(listed, whole=True)

        async def since(time: datetime) -> list[Item]:
            listed = await self._api.issues(closed_too=True, since=time)
            items = await self._read(listed, whole=False)
            self._look_for_shifts(items)
            return items

        return await self._list.refresh(closed_too, trio.current_time(), whole, since)

    def _look_for_shifts(self, items: list[Item]) -> None:
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

    async def _read(self, listed: list[Any], *, whole: bool) -> list[Item]:
        """Return what can be read of a list, and note what cannot."""
        items: list[Item] = []
        unreadable: dict[str, str] = {}
        for place, data in enumerate(listed):
            if place % _READ_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            try:
                item = self._repository.item(data)
            except TrackerError as exc:
                unreadable[number_of(data)] = str(exc)
                continue
            if item is not None:
                items.append(item)
                self._unreadable.pop(item.number, None)
        for number, message in unreadable.items():
            self._list.drop(number)
            self._complain(message)
        self._unreadable = unreadable if whole else {**self._unreadable, **unreadable}
        return items

    def _complain(self, message: str) -> None:
        """Log what is wrong with an issue, once."""
        if message in self._told:
            return
        if len(self._told) >= _TOLD_AT_MOST:
            self._told.clear()
        self._told.add(message)
        log.warning("tracker.issue_malformed", error=message)

    async def _read_edges(self, chosen: list[Item], states: LabelStates) -> None:
        """Read what has changed of what issues wait for."""
        now = trio.current_time()
        stale = [item for item in chosen if not self._is_fresh(item, now)]
        for start in range(0, len(stale), _AT_ONCE):
            await self._read_some_edges(stale[start : start + _AT_ONCE], states)
        known = {item.number for item in chosen}
        self._edges = {n: edges for n, edges in self._edges.items() if n in known}

    def _is_fresh(self, item: Item, now: float) -> bool:
        if item.blockers == 0:
            return True
        edges = self._edges.get(item.number)
        return edges is not None and edges.item == item and now - edges.read_at < self._sweep

    async def _read_some_edges(self, items: list[Item], states: LabelStates) -> None:
        failed: list[TrackerError] = []

        async def read(item: Item) -> None:
            try:
                blockers = await self.blockers(item, states, Use.LIST)
            except TrackerError as exc:
                failed.append(exc)
                nursery.cancel_scope.cancel()
                return
            self._edges[item.number] = _Edges(
                item=item, read_at=trio.current_time(), blockers=blockers
            )

        async with trio.open_nursery() as nursery:
            for item in items:
                nursery.start_soon(read, item)
        if failed:
            raise failed[0]

    def _blockers_of(self, item: Item, states: LabelStates) -> tuple[Blocker, ...]:
        edges = self._edges.get(item.number)
        if item.blockers == 0 or edges is None:
            return ()
        return tuple(self._as_known(blocker, states) for blocker in edges.blockers)

    def _as_known(self, blocker: Blocker, states: LabelStates) -> Blocker:
        """Return a blocker with the state that the list knows, which may be a later one."""
        known = None if blocker.id is None else self._list.items.get(blocker.id)
        return blocker if known is None else replace(blocker, state=known.state(states))

    def _as_given(self, item: Item, states: LabelStates, blocked_by: tuple[Blocker, ...]) -> Issue:
        """Return an issue as the same object as before where nothing in it has changed."""
        before = self._given.get(item.number)
        if before is not None:
            known, with_states, issue = before
            if known == item and with_states is states and issue.blocked_by == blocked_by:
                return issue
        issue = issue_of(item, states, blocked_by)
        if len(self._given) > 2 * len(self._list.items) + 100:
            self._given = {n: g for n, g in self._given.items() if n in self._list.items}
        self._given[item.number] = (item, states, issue)
        return issue


def not_there(repository: Repository, number: str) -> TrackerError:
    """Return that an issue is gone."""
    return TrackerError(
        TrackerErrorKind.NOT_FOUND,
        f"{repository.identifier(number)} is not there, or the credential may not see it",
    )
