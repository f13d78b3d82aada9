"""The issues of a project or group that are open, kept up to date by what has changed.

Rule 1: an issue that left the filter leaves the list: what has changed is asked for with the
filter and without it.
Rule 2: the same answer makes the same objects, so that others see that nothing has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from sortie.trackers.gitlab.api import GitLabApi
from sortie.trackers.gitlab.issues import OPENED, GitLabIssue, IssueKey, key_of, time_in
from sortie.trackers.gitlab.query_filter import Params
from sortie.trackers.http.changes import ChangingList


class OpenIssues:
    """All open issues that the filter lets through, as of the last answer."""

    def __init__(self, api: GitLabApi, query_filter: Params) -> None:
        self._api = api
        self._filter = query_filter
        self.list: ChangingList[GitLabIssue] = ChangingList(
            lambda item: key_of(item).id, _changed_at
        )
        self._outside: list[IssueKey] = []

    async def refresh(self, now: float) -> Mapping[IssueKey, GitLabIssue]:
        """Ask for what has changed, or for all of it, and return what is open."""
        self._outside.clear()
        await self.list.refresh("open", now, self._whole, self._since)
        for key in self._outside:
            self.list.drop(key.id)
        return {key: item for key, item in self.seen().items() if item.get("state") == OPENED}

    def seen(self) -> dict[IssueKey, GitLabIssue]:
        """Return all that was seen since the list was asked for whole."""
        return {key_of(item): item for item in self.list.items.values()}

    async def _whole(self) -> Iterable[GitLabIssue]:
        found = await self._api.listed(OPENED, more=self._filter)
        if not found:
            await self._api.check_scope()  # what may not be seen looks empty, too
        return found.values()

    async def _since(self, cursor: datetime) -> Iterable[GitLabIssue]:
        changed = await self._api.listed("all", cursor)
        if not self._filter or not changed:
            return changed.values()
        inside = await self._api.listed("all", cursor, self._filter)
        self._outside.extend(changed.keys() - inside.keys())
        return inside.values()


def _changed_at(item: GitLabIssue) -> datetime | None:
    try:
        return time_in(item, "updated_at")
    except ValueError:
        return None  # that issue is told as one that cannot be read
