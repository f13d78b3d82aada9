"""Issues of Linear that are read again, with all that belongs to them.

An issue's labels, relations and comments come in pages of their own. Comments come by their last
change, newest first: while the first page is what it was, the pages after it are too, but for a
comment there that was deleted since, and are not asked for again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from sortie.model import Issue, IssueId, TrackerError, TrackerErrorKind, same_state
from sortie.trackers.linear import queries
from sortie.trackers.linear.api import LinearApi, TooComplex, nodes_of
from sortie.trackers.linear.issues import Node, is_gone

REREAD_AT_ONCE = 50
"""Issues of one request that brings comments along; fewer once that was too complex."""

_LISTS = {"Labels": "labels", "Relations": "inverseRelations", "Comments": "comments"}
_REMEMBERED = 500  # issues whose older comments are kept


class LinearReader:
    """Reads whole nodes, comments included, whatever their state. Methods raise TrackerError."""

    def __init__(self, api: LinearApi, team_key: str) -> None:
        self._api = api
        self._key = team_key
        self._at_once = REREAD_AT_ONCE
        self._older: OrderedDict[str, tuple[Node, Sequence[Node]]] = OrderedDict()

    async def of_ids(self, ids: Sequence[IssueId]) -> dict[IssueId, Node]:
        """Return nodes by id, of whatever team."""
        found: dict[IssueId, Node] = {}
        left = list(ids)
        while left:
            some = left[: self._at_once]
            try:
                data = await self._api.ask(
                    queries.REREAD,
                    f"cannot read {len(some)} issues again",
                    filter={"id": {"in": [str(each) for each in some]}},
                    first=len(some),
                )
            except TooComplex:
                if self._at_once == 1:
                    raise
                self._at_once = max(1, self._at_once // 2)
                continue
            for node in nodes_of(data["issues"]):
                found[IssueId(str(node["id"]))] = await self.complete(node)
            left = left[len(some) :]
        return found

    async def one(
        self, condition: Mapping[str, Any], name: str, document: str = queries.REREAD
    ) -> Node | None:
        """Return the node that a filter finds first, if it is of the team."""
        what = f"cannot read issue {name}"
        data = await self._api.ask(document, what, filter=condition, first=1)
        nodes = nodes_of(data["issues"])
        return await self.complete(nodes[0]) if nodes and self.is_ours(nodes[0]) else None

    async def with_states(self, issue: Issue) -> Node:
        """Read an issue and the states of its team. Raises NOT_FOUND where it is not there."""
        condition = {"id": {"in": [str(issue.id)]}}
        node = await self.one(condition, issue.identifier, queries.REREAD_WITH_STATES)
        if node is None:
            what = f"Linear has no issue {issue.identifier} for us"
            raise TrackerError(TrackerErrorKind.NOT_FOUND, what)
        return node

    def is_ours(self, node: Node) -> bool:
        """Tell whether an issue is of the team, and there."""
        return not is_gone(node) and same_state(str(node["team"]["key"]), self._key)

    async def complete(self, node: Node) -> Node:
        """Return a node with all labels, relations and, where it has any, comments."""
        unfinished = {
            name: node[key] for name, key in _LISTS.items() if key in node and _has_more(node[key])
        }
        if not unfinished:
            return node
        issue_id = str(node["id"])
        first, older = self._older.get(issue_id, (None, ()))
        found: dict[str, Sequence[Node]] = {}
        if first is not None and unfinished.get("Comments") == first:
            del unfinished["Comments"]
            found["Comments"] = older
        found |= await self._further_pages(issue_id, unfinished)
        if "Comments" in found:
            self._older[issue_id] = node["comments"], found["Comments"]
            self._older.move_to_end(issue_id)
            while len(self._older) > _REMEMBERED:
                self._older.popitem(last=False)
        more = {_LISTS[name]: nodes for name, nodes in found.items()}
        return {**node, **{k: {"nodes": [*node[k]["nodes"], *nodes]} for k, nodes in more.items()}}

    async def _further_pages(
        self, issue_id: str, pages: dict[str, Node]
    ) -> dict[str, Sequence[Node]]:
        found: dict[str, list[Node]] = {name: [] for name in pages}
        while pages:
            variables: dict[str, Any] = {f"with{name}": name in pages for name in _LISTS}
            for name, page in pages.items():
                variables[f"{name.lower()}After"] = page["pageInfo"]["endCursor"]
            data = await self._api.ask(
                queries.REST_OF,
                f"cannot read all of issue {issue_id}",
                filter={"id": {"in": [issue_id]}},
                **variables,
            )
            nodes = nodes_of(data["issues"])
            if not nodes:
                break  # it has gone meanwhile, which the next answer about it tells
            for name, page in list(pages.items()):
                following = nodes[0][_LISTS[name]]
                found[name] += nodes_of(following)
                cursor = following["pageInfo"]["endCursor"]
                if _has_more(following) and cursor != page["pageInfo"]["endCursor"]:
                    pages[name] = following
                else:
                    del pages[name]
        return dict(found)


def _has_more(connection: Node) -> bool:
    return bool(connection["pageInfo"]["hasNextPage"])
