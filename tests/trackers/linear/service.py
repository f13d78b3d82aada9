"""A workspace of Linear in memory, asked over GraphQL by its published schema.

What is not known of Linear is a switch, so that tests can have it both ways: what a repeated id of
a comment is answered (``repeats``), whether complexity counts by what is asked for
(``counts_asked``), whether errors come with 200 or 400 (``error_status``).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from graphql import DocumentNode, GraphQLError, execute_sync

from tests.trackers.linear.filters import Unknown, matches
from tests.trackers.linear.schema import complexity, operation_of, parsed, schema
from tests.trackers.server.exchange import Received, Reply
from tests.trackers.server.people import Crowd

API_KEY = "lin_api_" + "7fK2mQ9xW4"
OAUTH_TOKEN = "lin_oauth_" + "3bV8nR5tZ1"
MOST_POINTS = 10_000
STATES = (
    ("Backlog", "backlog"),
    ("Todo", "unstarted"),
    ("In Progress", "started"),
    ("Review", "started"),
    ("Ready", "unstarted"),
    ("Check", "started"),
    ("Done", "completed"),
    ("Shipped", "completed"),
    ("Dropped", "canceled"),
)

Node = dict[str, Any]


class Refused(GraphQLError):
    """An error as Linear tells it."""

    def __init__(self, message: str, kind: str, code: str, said: str = "") -> None:
        told = {"type": kind, "code": code, "userPresentableMessage": said or message}
        super().__init__(message, extensions=told)


def not_found(what: str) -> Refused:
    """Return the error for what is not there, which has no type of its own."""
    return Refused(f"Entity not found: {what}", "invalid input", "INPUT_ERROR")


@dataclass
class LinearService:
    """Teams, issues, comments; and switches for what goes wrong.

    ``down``: 503 to all. ``retry_after``: every request is limited, for so many seconds.
    ``stuck``: every page is the first. ``scopes``: what the key may do. ``hidden_teams``: keys of
    teams that it may not see. ``may_make_labels``: whether it may.
    ``operations`` are the names of the documents that were sent.
    """

    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    crowd: Crowd = field(default_factory=Crowd)
    down: bool = False
    retry_after: int | None = None
    scopes: frozenset[str] = frozenset({"read", "write", "comments:create"})
    hidden_teams: set[str] = field(default_factory=set)
    repeats: str = "error"  # "error", "same"
    counts_asked: bool = False
    error_status: int = 200
    may_make_labels: bool = True
    requests_left: int = 5000
    points_left: int = 3_000_000
    dead: bool = False
    stuck: bool = False
    operations: list[str] = field(default_factory=list)
    teams: dict[str, Node] = field(default_factory=dict)
    issues: dict[str, Node] = field(default_factory=dict)
    comments: dict[str, Node] = field(default_factory=dict)
    labels: list[Node] = field(default_factory=list)
    points: list[float] = field(default_factory=list)
    _number: int = 0

    # What the world does

    def add_team(self, key: str, states: Sequence[tuple[str, str]] = STATES) -> Node:
        """Add a team; the same names of states have other ids in every team."""
        team: Node = {"id": str(uuid.uuid4()), "key": key, "name": f"Team {key}"}
        team["state_list"] = [
            {
                "id": str(uuid.uuid4()),
                "name": name,
                "type": kind,
                "position": float(place),
                "team": team,
            }
            for place, (name, kind) in enumerate(states)
        ]
        team["states"] = lambda info, **args: _page(team["state_list"], args)
        self.teams[key] = team
        return team

    def state(self, name: str, team: str = "ENG") -> Node:
        """Return a state of a team."""
        return next(s for s in self.teams[team]["state_list"] if s["name"] == name)

    def put(self, issue_id: str | None = None, *, team: str = "ENG", **fields: Any) -> Node:
        """Add an issue, or change it as a person would; ``state`` is a name, ``labels`` names."""
        known = self.issues.get(issue_id or "")
        issue = known or self._new(issue_id or str(uuid.uuid4()), team)
        issue["updatedAt"] = self.now()
        if "state" in fields:
            fields["state"] = self.state(fields["state"], issue["team"]["key"])
        if "labels" in fields:
            names = fields.pop("labels")
            fields["label_list"] = [self.label(name) for name in names]
        issue.update(fields)
        self.issues[issue["id"]] = issue
        return issue

    def label(self, name: str, team: str | None = None, **fields: Any) -> Node:
        """Return the label of that name of the workspace or a team, which is made if missing."""
        of_team = None if team is None else self.teams[team]
        for label in self.labels:
            if label["name"] == name and label["team"] is of_team and not fields:
                return label
        plain = {"id": str(uuid.uuid4()), "isGroup": False, "retiredAt": None}
        label = {**plain, "name": name, "team": of_team, **fields}
        self.labels.append(label)
        return label

    def labels_of(self, issue_id: str) -> list[str]:
        """Return the names of an issue's labels."""
        return [label["name"] for label in self.issues[issue_id]["label_list"]]

    def move(self, issue_id: str, team: str) -> None:
        """Move an issue to another team: its id stays, its identifier does not."""
        issue = self.issues[issue_id]
        state = issue["state"]["name"]
        issue["previousIdentifiers"] = [*issue["previousIdentifiers"], issue["identifier"]]
        issue |= {"team": self.teams[team], "identifier": f"{team}-{int(issue['number'])}"}
        self.put(issue_id, state=state)

    def trash(self, issue_id: str) -> None:
        """Put an issue into the trash."""
        self.put(issue_id, trashed=True, archivedAt=self.now())

    def block(self, issue_id: str, by: str, kind: str = "blocks") -> None:
        """Relate two issues; that touches neither."""
        issue, other = self.issues[issue_id], self.issues[by]
        issue["inverse"].append({"id": str(uuid.uuid4()), "type": kind, "issue": other})

    def say(self, issue_id: str, body: str, **fields: Any) -> Node:
        """Add a comment; that does not touch the issue."""
        at = fields.pop("createdAt", None) or self.now()
        comment = {
            "id": str(uuid.uuid4()),
            "body": body,
            "createdAt": at,
            "updatedAt": at,
            "user": self.viewer,
            "botActor": None,
            "externalUser": None,
            "issue_id": issue_id,
            **fields,
        }
        self.comments[comment["id"]] = comment
        return comment

    def said(self, issue_id: str) -> list[str]:
        """Return the comments on an issue, in order."""
        return [c["body"] for c in self.comments.values() if c["issue_id"] == issue_id]

    def now(self) -> str:
        """Return a time that is later than every other one."""
        self._number += 1
        return text_of(self.clock() + timedelta(milliseconds=self._number))

    viewer: Node = field(
        default_factory=lambda: {
            "id": "user-sortie",
            "email": "sortie@example.org",
            "name": "Sortie",
            "displayName": "sortie",
            "admin": False,
            "guest": False,
            "app": False,
        }
    )

    def _new(self, issue_id: str, team: str) -> Node:
        number, at = len(self.issues) + 1, self.now()
        issue: Node = {
            "id": issue_id,
            "identifier": f"{team}-{number}",
            "number": float(number),
            "title": f"Issue {number}",
            "description": None,
            "priority": 0.0,
            "url": f"https://linear.app/acme/issue/{team}-{number}",
            "branchName": f"sortie/{team.lower()}-{number}",
            "createdAt": at,
            "updatedAt": at,
            "archivedAt": None,
            "trashed": None,
            "previousIdentifiers": [],
            "team": self.teams[team],
            "state": self.state("Todo", team),
            "creator": a_user("ann"),
            "botActor": None,
            "externalUserCreator": None,
            "assignee": None,
            "parent": None,
            "label_list": [],
            "inverse": [],
            "moves": [],  # the states into which it was moved over the API
        }
        issue["labels"] = lambda info, **args: _page(issue["label_list"], args)
        issue["inverseRelations"] = lambda info, **args: _page(issue["inverse"], args)
        issue["history"] = lambda info, **args: _page(self._history_of(issue_id), args)
        issue["comments"] = lambda info, **args: _page(self._comments_of(issue_id), args)
        return issue

    def _history_of(self, issue_id: str) -> list[Node]:
        return [
            {
                "createdAt": text_of(at),
                "updatedAt": text_of(at),
                "fromTitle": "before" if what == "title" else None,
                "updatedDescription": what == "description",
                "descriptionUpdatedBy": [a_user(who)] if what == "description" else None,
                "actor": a_user(who),
                "addedLabels": [{"name": name}] if what == "add" else None,
                "removedLabels": [{"name": name}] if what == "remove" else None,
            }
            for what, who, at, name in reversed(self.crowd.past(issue_id))
        ]

    def _comments_of(self, issue_id: str) -> list[Node]:
        """Return comments, the last changed first, as Linear has them in both of its orders."""
        found = [c for c in self.comments.values() if c["issue_id"] == issue_id]
        found.sort(key=lambda comment: str(comment["updatedAt"]))
        return found[::-1]

    # The service

    def answer(self, request: Received) -> Reply:
        """Perform a request and return what it is answered."""
        if self.down:
            return Reply(status=503, body=b"upstream connect error", sound=False)
        if (refused := self._unsigned(request)) is not None:
            return refused
        body = request.json
        document, variables = parsed(body["query"]), body.get("variables") or {}
        name = operation_of(document).name
        self.operations.append(name.value if name is not None else "")
        if self.retry_after is not None:
            return self._limited(self.retry_after)
        return self._performed(document, variables)

    def _unsigned(self, request: Received) -> Reply | None:
        given = request.headers.get("authorization", "")
        if given.startswith("Bearer lin_api_"):
            said = "It looks like you're trying to use an API key as a Bearer token."
            return _errors(400, Refused(said, "authentication error", "AUTHENTICATION_ERROR"))
        if self.dead or given not in (API_KEY, f"Bearer {OAUTH_TOKEN}"):
            said = "Authentication required, not authenticated"
            return _errors(401, Refused(said, "authentication error", "AUTHENTICATION_ERROR"))
        return None

    def _limited(self, seconds: int) -> Reply:
        error = Refused("Rate limit exceeded", "ratelimited", "RATELIMITED")
        reply = _errors(400, error)
        headers = {**self._headers(0.0), "Retry-After": str(seconds)}
        return Reply(status=reply.status, body=reply.body, headers=headers)

    def _performed(self, document: DocumentNode, variables: Mapping[str, Any]) -> Reply:
        points = complexity(document, variables)
        if not self.counts_asked:
            points = min(points, 180.0)
        self.points.append(points)
        if points > MOST_POINTS:
            error = Refused("Query too complex", "invalid input", "INPUT_ERROR")
            return Reply(status=400, body=_errors(400, error).body, headers=self._headers(1.0))
        self.requests_left -= 1
        self.points_left -= int(points)
        root = _Mutations(self) if _is_change(document) else _Queries(self)
        done = execute_sync(
            schema(), document, root_value=root.fields(), variable_values=dict(variables)
        )
        if done.errors:
            unforeseen = [e.original_error for e in done.errors if _is_ours(e)]
            if unforeseen:
                raise AssertionError("; ".join(map(str, done.errors)))
            reply = _errors(self.error_status, *done.errors)
            return Reply(status=reply.status, body=reply.body, headers=self._headers(points))
        return Reply(body={"data": done.data}, headers=self._headers(points))

    def _headers(self, points: float) -> dict[str, str]:
        reset = str(int((self.clock() + timedelta(minutes=30)).timestamp() * 1000))
        return {
            "X-Complexity": f"{points:g}",
            "X-RateLimit-Requests-Limit": "5000",
            "X-RateLimit-Requests-Remaining": str(self.requests_left),
            "X-RateLimit-Requests-Reset": reset,
            "X-RateLimit-Complexity-Limit": "3000000",
            "X-RateLimit-Complexity-Remaining": str(self.points_left),
            "X-RateLimit-Complexity-Reset": reset,
        }


