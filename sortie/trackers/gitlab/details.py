"""What GitLab tells of an issue in answers of their own: its comments, and what blocks it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import trio

from sortie.model import Blocker, Comment, Issue, TrackerError, TrackerErrorKind
from sortie.trackers.gitlab.api import GitLabApi
from sortie.trackers.gitlab.issues import IssueKey, IssueReader, Item, NoIssue, comments_of, key_of
from sortie.trackers.gitlab.links import KNOWN_FOR, LinkMemory, order_of_dispatch

FEW = 5
"""Issues of a re-read whose links are asked for whatever is known; one that starts is read alone,
while those that run or wait are read together at every poll."""


class IssueDetails:
    """Comments and blockers of issues.

    Rule 1: comments are read again when the issue has changed, and every ten minutes.
    Rule 2: a Community Edition is asked for no links: it has none that block.
    """

    def __init__(
        self, api: GitLabApi, reader: IssueReader, *, with_internal: bool, with_links: bool
    ) -> None:
        self._api = api
        self._reader = reader
        self._with_internal = with_internal
        self._has_links: bool | None = None if with_links else False
        self._links = LinkMemory()
        self._comments: dict[IssueKey, tuple[object, float, tuple[Comment, ...]]] = {}

    async def whole(self, item: Item, known: Mapping[IssueKey, Item], *, of: int = 1) -> Issue:
        """Return an issue with comments and blockers; it is one of so many of a re-read.

        Raises TrackerError.
        """
        key, now = key_of(item), trio.current_time()
        issue = self._reader.issue(item)  # before anything is asked about one that is none
        within = 0.0 if of <= FEW else KNOWN_FOR
        if await self.has_links() and not self._links.is_fresh(key, item, now, within):
            self._links.take(key, item, await self._api.links(key), now)
            known = {}  # what just came is newer
        comments = await self._comments_of(key, item, now)
        blocked_by = self.blocked_by(key, known)
        if not comments and not blocked_by:
            return issue
        return self._reader.issue(item, comments=comments, blocked_by=blocked_by)

    async def look_ahead(
        self,
        candidates: Collection[tuple[Issue, Item]],
        known: Mapping[IssueKey, Item],
        terminal: Collection[str],
    ) -> None:
        """Learn what the next candidates wait for, with few requests."""
        if not candidates or not await self.has_links():
            return
        now = trio.current_time()

        def is_blocked(key: IssueKey) -> bool:
            return any(blocker.state not in terminal for blocker in self.blocked_by(key, known))

        ordered = sorted(candidates, key=lambda each: order_of_dispatch(each[0]))
        for key, item in self._links.to_ask(ordered, is_blocked, now):
            self._links.take(key, item, await self._api.links(key), now)
        self._links.keep_only(known)

    def blocked_by(self, key: IssueKey, known: Mapping[IssueKey, Item]) -> tuple[Blocker, ...]:
        """Return what an issue waits for; ``known`` are issues as they were seen last."""
        found = self._links.blockers(key)
        return tuple(self._reader.blocker(_newer(item, known)) for item in found)

    async def has_links(self) -> bool:
        """Tell whether this GitLab may have links that block. Raises TrackerError."""
        if self._has_links is None:
            # A licence is not told; without one there are no such links in the answers.
            self._has_links = (await self._api.metadata()).get("enterprise") is not False
        return self._has_links

    async def _comments_of(self, key: IssueKey, item: Item, now: float) -> tuple[Comment, ...]:
        version = item.get("updated_at"), item.get("user_notes_count")
        known = self._comments.get(key)
        if known is not None and known[0] == version and now - known[1] < KNOWN_FOR:
            return known[2]
        try:
            comments = comments_of(await self._api.notes(key), with_internal=self._with_internal)
        except NoIssue as exc:
            what = f"GitLab issue {item.get('web_url')} cannot be read: {exc}"
            raise TrackerError(TrackerErrorKind.INVALID, what) from exc
        if len(self._comments) > 10_000:
            self._comments.clear()
        self._comments[key] = version, now, comments
        return comments


def _newer(item: Item, known: Mapping[IssueKey, Item]) -> Item:
    """Return an issue as the list has it, if it has it."""
    try:
        return known.get(key_of(item), item)
    except NoIssue:
        return item
