"""The list of issues in some states, kept up to date by one request a poll.

Rule: what is known changes only when an answer is whole.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from sortie.http.budget import Use
from sortie.trackers.http.added_states import AddedStates
from sortie.trackers.http.changes import ChangingList
from sortie.trackers.linear import queries
from sortie.trackers.linear.api import LinearApi, nodes_of
from sortie.trackers.linear.issues import ListedIssue, is_gone, listed, with_blockers_moved

Json = Any
Node = Mapping[str, Any]

_WHAT = "cannot list issues"


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedIssues:
    """What the list is of: a team's issues in some states, and what the settings ask besides.

    ``labels`` are those of states that are labels, and ``over_ids`` the states in which these do
    not count.
    """

    team_id: str
    state_ids: tuple[str, ...]
    added: AddedStates
    labels: tuple[str, ...] = ()
    over_ids: tuple[str, ...] = ()
    query_filter: Mapping[str, Json] | None = field(default=None, hash=False)

    @property
    def filter(self) -> dict[str, Json]:
        """The IssueFilter that finds them; what the settings ask can only narrow it."""
        ours = {"team": {"id": {"eq": self.team_id}}, **self._in_states}
        if self.query_filter is None:
            return ours
        return {"and": [ours, dict(self.query_filter)]}

    @property
    def _in_states(self) -> dict[str, Json]:
        """The condition on states; it may also find issues that a label puts elsewhere."""
        own = {"state": {"id": {"in": list(self.state_ids)}}}
        if not self.labels:
            return own
        alike = [{"name": {"eqIgnoreCase": label}} for label in self.labels]
        labelled = {
            "labels": {"some": {"or": alike}},
            "state": {"id": {"nin": list(self.over_ids)}},
        }
        return {"or": [own, labelled]} if self.state_ids else labelled


class LinearCandidates:
    """The issues that the last answers told of, those included that cannot be read."""

    def __init__(self, api: LinearApi, complete: Callable[[Node], Awaitable[Node]]) -> None:
        self._api = api
        self._complete = complete
        self.list = ChangingList[ListedIssue](lambda item: item.id, lambda item: item.changed_at)

    def learn(self, node: Node, added: AddedStates) -> None:
        """Take over what a re-read or a move told of an issue, where it is listed."""
        self.list.put(listed(node, added))

    async def refresh(self, wanted: WantedIssues, now: float) -> Mapping[str, ListedIssue]:
        """Bring the list up to date and return it. Raises TrackerError."""
        return await self.list.refresh(
            wanted,
            now,
            lambda: self._whole(wanted),
            lambda since: self._changed(wanted, since),
        )

    async def _whole(self, wanted: WantedIssues) -> Iterable[ListedIssue]:
        nodes: dict[str, Node] = {}

        def take(data: Mapping[str, Any]) -> Mapping[str, Json] | None:
            page = data["issues"]
            nodes.update((str(node["id"]), node) for node in nodes_of(page))
            return _next_page(page, "after")

        await self._api.pages(queries.ISSUES, _WHAT, take, Use.LIST, filter=wanted.filter)
        return [await self._item(node, wanted) for node in nodes.values()]

    async def _changed(self, wanted: WantedIssues, since: datetime) -> Iterable[ListedIssue]:
        """Return what has changed and is in the list; drop what has left it."""
        at = since.isoformat().replace("+00:00", "Z")
        touched, found = await self._changes(wanted, at)
        items = [await self._item(node, wanted) for node in found.values()]
        gone = [i for i, node in touched.items() if i not in found or is_gone(node)]
        fresh = {item.id for item in items}
        items += [
            moved
            for item in self.list.items.values()
            if item.id not in fresh
            and item.id not in gone
            and (moved := _moved(item, touched, wanted.added.states.terminal)) is not item
        ]
        for issue_id in gone:
            self.list.drop(issue_id)
        return [item for item in items if item.id not in gone]

    async def _changes(
        self, wanted: WantedIssues, at: str
    ) -> tuple[dict[str, Node], dict[str, Node]]:
        """Return the bare facts of all that was touched, and the whole nodes of what is listed."""
        touched: dict[str, Node] = {}
        found: dict[str, Node] = {}
        state = {"withListed": True, "withChanged": True}

        def take(data: Mapping[str, Any]) -> Mapping[str, Json] | None:
            following: dict[str, Json] = {}
            for name, nodes in (("Listed", found), ("Changed", touched)):
                if not state[f"with{name}"]:
                    continue
                page = data[name.lower()]
                nodes.update((str(node["id"]), node) for node in nodes_of(page))
                cursor = _next_page(page, f"after{name}")
                state[f"with{name}"] = cursor is not None
                following |= cursor or {}
            return {**following, **state} if any(state.values()) else None

        changed_since = {"updatedAt": {"gte": at}}
        watched: list[Json] = [{"team": {"id": {"eq": wanted.team_id}}}]
        if blockers := self._foreign_blockers():
            watched.append({"id": {"in": blockers}})
        await self._api.pages(
            queries.CHANGES,
            _WHAT,
            take,
            Use.LIST,
            listed={"and": [wanted.filter, changed_since]},
            changed={"and": [{"or": watched}, changed_since]},
            **state,
        )
        return touched, found

    def _foreign_blockers(self) -> list[str]:
        """Return the ids of blockers that the list does not hold; they may be of other teams."""
        known = self.list.items
        found = {
            str(blocker.id)
            for item in known.values()
            if item.issue is not None
            for blocker in item.issue.blocked_by
            if blocker.id is not None and blocker.id not in known
        }
        return sorted(found)

    async def _item(self, node: Node, wanted: WantedIssues) -> ListedIssue:
        """Return a node, with what did not fit into its page, as an item of the list."""
        return listed(await self._complete(node), wanted.added)


def _moved(item: ListedIssue, touched: Mapping[str, Node], terminal: Sequence[str]) -> ListedIssue:
    if item.issue is None:
        return item
    issue = with_blockers_moved(item.issue, touched, terminal)
    return item if issue == item.issue else replace(item, issue=issue)


def _next_page(page: Node, variable: str) -> Mapping[str, Json] | None:
    info = page["pageInfo"]
    return {variable: info["endCursor"]} if info["hasNextPage"] else None
