"""Issues of Linear that are read again, one by one or many at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sortie.model import Issue, IssueId, TrackerError, TrackerErrorKind, same_state
from sortie.trackers.linear import queries
from sortie.trackers.linear.api import LinearApi, TooComplex, nodes_of
from sortie.trackers.linear.issues import Node, is_gone
from sortie.trackers.linear.rest import Rest
from sortie.trackers.linear.team import TeamState, states_of

REREAD_AT_ONCE = 50
"""Issues of one request that brings comments along; fewer once that was too complex."""


class Rereads:
    """Reads whole nodes, comments included, whatever their state."""

    def __init__(self, api: LinearApi, rest: Rest, team_key: str) -> None:
        self._api = api
        self._rest = rest
        self._key = team_key
        self._at_once = REREAD_AT_ONCE

    async def of_ids(self, ids: Sequence[IssueId]) -> dict[IssueId, Node]:
        """Return nodes by id, of whatever team. Raises TrackerError."""
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
                found[IssueId(str(node["id"]))] = await self._rest.complete(node)
            left = left[len(some) :]
        return found

    async def one(self, condition: Mapping[str, Any], name: str) -> Node | None:
        """Return the node that a filter finds first. Raises TrackerError."""
        data = await self._api.ask(
            queries.REREAD, f"cannot read issue {name}", filter=condition, first=1
        )
        nodes = nodes_of(data["issues"])
        return await self._rest.complete(nodes[0]) if nodes else None

    async def with_states(self, issue: Issue) -> tuple[Node, tuple[TeamState, ...]]:
        """Read an issue and the states of its team. Raises TrackerError where it is not there."""
        data = await self._api.ask(
            queries.REREAD_WITH_STATES,
            f"cannot read issue {issue.identifier}",
            filter={"id": {"in": [str(issue.id)]}},
            first=1,
        )
        nodes = nodes_of(data["issues"])
        if not nodes or not self.is_ours(nodes[0]):
            raise TrackerError(
                TrackerErrorKind.NOT_FOUND, f"Linear has no issue {issue.identifier} for us"
            )
        return await self._rest.complete(nodes[0]), states_of(nodes[0]["team"]["states"])

    def is_ours(self, node: Node) -> bool:
        """Whether an issue is of the team, and there."""
        return not is_gone(node) and same_state(str(node["team"]["key"]), self._key)
