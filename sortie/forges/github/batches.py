"""How up to 25 pull requests stand, by one request to GitHub's GraphQL API.

Rule 1: what GitHub could not tell whole is an error, never an empty list: no checks would look
green.
Rule 2: a list that is longer than its page is followed to its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sortie.forges.github.queries import (
    CONNECTIONS,
    THREAD,
    THREAD_NOTES,
    Connection,
    states_query,
)
from sortie.forges.github.state import state_of
from sortie.http.budget import Use
from sortie.http.client import HttpClient
from sortie.http.github import (
    FORBIDDEN,
    GRAPHQL_LIMITS,
    TOO_MUCH,
    UNKNOWN_FIELDS,
    errors_in,
    graphql_request,
    kinds_of,
    messages_of,
)
from sortie.http.json_values import list_of, mapping_of
from sortie.model import PullRequest, TrackerError, TrackerErrorKind
from sortie.model.pull_requests import PullRequestState

BATCH = 25
"""Pull requests of one request."""

_PAGES = 100

_TOO_OLD = (
    "this server is too old for Sortie to watch pull requests;"
    " update GitHub Enterprise Server, or take `reactions` out of the settings"
)


class TooMuch(TrackerError):
    """GitHub does not answer for so much at once."""


class PullRequestBatches:
    """Reads pull requests of any repository together."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def read(self, pull_requests: Sequence[PullRequest]) -> dict[str, PullRequestState]:
        """Return how they stand by their ids, without those that are gone. Raises TrackerError."""
        found: dict[str, PullRequestState] = {}
        for start in range(0, len(pull_requests), BATCH):
            found |= await self._some(pull_requests[start : start + BATCH])
        return found

    async def _some(self, some: Sequence[PullRequest]) -> dict[str, PullRequestState]:
        variables = {f"p{at}": one.id for at, one in enumerate(some)}
        what = f"cannot read {len(some)} pull requests"
        if len(some) == 1:
            what = f"cannot read pull request {some[0].number}"
        try:
            data = await self.ask(what, states_query([one.number for one in some]), variables)
        except TooMuch:
            if len(some) == 1:
                raise
            half = len(some) // 2
            return await self._some(some[:half]) | await self._some(some[half:])
        found = {}
        for at, one in enumerate(some):
            node = data.get(f"p{at}")
            if node:
                found[one.id] = await self._state(what, node)
        return found

    async def _state(self, what: str, node: dict[str, Any]) -> PullRequestState:
        try:
            for connection in CONNECTIONS:
                await self._complete(what, node, connection, node["number"])
            for thread in node["reviewThreads"]["nodes"]:
                await self._complete(what, thread, THREAD_NOTES, node["number"])
            return state_of(node)
        except (KeyError, TypeError, AttributeError, IndexError) as exc:
            told = f"{what}: the answer of GitHub has another shape: {exc!r}"
            raise TrackerError(TrackerErrorKind.UNAVAILABLE, told) from exc

    async def notes_of(self, what: str, thread: str) -> list[Any]:
        """Return the comments of a thread. Raises TrackerError (NOT_FOUND) where it is gone."""
        node = (await self.ask(what, THREAD, {"id": thread})).get("node")
        if not node or not list_of(mapping_of(node.get("comments")).get("nodes")):
            raise TrackerError(TrackerErrorKind.NOT_FOUND, f"{what}: the thread is not there")
        await self._complete(what, node, THREAD_NOTES, 0)
        return [note for note in node["comments"]["nodes"] if note is not None]

    async def _complete(
        self, what: str, node: dict[str, Any], connection: Connection, number: int
    ) -> None:
        """Add the further pages of a list to its first one."""
        first = page = _at(node, connection)
        if first is None:
            return
        for _ in range(_PAGES):
            if not page["pageInfo"]["hasNextPage"]:
                return
            variables = {"id": node["id"], "after": page["pageInfo"]["endCursor"]}
            data = await self.ask(what, connection.query(number), variables)
            page = _at(data["node"], connection)
            if page is None:
                told = f"{what}: it has changed while it was read"
                raise TrackerError(TrackerErrorKind.UNAVAILABLE, told)
            first["nodes"] += page["nodes"]
        raise TrackerError(TrackerErrorKind.UNAVAILABLE, f"{what}: a list of it has no end")

    async def ask(
        self, what: str, query: str, variables: Mapping[str, Any], use: Use = Use.READ
    ) -> dict[str, Any]:
        """Return the data of an answer, in which only what is not there may be null.

        Raises TrackerError: TooMuch where less has to be asked for, INVALID where a change is
        refused.
        """
        request = graphql_request(self._client, what, query, variables, use=use)
        answer = await self._client.ask(request)
        body: Any = answer.json() if answer.has_body else None
        errors = errors_in(body)
        kinds = {kind for error in errors for kind in kinds_of(error)}
        if kinds & GRAPHQL_LIMITS:
            raise self._client.limit_error(request, answer, messages_of(errors))
        if kinds & TOO_MUCH:
            raise TooMuch(TrackerErrorKind.UNAVAILABLE, f"{what}: {messages_of(errors)}")
        if kinds & UNKNOWN_FIELDS:
            told = f"{_TOO_OLD}: {messages_of(errors)}"
            raise self._client.error(TrackerErrorKind.INVALID, request, told)
        others = [error for error in errors if use is Use.WRITE or not _is_missing(error)]
        if others:
            kind = TrackerErrorKind.UNAVAILABLE
            if kinds & FORBIDDEN:
                kind = TrackerErrorKind.PERMISSION
            elif use is Use.WRITE:
                kind = TrackerErrorKind.INVALID
            raise self._client.error(kind, request, messages_of(others))
        data = body.get("data") if isinstance(body, dict) else None
        if not isinstance(data, dict):
            raise self._client.error(TrackerErrorKind.UNAVAILABLE, request, "there are no data")
        return data


def _at(node: Any, connection: Connection) -> Any:
    """Return a list of a node, None where there is none."""
    found = node
    for key in connection.path:
        if found is None or (isinstance(key, int) and len(found) <= key):
            return None
        found = found[key]
    return found


def _is_missing(error: Mapping[str, Any]) -> bool:
    """Tell whether an error says no more than that a whole node is not there."""
    path = error.get("path")
    return "NOT_FOUND" in kinds_of(error) and isinstance(path, list) and len(path) == 1