class _Queries:
    """The fields of the query type that are provided for."""

    def __init__(self, service: LinearService) -> None:
        self._service = service

    def fields(self) -> dict[str, Any]:
        return {
            "issues": self.issues,
            "users": self.users,
            "issueLabels": self.labels,
            "teams": self.teams,
            "comments": self.comments,
            "viewer": self._service.viewer,
            "organization": {"name": "Acme", "urlKey": "acme"},
            "rateLimitStatus": {
                "limits": [
                    {
                        "type": "requests",
                        "allowedAmount": 5000.0,
                        "remainingAmount": float(self._service.requests_left),
                        "reset": 1.0,
                    }
                ]
            },
        }

    def issues(self, info: Any, **args: Any) -> Node:
        found = [
            issue
            for issue in self._service.issues.values()
            if issue["team"]["key"] not in self._service.hidden_teams
            and (args.get("includeArchived") or issue["archivedAt"] is None)
            and _passes(issue, args)
        ]
        order = args.get("orderBy") or "createdAt"
        found.sort(key=lambda issue: (str(issue[order]), issue["number"]), reverse=True)
        return _page(found, args | ({"after": None} if self._service.stuck else {}))

    def users(self, info: Any, **args: Any) -> Node:
        crowd = self._service.crowd
        asked = args["filter"]["email"]["eqIgnoreCase"]
        crowd.asked.append(asked)
        if crowd.refuses:
            raise Refused("Invalid scope: `read` required", "forbidden", "FORBIDDEN")
        found = [a_user(name) for name in crowd.rights]
        return _page([user for user in found if user["email"] == asked], args)

    def labels(self, info: Any, **args: Any) -> Node:
        return _page([label for label in self._service.labels if _passes(label, args)], args)

    def teams(self, info: Any, **args: Any) -> Node:
        shown = [t for k, t in self._service.teams.items() if k not in self._service.hidden_teams]
        return _page([team for team in shown if _passes(team, args)], args)

    def comments(self, info: Any, **args: Any) -> Node:
        return _page([c for c in self._service.comments.values() if _passes(c, args)], args)


