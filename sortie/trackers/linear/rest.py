"""What did not fit into the first page of an issue's labels, relations and comments.

Comments come by their last change, newest first. So while the first page is what it was, the pages
after it are too, but for a comment there that was deleted since, and are not asked for again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from sortie.trackers.linear import queries
from sortie.trackers.linear.api import LinearApi, nodes_of

Node = Mapping[str, Any]

_LISTS = {"Labels": "labels", "Relations": "inverseRelations", "Comments": "comments"}
_REMEMBERED = 500


class Rest:
    """Completes nodes whose nested lists have more pages."""

    def __init__(self, api: LinearApi) -> None:
        self._api = api
        self._older: OrderedDict[str, tuple[Node, Sequence[Node]]] = OrderedDict()

    async def complete(self, node: Node) -> Node:
        """Return a node with all labels, relations and, where it has any, comments."""
        unfinished = {
            name: node[key] for name, key in _LISTS.items() if key in node and _has_more(node[key])
        }
        issue_id = str(node["id"])
        comments = unfinished.get("Comments")
        known = self._older.get(issue_id)
        if known is not None and comments == known[0]:
            del unfinished["Comments"]
        found = await self._rest(issue_id, unfinished) if unfinished else {}
        if "Comments" in unfinished:
            self._remember(issue_id, node["comments"], found["Comments"])
        elif comments is not None and known is not None:
            found["Comments"] = known[1]
        complete = dict(node)
        for name, more in found.items():
            key = _LISTS[name]
            complete[key] = {"nodes": [*node[key]["nodes"], *more]}
        return complete

    async def _rest(
        self, issue_id: str, unfinished: Mapping[str, Node]
    ) -> dict[str, Sequence[Node]]:
        found: dict[str, list[Node]] = {name: [] for name in unfinished}
        pages = dict(unfinished)
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

    def _remember(self, issue_id: str, first: Node, older: Sequence[Node]) -> None:
        self._older[issue_id] = first, older
        self._older.move_to_end(issue_id)
        while len(self._older) > _REMEMBERED:
            self._older.popitem(last=False)


def _has_more(connection: Node) -> bool:
    return bool(connection["pageInfo"]["hasNextPage"])
