"""What issues wait for: links of the kind "is blocked by", of which GitLab tells issue by issue.

Only paid editions have such links. A list of issues says nothing of them, and a new link need not
change an issue's ``updated_at``, so they are asked for anew now and then, those first which the
scheduler is about to choose.

Rule: at most LINKS_A_LIST requests are made for one list.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import trio
from msgspec import Struct

from sortie.model import Blocker, Issue
from sortie.scheduler.timing import order_key
from sortie.trackers.gitlab.api import GitLabApi
from sortie.trackers.gitlab.issues import GitLabIssue, IssueKey, IssueReader, key_of

LINKS_A_LIST = 10
"""Requests for links that one list costs at most."""

NEXT = 10
"""Candidates, in the order of their dispatch, whose links are looked at; each that starts is
read again by itself."""

BLOCKED_FOR = 60.0
"""Seconds after which a candidate that waits for another issue is looked at again."""

LINKS_LIFE = 600.0
"""Seconds after which any other is."""

FEW = 5
"""Issues of a re-read whose links are asked for whatever is known; one that starts is read alone,
while those that run or wait are read together at every poll."""


class KnownLinks(Struct, frozen=True, kw_only=True):
    """The issues that block one, as of an answer; ``version`` is the ``updated_at`` it had."""

    asked: float
    version: object
    blockers: tuple[GitLabIssue, ...]


class IssueLinks:
    """What is known of the links of issues; a Community Edition is asked for none."""

    def __init__(self, api: GitLabApi, *, is_wanted: bool) -> None:
        self._api = api
        self._is_had: bool | None = None if is_wanted else False
        self._known: dict[IssueKey, KnownLinks] = {}

    async def refresh(self, key: IssueKey, item: GitLabIssue, together: int) -> bool:
        """Bring the links of an issue up to date that is read with so many others.

        Returns whether they were asked for. Raises TrackerError.
        """
        within = 0.0 if together <= FEW else LINKS_LIFE
        if not await self._are_had() or self._is_fresh(key, item, within):
            return False
        await self._ask(key, item)
        return True

    async def look_ahead(
        self,
        candidates: Collection[tuple[Issue, GitLabIssue]],
        reader: IssueReader,
        seen: Mapping[IssueKey, GitLabIssue],
    ) -> None:
        """Learn what the next candidates wait for, with few requests. Raises TrackerError."""
        if not candidates or not await self._are_had():
            return
        terminal = set(reader.labels.states.terminal)
        stale: list[tuple[IssueKey, GitLabIssue]] = []
        free = 0
        for _, item in sorted(candidates, key=lambda each: order_key(each[0])):
            if free == NEXT or len(stale) == 4 * LINKS_A_LIST:
                break
            key = key_of(item)
            blockers = self.blocked_by(key, reader, seen)
            is_blocked = any(blocker.state not in terminal for blocker in blockers)
            free += not is_blocked
            if not self._is_fresh(key, item, BLOCKED_FOR if is_blocked else LINKS_LIFE):
                stale.append((key, item))
        stale.sort(key=lambda each: self._asked(each[0]))
        for key, item in stale[:LINKS_A_LIST]:
            await self._ask(key, item)
        self._known = {key: known for key, known in self._known.items() if key in seen}

    def blocked_by(
        self, key: IssueKey, reader: IssueReader, seen: Mapping[IssueKey, GitLabIssue]
    ) -> tuple[Blocker, ...]:
        """Return what an issue waits for; ``seen`` are issues as lists told them last."""
        known = self._known.get(key)
        links = () if known is None else known.blockers
        return tuple(reader.blocker(newest) for newest in _newest(links, seen))

    async def _are_had(self) -> bool:
        """Tell whether this GitLab may have links that block. Raises TrackerError."""
        if self._is_had is None:
            # A licence is not told; without one there are no such links in the answers.
            self._is_had = (await self._api.metadata()).get("enterprise") is not False
        return self._is_had

    async def _ask(self, key: IssueKey, item: GitLabIssue) -> None:
        links = await self._api.links(key)  # their types are seen from this issue
        self._known[key] = KnownLinks(
            asked=trio.current_time(),
            version=item.get("updated_at"),
            blockers=tuple(link for link in links if link.get("link_type") == "is_blocked_by"),
        )

    def _is_fresh(self, key: IssueKey, item: GitLabIssue, within: float) -> bool:
        known = self._known.get(key)
        is_same = known is not None and known.version == item.get("updated_at")
        return is_same and trio.current_time() - self._asked(key) < within

    def _asked(self, key: IssueKey) -> float:
        known = self._known.get(key)
        return float("-inf") if known is None else known.asked


def _newest(
    links: Iterable[GitLabIssue], seen: Mapping[IssueKey, GitLabIssue]
) -> Iterable[GitLabIssue]:
    for item in links:
        try:
            yield seen.get(key_of(item), item)
        except ValueError:
            yield item