class _Mutations:
    """The fields of the mutation type that are provided for."""

    def __init__(self, service: LinearService) -> None:
        self._service = service

    def fields(self) -> dict[str, Any]:
        return {
            "issueUpdate": self.update,
            "commentCreate": self.comment,
            "issueLabelCreate": self.label,
        }

    def update(self, info: Any, id: str, input: Mapping[str, Any]) -> Node:  # noqa: A002
        self._need("write")
        issue = self._issue(id)
        if unknown := set(input) - {"stateId", "addedLabelIds", "removedLabelIds"}:
            raise AssertionError(f"the test server changes no {sorted(unknown)}")
        states = {state["id"]: state for state in issue["team"]["state_list"]}
        changes: Node = {"label_list": self._labels_after(issue, input)}
        if "stateId" in input:
            if input["stateId"] not in states:
                raise Refused("Argument Validation Error", "invalid input", "INPUT_ERROR")
            name = states[input["stateId"]]["name"]
            changes |= {"state": name, "moves": [*issue["moves"], name]}
        self._service.put(issue["id"], **changes)
        return {"success": True, "issue": issue, "lastSyncId": 1.0}

    def _labels_after(self, issue: Node, input: Mapping[str, Any]) -> list[Node]:  # noqa: A002
        removed = input.get("removedLabelIds", [])
        left = [label for label in issue["label_list"] if label["id"] not in removed]
        usable = {
            label["id"]: label
            for label in self._service.labels
            if label["team"] in (None, issue["team"])
            and not label["isGroup"]
            and label["retiredAt"] is None
        }
        for label_id in input.get("addedLabelIds", []):
            if label_id not in usable or label_id in [label["id"] for label in left]:
                raise Refused("Incorrect label", "invalid input", "INPUT_ERROR")
            left.append(usable[label_id])
        return left

    def label(self, info: Any, input: Mapping[str, Any]) -> Node:  # noqa: A002
        self._need("write")
        if not self._service.may_make_labels:
            raise Refused("You may not create labels", "forbidden", "FORBIDDEN")
        team = next(t for t in self._service.teams.values() if t["id"] == input["teamId"])
        for label in self._service.labels:
            alike = label["name"].lower() == input["name"].lower()
            if alike and label["team"] in (None, team):
                raise Refused("Duplicate label name", "invalid input", "INPUT_ERROR")
        made = self._service.label(input["name"], team["key"], id=input["id"])
        return {"success": True, "issueLabel": made, "lastSyncId": 1.0}

    def comment(self, info: Any, input: Mapping[str, Any]) -> Node:  # noqa: A002
        self._need("comments:create")
        issue, comment_id = self._issue(input["issueId"]), uuid.UUID(input["id"])
        if comment_id.version != 4:
            raise Refused("id must be a UUID", "invalid input", "INPUT_ERROR")
        known = self._service.comments.get(str(comment_id))
        if known is not None and self._service.repeats == "error":
            raise Refused("Entity with this id already exists", "invalid input", "INPUT_ERROR")
        body = input["body"]
        comment = known or self._service.say(issue["id"], body, id=str(comment_id))
        return {"success": True, "comment": comment, "lastSyncId": 1.0}

    def _need(self, scope: str) -> None:
        if scope not in self._service.scopes and "write" not in self._service.scopes:
            raise Refused(f"Invalid scope: `{scope}` required", "forbidden", "FORBIDDEN")

    def _issue(self, name: str) -> Node:
        found = self._service.issues.get(name)
        if found is None or found["trashed"]:
            raise not_found(f"Issue - Could not find referenced Issue {name}.")
        return found


