"""Up to a hundred issues in one request, by GitHub's GraphQL API; pure REST where that is not had.

REST takes two requests for each issue, which limits what can be re-read with each poll. What comes
is brought into the shape of REST, so that one piece of code reads both.

Rule: what GraphQL cannot tell of an issue is asked by REST, and never left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from sortie.http.answers import HttpAnswer
from sortie.http.budget import Use
from sortie.http.client import HttpClient
from sortie.http.github import (
    FORBIDDEN,
    GRAPHQL,
    GRAPHQL_LIMITS,
    TOO_MUCH,
    UNKNOWN_FIELDS,
    errors_in,
    graphql_request,
    kinds_of,
    messages_of,
)
from sortie.http.requests import HttpRequest
from sortie.model import TrackerErrorKind
from sortie.trackers.github.items import GitHubRepository

BATCH = 100
"""Issues of one request; GitHub takes no more."""

COMMENTS = 30
"""Comments of an issue that come with it; one that has more is asked for them by REST."""

_FRAGMENT = f"""
fragment Fields on Issue {{
  number title body url state createdAt updatedAt
  repository {{ nameWithOwner }}
  labels(first: 100) {{ nodes {{ name }} pageInfo {{ hasNextPage }} }}
  author {{ __typename login }}
  assignees(first: 1) {{ nodes {{ login }} }}
  issueType {{ name }}
  parent {{ number repository {{ nameWithOwner }} }}
  issueDependenciesSummary {{ blockedBy totalBlockedBy }}
  comments(first: {COMMENTS}) {{
    totalCount
    nodes {{ author {{ __typename login }} body createdAt }}
    pageInfo {{ hasNextPage }}
  }}
}}
"""

_NOT_HAD = frozenset({403, 404, 405, 410, 501})
"""Statuses of a server, or a credential, that has no GraphQL."""


class BatchedIssue(Struct, frozen=True, kw_only=True):
    """An issue as REST would tell it; ``comments`` is None where not all of them came."""

    data: Mapping[str, Any]
    comments: Sequence[Mapping[str, Any]] | None


class _TooMuch(Exception):
    """GitHub does not answer for so many issues at once."""


class IssueBatches:
    """Reads issues of one repository together, as long as the server can do that."""

    def __init__(self, client: HttpClient, repository: GitHubRepository) -> None:
        self._client = client
        self._repository = repository
        self._is_had = True

    async def read(self, numbers: Sequence[str]) -> Mapping[str, BatchedIssue | None] | None:
        """Return issues by number, None for one that is not there.

        One of which not all may be seen is left out. The whole is None where REST has to be asked:
        the server has no such GraphQL, or its budget is used up. Raises TrackerError.
        """
        found: dict[str, BatchedIssue | None] = {}
        for start in range(0, len(numbers), BATCH):
            some = await self._some(numbers[start : start + BATCH])
            if some is None:
                return None
            found |= some
        return {n: it for n, it in found.items() if it is None or it.data["labels"] is not None}

    async def _some(self, numbers: Sequence[str]) -> dict[str, BatchedIssue | None] | None:
        if not self._is_had or self._client.budget_wait(Use.READ, GRAPHQL):
            return None
        request = self._request(numbers)
        answer = await self._client.ask(request)
        if answer.status in _NOT_HAD:
            self._is_had = False
            return None
        try:
            return self._read(request, answer, numbers)
        except _TooMuch:
            half = len(numbers) // 2
            if half == 0:
                return None
            first = await self._some(numbers[:half])
            second = None if first is None else await self._some(numbers[half:])
            return None if first is None or second is None else first | second

    def _request(self, numbers: Sequence[str]) -> HttpRequest:
        aliases = "\n".join(f"    i{n}: issue(number: {n}) {{ ...Fields }}" for n in numbers)
        query = (
            "query Issues($owner: String!, $name: String!) {\n"
            f"  repository(owner: $owner, name: $name) {{\n{aliases}\n  }}\n}}\n{_FRAGMENT}"
        )
        variables = {"owner": self._repository.owner, "name": self._repository.name}
        what = f"cannot read {len(numbers)} issues of {self._repository.full_name}"
        return graphql_request(self._client, what, query, variables, wanted=_NOT_HAD)

    def _read(
        self, request: HttpRequest, answer: HttpAnswer, numbers: Sequence[str]
    ) -> dict[str, BatchedIssue | None] | None:
        """Return what an answer says; None where it says that REST has to be asked."""
        body: Any = answer.json() if answer.has_body else None
        errors = errors_in(body)
        kinds = {kind for error in errors for kind in kinds_of(error)}
        if kinds & UNKNOWN_FIELDS:
            self._is_had = False
            return None
        if kinds & TOO_MUCH:
            raise _TooMuch
        if kinds & GRAPHQL_LIMITS:
            if self._client.budget_wait(Use.READ, GRAPHQL):
                return None  # REST has a budget of its own
            raise self._client.limit_error(request, answer, messages_of(errors))
        unclear = {alias for error in errors if (alias := _alias_in(error)) is not None}
        if kinds & FORBIDDEN and not unclear:
            self._is_had = False
            return None
        if others := [error for error in errors if _is_about_all(error)]:
            raise self._client.error(TrackerErrorKind.UNAVAILABLE, request, messages_of(others))
        try:
            nodes = body["data"]["repository"] or {}
            clear = [number for number in numbers if f"i{number}" not in unclear]
            return {number: self._found(nodes.get(f"i{number}"), number) for number in clear}
        except (KeyError, TypeError, AttributeError) as exc:
            why = f"the answer has another shape: {exc!r}"
            raise self._client.error(TrackerErrorKind.UNAVAILABLE, request, why) from exc

    def _found(self, node: Any, number: str) -> BatchedIssue | None:
        if node is None:
            return None
        place = str(node["repository"]["nameWithOwner"])
        if (
            str(node["number"]) != number
            or place.casefold() != self._repository.full_name.casefold()
        ):
            return None  # it was transferred
        comments = node["comments"]
        all_came = not comments["pageInfo"]["hasNextPage"]
        return BatchedIssue(
            data=_as_rest(node),
            comments=[_comment_as_rest(comment) for comment in comments["nodes"]]
            if all_came
            else None,
        )


def _as_rest(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an issue as REST tells it."""
    parent, summary = node["parent"], node["issueDependenciesSummary"]
    parent_url = None
    if parent is not None:
        parent_url = f"/repos/{parent['repository']['nameWithOwner']}/issues/{parent['number']}"
    labels = node["labels"] or {"nodes": [], "pageInfo": {"hasNextPage": False}}
    return {
        "number": node["number"],
        "title": node["title"],
        "body": node["body"],
        "html_url": node["url"],
        "state": str(node["state"]).lower(),
        "labels": None if labels["pageInfo"]["hasNextPage"] else labels["nodes"],
        "user": _author_as_rest(node["author"]),
        "assignees": node["assignees"]["nodes"],
        "type": node["issueType"],
        "parent_issue_url": parent_url,
        "issue_dependencies_summary": {
            "blocked_by": summary["blockedBy"],
            "total_blocked_by": summary["totalBlockedBy"],
        },
        "comments": node["comments"]["totalCount"],
        "created_at": node["createdAt"],
        "updated_at": node["updatedAt"],
    }


def _comment_as_rest(comment: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a comment as REST tells it."""
    user = _author_as_rest(comment["author"])
    return {"user": user, "body": comment["body"], "created_at": comment["createdAt"]}


def _author_as_rest(author: Mapping[str, Any] | None) -> Mapping[str, str] | None:
    """Return somebody as REST tells it, which names an App with a word behind its name."""
    if author is None:
        return None
    suffix = "[bot]" if author["__typename"] == "Bot" else ""
    return {"login": f"{author['login']}{suffix}"}


def _alias_in(error: Mapping[str, Any]) -> str | None:
    """Return the alias of the issue of which an error is about a part, or which is forbidden; None
    for an issue that is not there, and for errors about all."""
    path = error.get("path")
    if not isinstance(path, list) or len(path) < 2 or path[0] != "repository":
        return None
    is_missing = len(path) == 2 and "NOT_FOUND" in kinds_of(error)
    return None if is_missing else str(path[1])


def _is_about_all(error: Mapping[str, Any]) -> bool:
    return _alias_in(error) is None and "NOT_FOUND" not in kinds_of(error)
