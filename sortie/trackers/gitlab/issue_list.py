"""The issues of a project or group that are open, kept up to date by what has changed.

Rule 1: an issue that left the filter leaves the list: what has changed is asked for with the
filter and without it.
Rule 2: the same answer makes the same objects, so that others see that nothing has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from sortie.trackers.gitlab.api import GitLabApi
from sortie.trackers.gitlab.issues import IssueKey, Item, NoIssue, key_of, time_of
from sortie.trackers.gitlab.labels import OPENED
from sortie.trackers.gitlab.query_filter import Params
from sortie.trackers.http.changes import ChangingList


class OpenIssues:
    """All open issues that the filter lets through, as of the last answer."""

    def __init__(self, api: GitLabApi, query_filter: Params) -> None:
        self._api = api
        self._filter = query_filter
        self._list: ChangingList[Item] = ChangingList(_id_of, _changed_at)
        self._outside: list[IssueKey] = []

    async def refresh(self, now: float) -> Mapping[IssueKey, Item]:
        """Ask for what has changed, or for all of it, and return what is open."""
        self._outside.clear()
        await self._list.refresh("open", now, self._whole, self._since)
        for key in self._outside:
            self._list.drop(key.id)
        return {
            key_of(item): item for item in self._list.items.values() if item.get("state") == OPENED
        }

    def get(self, key: IssueKey) -> Item | None:
        """Return an issue as it was last seen."""
        return self._list.items.get(key.id)

    def put(self, item: Item) -> None:
        """Take over what another answer told of an issue."""
        self._list.put(item)

    def drop(self, keys: Iterable[IssueKey]) -> None:
        """Forget issues that are not there."""
        for key in keys:
            self._list.drop(key.id)

    def known(self) -> dict[IssueKey, Item]:
        """Return all that was seen since the list was asked for whole."""
        return {key_of(item): item for item in self._list.items.values()}

    async def _whole(self) -> Iterable[Item]:
        found = await self._api.listed(OPENED, more=self._filter)
        if not found:
            await self._api.check_scope()  # what may not be seen looks empty, too
        return found.values()

    async def _since(self, cursor: datetime) -> Iterable[Item]:
        changed = await self._api.listed("all", cursor)
        if not self._filter or not changed:
            return changed.values()
        inside = await self._api.listed("all", cursor, self._filter)
        self._outside.extend(changed.keys() - inside.keys())
        return inside.values()


def _id_of(item: Item) -> str:
    return key_of(item).id


def _changed_at(item: Item) -> datetime | None:
    try:
        return time_of(item, "updated_at")
    except NoIssue:
        return None  # that issue is told as one that cannot be read