def _passes(item: Node, args: Mapping[str, Any]) -> bool:
    try:
        return matches(item, args.get("filter") or {})
    except Unknown as exc:
        raise AssertionError(f"the test server does not filter by {exc}") from exc


def _page(items: Sequence[Node], args: Mapping[str, Any]) -> Node:
    """Return a page of a list that may change between two pages: its cursor is an item's id."""
    first = args.get("first") or 50
    if not 1 <= first <= 250:
        raise Refused("Argument Validation Error", "invalid input", "INPUT_ERROR")
    start = 0
    if after := args.get("after"):
        ids = [item.get("id") for item in items]
        wanted = after.removeprefix("cursor:")
        start = ids.index(wanted) + 1 if wanted in ids else len(items)
    shown = items[start : start + first]
    more = start + first < len(items)
    end = f"cursor:{shown[-1].get('id')}" if shown else None
    return {"nodes": shown, "pageInfo": {"hasNextPage": more, "endCursor": end}}


def a_user(name: str) -> Node:
    """Return a member of the workspace."""
    return {
        "id": f"user-{name}",
        "email": f"{name}@example.org",
        "name": name,
        "displayName": name,
        "active": True,
        "guest": False,
        "app": False,
    }


def _errors(status: int, *errors: GraphQLError) -> Reply:
    told = [{"message": e.message, "extensions": dict(e.extensions or {})} for e in errors]
    return Reply(status=status, body={"errors": told, "data": None})


def _is_ours(error: GraphQLError) -> bool:
    return not isinstance(error.original_error, Refused)


def _is_change(document: DocumentNode) -> bool:
    return operation_of(document).operation.value == "mutation"


def text_of(time: datetime) -> str:
    """Write a time as Linear does."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
