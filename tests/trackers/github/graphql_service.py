"""GitHub's GraphQL API over the same issues as its REST API, and what questions are held to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphql import GraphQLError, GraphQLSchema, build_schema, execute_sync

from tests.trackers.github.shapes import Json
from tests.trackers.server.contract import OpenApiContract, Violation
from tests.trackers.server.exchange import Received, Reply
from tests.trackers.server.graphql_documents import document_of

if TYPE_CHECKING:
    from tests.trackers.github.service import GitHubService

PATH = "/api/graphql"
NEW_FIELDS = ("issueType", "parent", "issueDependenciesSummary")
"""Fields that servers of earlier versions do not have."""

MOST = 100


@cache
def schema() -> GraphQLSchema:
    """Return the schema of what is used."""
    found = build_schema(Path(__file__).with_name("issues.graphql").read_text())
    for name in ("Actor", "IssueTimelineItems"):
        found.type_map[name].resolve_type = lambda value, *_: value["kind"]  # type: ignore[attr-defined]
    return found


class GitHubContract:
    """Exchanges held to GitHub's description of REST, or to the schema of GraphQL."""

    def __init__(self, rest: OpenApiContract) -> None:
        self._rest = rest

    def check_request(self, request: Received) -> None:
        """Raise Violation where a request is not as described."""
        if request.path != PATH:
            return self._rest.check_request(request)
        if request.method != "POST" or set(request.json) - {"query", "variables"}:
            raise Violation(f"{request}: no question")
        document_of(request.json["query"], schema())
        return None

    def check_answer(self, request: Received, reply: Reply) -> None:
        """Raise Violation where an answer is not as described; what is executed is, always."""
        if request.path != PATH:
            self._rest.check_answer(request, reply)


def answered(service: GitHubService, request: Received) -> Reply:
    """Return the answer to a question."""
    document = document_of(request.json["query"], schema())
    if service.graphql == "old":
        errors = [_unknown(name) for name in NEW_FIELDS if f" {name} " in request.json["query"]]
        if errors:
            return Reply(body={"errors": errors})
    if service.graphql_most < request.json["query"].count("issue(number:"):
        told = {"type": "RESOURCE_LIMITS_EXCEEDED", "message": "Resource limits exceeded."}
        return Reply(body={"data": None, "errors": [told]})
    done = execute_sync(
        schema(), document, _Root(service).root(), variable_values=request.json["variables"]
    )
    body: dict[str, Json] = {"data": done.data}
    if done.errors:
        body["errors"] = [_shown(error) for error in done.errors]
    return Reply(body=body)


def _unknown(name: str) -> Json:
    return {
        "path": ["fragment Fields", name],
        "extensions": {"code": "undefinedField", "typeName": "Issue", "fieldName": name},
        "message": f"Field '{name}' doesn't exist on type 'Issue'",
    }


def _shown(error: GraphQLError) -> Json:
    if error.extensions is None or "type" not in error.extensions:
        raise AssertionError(f"the service broke: {error}") from error
    return {"type": error.extensions["type"], "path": error.path, "message": error.message}


class _Root:
    def __init__(self, service: GitHubService) -> None:
        self._service = service

    def root(self) -> Mapping[str, Any]:
        return {"repository": self._repository}

    def _repository(self, _info: Any, owner: str, name: str, **_: Any) -> Json:
        place = f"{owner}/{name}"
        ours = self._service.repository.partition("/repos/")[2]
        if place.casefold() != ours.casefold() or not self._service.visible:
            raise _not_found(f"Could not resolve to a Repository with the name '{place}'.")
        return {"nameWithOwner": ours, "issue": self._issue}

    def _issue(self, _info: Any, number: int) -> Json:
        item = self._service.items.get(number)
        if item is None or item.get("pull_request") is not None:
            raise _not_found(f"Could not resolve to an Issue with the number of {number}.")
        return self._node(number, item)

    def _node(self, number: int, item: Json) -> Json:
        shown, service = self._service._shown(number), self._service
        summary = shown.get("issue_dependencies_summary", {})
        ours = service.repository.partition("/repos/")[2]
        parent = item.get("parent_issue_url")
        kind = item.get("type")
        edits = [
            {"editor": _named(who), "editedAt": _time(at)}
            for what, who, at in service.crowd.edits.get(str(number), [])
            if what == "description"
        ]
        labels = [
            {"name": label if isinstance(label, str) else label["name"]} for label in item["labels"]
        ]
        return {
            "number": number,
            "title": item["title"],
            "body": item["body"] or "",
            "url": item["html_url"],
            "state": item["state"].upper(),
            "createdAt": item["created_at"],
            "updatedAt": item["updated_at"],
            "repository": {"nameWithOwner": ours},
            "labels": _connection(labels),
            "author": _actor(item["user"]),
            "lastEditedAt": edits[-1]["editedAt"] if edits else None,
            "editor": edits[-1]["editor"] if edits else None,
            "userContentEdits": _connection(edits),
            "timelineItems": _timeline(service, number),
            "assignees": _connection(item["assignees"]),
            "issueType": None if kind is None else {"name": kind["name"]},
            "parent": None if parent is None else _parent(parent),
            "issueDependenciesSummary": {
                "blockedBy": summary.get("blocked_by", 0),
                "totalBlockedBy": summary.get("total_blocked_by", 0),
            },
            "comments": _connection([_comment(c) for c in service.comments.get(number, [])]),
        }


def _parent(address: str) -> Json:
    *_, owner, name, _, number = address.split("/")
    return {"number": int(number), "repository": {"nameWithOwner": f"{owner}/{name}"}}


def _comment(comment: Json) -> Json:
    return {
        "author": _actor(comment["user"]),
        "body": comment["body"],
        "createdAt": comment["created_at"],
    }


def _actor(user: Json) -> Json:
    if user is None:
        return None
    login = user["login"]
    kind = "Bot" if login.endswith("[bot]") else "User"
    return {"kind": kind, "login": login.removesuffix("[bot]")}


def _named(login: str) -> Json:
    return {"kind": "User", "login": login}


def _time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _timeline(service: GitHubService, number: int) -> Callable[..., Json]:
    kinds = {"add": "LabeledEvent", "title": "RenamedTitleEvent"}
    events = [
        {
            "kind": kinds[what],
            "actor": _named(who),
            "createdAt": _time(at),
            "label": {"name": name},
        }
        for what, who, at, name in service.crowd.past(number)
        if what in kinds
    ]

    def timeline(_info: Any, last: int, **_: Any) -> Json:
        page = {"hasNextPage": False, "hasPreviousPage": len(events) > last}
        return {"nodes": events[-last:], "pageInfo": page}

    return timeline


def _connection(nodes: list[Json]) -> Callable[..., Json]:
    def connection(_info: Any, first: int, **_: Any) -> Json:
        assert 1 <= first <= MOST
        return {
            "nodes": nodes[:first],
            "totalCount": len(nodes),
            "pageInfo": {"hasNextPage": len(nodes) > first},
        }

    return connection


def _not_found(message: str) -> GraphQLError:
    return GraphQLError(message, extensions={"type": "NOT_FOUND"})
