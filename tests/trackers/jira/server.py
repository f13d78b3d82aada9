"""A Jira in memory, cloud or data center: one project in full, others as far as links need them.

What is asked for by id is as it is; what is searched for is as the index has it, which may be
behind (``lagging``).
"""

from __future__ import annotations

import copy
import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.trackers.jira.jql import JqlError, Query, parse
from tests.trackers.server.exchange import Received, Reply
from tests.trackers.server.people import Crowd

Json = Any

CATEGORIES = {"todo": "new", "doing": "indeterminate", "done": "done"}
ME = "5b10a2844c20165700ede21g"
API_KEY = "sortie@example.org:jira-token-7c0ffee"
PAT = "jira-pat-7c0ffee"


@dataclass
class Comment:
    """A comment; ``body`` is in the edition's format."""

    id: int
    author: str
    body: Json
    created: datetime | None
    properties: list[Json] = field(default_factory=list)
    visibility: Json = None
    account: str = "someone"


@dataclass
class Record:
    """An issue. ``summary`` None: it is spoiled. ``links`` are (name of the type, key) of what it
    waits for, and ``blocks`` the other way round."""

    id: int
    key: str
    summary: str | None = "Title"
    description: Json = None
    status: str = "Todo"
    priority: str | None = None
    labels: list[str] = field(default_factory=list)
    creator: str | None = "Ann"
    assignee: str | None = None
    issue_type: str | None = "Task"
    parent: str | None = None
    links: list[tuple[str, str]] = field(default_factory=list)
    blocks: list[str] = field(default_factory=list)
    created: datetime = datetime(2026, 5, 1, 12, tzinfo=UTC)
    updated: datetime = datetime(2026, 5, 1, 12, tzinfo=UTC)
    comments: list[Comment] = field(default_factory=list)
    project: str = "PROJ"
    hidden: bool = False


@dataclass
class Way:
    """A transition: ``source`` None is any status. ``fields`` are what its screen asks for."""

    id: int
    to: str
    source: str | None = None
    fields: dict[str, Json] = field(default_factory=dict)
    name: str = ""


@dataclass
class JiraService:
    """The service; switches are plain attributes.

    ``lagging``: the index stays as it is. ``page_limit``: issues of a page at most. ``anonymous``:
    the key is dead, which an open Jira does not say but for "who am I". ``statuses_checked``: a
    search for an unknown status is refused, and finds nothing otherwise. ``may_transition``: or
    the list of transitions is empty. ``may_edit``: or no label is changed.
    ``has_labels_on_screen``: or who edits an issue knows no field of labels.
    ``tells_properties``: lists hold properties where asked. ``newest_first``: the order asked for
    is kept. ``sees``: called before each search page.
    """

    cloud: bool = True
    statuses: dict[str, str] = field(default_factory=dict)
    ways: list[Way] = field(default_factory=list)
    issues: dict[int, Record] = field(default_factory=dict)
    projects: dict[str, int] = field(default_factory=lambda: {"PROJ": 10000, "OTHER": 10001})
    lagging: bool = False
    page_limit: int = 1000
    anonymous: bool = False
    statuses_checked: bool = True
    missing_ids_refused: bool = True
    may_transition: bool = True
    may_edit: bool = True
    has_labels_on_screen: bool = True
    tells_properties: bool = True
    newest_first: bool = True
    tells_last: bool = True
    bulk_errors: dict[int, str] = field(default_factory=dict)
    limited: int | None = None
    crowd: Crowd = field(default_factory=Crowd)
    down: bool = False
    searches: list[str] = field(default_factory=list)
    budget: dict[str, str] = field(default_factory=dict)
    sees: Callable[[int], object] = lambda start: None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    browse: str = "https://jira.example.org"
    _index: dict[int, Record] = field(default_factory=dict)
    _comment_ids: int = 100

    def __post_init__(self) -> None:
        self.statuses = self.statuses or {
            "Todo": "new",
            "In Progress": "indeterminate",
            "Review": "indeterminate",
            "Done": "done",
            "Dropped": "done",
        }
        self.ways = self.ways or [
            Way(id=n * 10 + 1, to=name) for n, name in enumerate(self.statuses, 1)
        ]

    @property
    def api(self) -> str:
        return "/rest/api/3" if self.cloud else "/rest/api/2"

    def put(self, number: int, **changes: Any) -> Record:
        """Add the issue PROJ-``number``, or change it as a person would, without a new time."""
        record = self.issues.get(10000 + number)
        if record is None:
            key = f"PROJ-{number}"
            record = self.issues[10000 + number] = Record(id=10000 + number, key=key)
        for name, value in changes.items():
            assert hasattr(record, name)
            setattr(record, name, value)
        self._noted(record)
        return record

    def edit(self, number: int, **changes: Any) -> Record:
        """Change an issue as a person would, now."""
        return self.put(number, **{"updated": self.now(), **changes})

    def lose(self, number: int) -> None:
        """Delete an issue."""
        del self.issues[10000 + number]
        self.index()

    def index(self) -> None:
        """Bring the index up to date, unless it lags."""
        if not self.lagging:
            self._index = copy.deepcopy(self.issues)

    def _noted(self, record: Record) -> None:
        """Have the index know an issue as it is, unless it lags."""
        if not self.lagging:
            self._index[record.id] = copy.deepcopy(record)

    def add_comment(self, record: Record, body: Json, author: str = "ann", **more: Any) -> Comment:
        self._comment_ids += 1
        made = Comment(id=self._comment_ids, author=author, body=body, created=self.now(), **more)
        record.comments.append(made)
        return made

    def answer(self, request: Received) -> Reply:
        """See Service."""
        if self.limited is not None:
            headers = {"Retry-After": str(self.limited), "RateLimit-Reason": "jira-burst-based"}
            told = _errors("Rate limit exceeded.")
            return Reply(status=429, headers=headers, body=told, sound=False)
        if self.down:
            return Reply(status=503, body=_errors("Down for maintenance."), sound=False)
        if not self._is_signed(request):
            return Reply(status=401, body=_errors("Client must be authenticated."), sound=False)
        reply = self._performed(request)
        return Reply(
            status=reply.status,
            body=reply.body,
            headers={**self.budget, **reply.headers},
            sound=reply.sound,
        )

    def _is_signed(self, request: Received) -> bool:
        basic = "Basic " + b64encode(API_KEY.encode()).decode()
        return request.headers.get("authorization") in (basic, f"Bearer {PAT}")

    def _performed(self, request: Received) -> Reply:
        if request.path == "/rest/api/2/serverInfo":
            return Reply(body=self._server_info())
        if not request.path.startswith(self.api + "/"):
            return Reply(status=404, body=_errors("No such route."), sound=False)
        parts = request.segments[3:]
        match request.method, *parts:
            case "GET", "serverInfo":
                return Reply(body=self._server_info())
            case "GET", "myself":
                return self._myself()
            case "GET", "project", name:
                return self._project(name)
            case "GET", "project", name, "statuses":
                return self._statuses(name)
            case "GET", "mypermissions":
                return self._permissions(request)
            case "GET", "issueLinkType":
                return Reply(body={"issueLinkTypes": [_LINK_TYPE, _RELATES]})
            case "POST", "search", "jql" if self.cloud:
                return self._search(request.json, self._cloud_page)
            case "POST", "search" if not self.cloud:
                return self._search(request.json, self._data_center_page)
            case "POST", "jql", "parse" if self.cloud:
                return self._parsed(request.json)
            case "POST", "issue", "bulkfetch" if self.cloud:
                return self._bulk(request.json)
            case "POST", "comment", "list" if self.cloud:
                return self._comments_by_id(request.json["ids"])
            case "GET", "user", "assignable", "search":
                return self._assignable(request)
            case _, "issue", name, *rest:
                return self._about_issue(request, name, rest)
        return Reply(status=404, body=_errors("No such route."), sound=False)

    def _assignable(self, request: Received) -> Reply:
        asked = request.query["accountId" if self.cloud else "username"]
        self.crowd.asked.append(asked)
        if self.crowd.refuses:
            return Reply(status=403, body=_errors("You may not browse users."), sound=False)
        found = [self._person(name) for name in self.crowd.rights]
        # By the beginning of the name, in a data center.
        key = "accountId" if self.cloud else "name"
        fits = [
            p for p in found if p[key].startswith(asked) and (not self.cloud or p[key] == asked)
        ]
        return Reply(body=fits)

    def _person(self, name: str) -> Json:
        return self._user(name, f"id-{name}")

    def _histories(self, record: Record) -> list[Json]:
        fields = {"add": "labels", "remove": "labels", "title": "summary"}
        return [
            {
                "id": str(at),
                "author": self._person(who),
                "created": stamp(done),
                "items": [
                    {
                        "field": fields.get(what, what),
                        "fromString": f"before {name}" if what == "remove" else "before",
                        "toString": f"before {name}" if what == "add" else "before",
                    }
                ],
            }
            for at, (what, who, done, name) in enumerate(self.crowd.past(record.id))
        ]

    def _server_info(self) -> Json:
        info = {
            "baseUrl": self.browse,
            "version": "1001.0.0" if self.cloud else "10.3.4",
            "deploymentType": "Cloud" if self.cloud else "Server",
            "serverTime": stamp(self.now()),
            "serverTitle": "Jira",
        }
        return {**info, "displayUrl": self.browse} if self.cloud else info

    def _myself(self) -> Reply:
        if self.anonymous:
            return Reply(status=401, body=_errors("You are not authenticated."), sound=False)
        return Reply(body=self._user("sortie", ME))

    def _user(self, name: str, account: str) -> Json:
        if self.cloud:
            return {"accountId": account, "displayName": name, "active": True}
        return {"key": account, "name": name, "displayName": name, "active": True}

    def _project(self, name: str) -> Reply:
        key = next((k for k, i in self.projects.items() if name in (k, str(i))), None)
        if key is None or self.anonymous:
            return Reply(status=404, body=_errors(f"No project could be found with key '{name}'."))
        return Reply(body={"id": str(self.projects[key]), "key": key, "name": f"Project {key}"})

    def _statuses(self, name: str) -> Reply:
        found = self._project(name)
        if found.status != 200:
            return found
        statuses = [self._status(status) for status in self.statuses]
        self_ = f"{self.browse}{self.api}/issuetype/3"
        types = [("3", "Task"), ("4", "Bug")]
        return Reply(
            body=[
                {"id": i, "name": n, "self": self_, "subtask": False, "statuses": statuses}
                for i, n in types
            ]
        )

    def _status(self, name: str) -> Json:
        category = self.statuses.get(name, "done")
        return {"id": str(len(name)), "name": name, "statusCategory": {"id": 2, "key": category}}

    def _permissions(self, request: Received) -> Reply:
        every = "TRANSITION_ISSUES,ADD_COMMENTS,EDIT_ISSUES"
        asked = (request.query.get("permissions") or every).split(",")
        return Reply(
            body={
                "permissions": {
                    key: {
                        "key": key,
                        "name": key.title(),
                        "havePermission": {
                            "TRANSITION_ISSUES": self.may_transition,
                            "EDIT_ISSUES": self.may_edit,
                        }.get(key, True),
                    }
                    for key in asked
                }
            }
        )

    # Searches

    def _search(self, body: Json, page: Callable[[Json, Query, list[Record]], Reply]) -> Reply:
        self.searches.append(body["jql"])
        try:
            query = parse(body["jql"], self._fields())
        except JqlError as exc:
            return Reply(status=400, body=_errors(str(exc)))
        current = {int(i) for i in body.get("reconcileIssues", [])}
        known = {i: r for i, r in self._index.items() if i not in current}
        known |= {i: self.issues[i] for i in current if i in self.issues}
        shown = (r for r in known.values() if not self.anonymous and not r.hidden)
        try:
            found = [record for record in shown if query.test(vars(record))]
        except JqlError as exc:
            return Reply(status=400, body=_errors(str(exc)))
        found.sort(key=lambda record: (record.created, record.id))
        return page(body, query, found)

    def _fields(self) -> dict[str, Callable[[Any, str, str], bool]]:
        def status(record: Any, operator: str, value: str) -> bool:
            known = {name.casefold() for name in self.statuses}
            if value.casefold() not in known and self.statuses_checked:
                raise JqlError(f"The value '{value}' does not exist for the field 'status'.")
            return _equal(operator, record["status"].casefold(), value.casefold())

        def project(record: Any, operator: str, value: str) -> bool:
            named = self._project(value)
            if named.status != 200:
                raise JqlError(f"The value '{value}' does not exist for the field 'project'.")
            return _equal(operator, record["project"], named.body["key"])

        def issue_id(record: Any, operator: str, value: str) -> bool:
            if self.missing_ids_refused and int(value) not in self.issues:
                raise JqlError(f"An issue with id '{value}' does not exist for field 'id'.")
            return _equal(operator, str(record["id"]), value)

        def updated(record: Any, operator: str, value: str) -> bool:
            assert operator == ">="
            minutes = re.fullmatch(r"-(\d+)m", value)
            if minutes is None:
                raise JqlError(f"Date value '{value}' for field 'updated' is invalid.")
            now = self.now().replace(second=0, microsecond=0)
            return bool(record["updated"] >= now - timedelta(minutes=int(minutes[1])))

        def labels(record: Any, operator: str, value: str) -> bool:
            return (value in record["labels"]) is (operator == "=")

        def category(record: Any, operator: str, value: str) -> bool:
            found = self._status(record["status"])["statusCategory"]["key"]
            return _equal(operator, found, value.casefold())

        def summary(record: Any, operator: str, value: str) -> bool:
            return value in (record["summary"] or "")

        return {
            "status": status,
            "statuscategory": category,
            "project": project,
            "id": issue_id,
            "updated": updated,
            "labels": labels,
            "summary": summary,
        }

    def _cloud_page(self, body: Json, query: Query, found: list[Record]) -> Reply:
        del query
        last = int(body.get("nextPageToken", "token-0").removeprefix("token-"))
        self.sees(last - 10000 if last else 0)
        size = min(body.get("maxResults", 50), self.page_limit)
        left = [record for record in found if record.id > last]  # all are created in one moment
        shown = left[:size]
        answer: dict[str, Json] = {"issues": [self._item(r, body.get("fields", [])) for r in shown]}
        if len(left) > size:
            answer["nextPageToken"] = f"token-{shown[-1].id}"
        if self.tells_last:
            answer["isLast"] = len(left) <= size
        return Reply(body=answer)

    def _data_center_page(self, body: Json, query: Query, found: list[Record]) -> Reply:
        del query
        start = body.get("startAt", 0)
        self.sees(start)
        size = min(body.get("maxResults", 50), self.page_limit)
        shown = found[start : start + size]
        return Reply(
            body={
                "startAt": start,
                "maxResults": size,
                "total": len(found),
                "issues": [self._item(r, body.get("fields", [])) for r in shown],
            }
        )

    def _parsed(self, body: Json) -> Reply:
        answers = []
        for text in body["queries"]:
            try:
                query = parse(text, self._fields())
                for record in self.issues.values():
                    query.test(vars(record))
                answers.append({"query": text})
            except JqlError as exc:
                answers.append({"query": text, "errors": [str(exc)]})
        return Reply(body={"queries": answers})

    def _bulk(self, body: Json) -> Reply:
        names = body["issueIdsOrKeys"]
        if not 1 <= len(names) <= 100:
            return Reply(status=400, body=_errors("1 to 100 issues"))
        found = {r.id: r for name in names if (r := self._named(name)) is not None}
        errors = [{"id": str(i), "errorMessage": self.bulk_errors[i]} for i in self.bulk_errors]
        for broken in self.bulk_errors:
            found.pop(broken, None)
        items = [self._item(found[i], body["fields"]) for i in sorted(found)]
        return Reply(body={"issues": items, "issueErrors": errors})

    # One issue

    def _named(self, name: str) -> Record | None:
        for record in self.issues.values():
            if name.upper() in (str(record.id), record.key.upper()):
                return None if record.hidden or self.anonymous else record
        return None

    def _about_issue(self, request: Received, name: str, rest: list[str]) -> Reply:
        record = self._named(name)
        if record is None:
            return Reply(status=404, body=_errors("Issue does not exist or no permission."))
        match request.method, *rest:
            case ("GET",):
                fields = request.query.get("fields", "*all").split(",")
                item = self._item(record, fields)
                if request.query.get("expand") == "changelog":
                    item["changelog"] = {"histories": self._histories(record)}
                return Reply(body=item)
            case ("PUT",):
                return self._edited(record, request.json)
            case "GET", "changelog" if self.cloud:
                start, past = int(request.query.get("startAt", 0)), self._histories(record)
                body = {
                    "startAt": start,
                    "maxResults": 2,
                    "total": len(past),
                    "isLast": start + 2 >= len(past),
                    "values": past[start : start + 2],
                }
                return Reply(body=body)
            case "GET", "transitions":
                return self._transitions(record, request.query.get("expand", ""))
            case "POST", "transitions":
                return self._transition(record, request.json)
            case "GET", "comment":
                return self._comments(record, request)
            case "POST", "comment":
                return self._comment(record, request.json)
        return Reply(status=404, body=_errors("No such route."), sound=False)

    def _edited(self, record: Record, body: Json) -> Reply:
        """Change labels, which is all that is edited here."""
        if not self.may_edit:
            return Reply(status=403, body=_errors("You do not have permission to edit issues."))
        if not self.has_labels_on_screen:
            told = "Field 'labels' cannot be set. It is not on the appropriate screen, or unknown."
            return Reply(status=400, body={"errorMessages": [], "errors": {"labels": told}})
        assert set(body) == {"update"}
        assert set(body["update"]) == {"labels"}
        labels = list(record.labels)
        for change in body["update"]["labels"]:
            ((what, label),) = change.items()
            if any(map(str.isspace, label)):
                told = f"The label '{label}' contains spaces which is invalid."
                return Reply(status=400, body={"errorMessages": [], "errors": {"labels": told}})
            labels = [each for each in labels if each != label]
            if what == "add":
                labels.append(label)
        record.labels, record.updated = labels, self.now()
        self._noted(record)
        return Reply(status=204)

    def _item(self, record: Record, fields: Iterable[str]) -> Json:
        every = {
            "summary": record.summary,
            "description": record.description,
            "status": self._status(record.status),
            "priority": record.priority and {"id": "7", "name": record.priority},
            "labels": record.labels,
            "creator": record.creator and self._person(record.creator),
            "assignee": record.assignee and self._user(record.assignee, "another"),
            "issuetype": record.issue_type and {"id": "3", "name": record.issue_type},
            "parent": record.parent and {"id": "1", "key": record.parent},
            "issuelinks": [self._link(t, key, "inwardIssue") for t, key in record.links]
            + [self._link("Blocks", key, "outwardIssue") for key in record.blocks],
            "created": stamp(record.created),
            "updated": stamp(record.updated),
            "project": {"id": str(self.projects[record.project]), "key": record.project},
        }
        wanted = set(fields)
        return {
            "id": str(record.id),
            "key": record.key,
            "self": f"{self.browse}{self.api}/issue/{record.id}",
            "fields": {k: v for k, v in every.items() if k in wanted or "*all" in wanted},
        }

    def _link(self, type_name: str, key: str, end: str) -> Json:
        other = next((r for r in self.issues.values() if r.key == key), None)
        linked: dict[str, Json] = {"key": key}
        if other is not None and other.summary is not None:
            linked |= {"id": str(other.id), "fields": {"status": self._status(other.status)}}
        kind = _LINK_TYPE if type_name == "Blocks" else {**_RELATES, "name": type_name}
        return {"id": "1", "type": kind, end: linked}

    def _transitions(self, record: Record, expand: str) -> Reply:
        with_fields = "transitions.fields" in expand
        ways = [w for w in self.ways if w.source in (None, record.status)]
        shown = [
            {
                "id": str(way.id),
                "name": way.name or f"Go {way.id}",
                "to": self._status(way.to),
                **({"fields": way.fields} if with_fields else {}),
            }
            for way in (ways if self.may_transition else [])
        ]
        return Reply(body={"transitions": shown})

    def _transition(self, record: Record, body: Json) -> Reply:
        asked = body["transition"]["id"]
        way = next((w for w in self.ways if str(w.id) == asked), None)
        fits = way is not None and way.source in (None, record.status)
        if way is None or not fits or not self.may_transition:
            told = (
                f"It seems that you have tried to perform an illegal workflow operation ({asked})."
            )
            return Reply(status=400 if self.cloud else 500, body=_errors(told))
        for key, value in way.fields.items():
            if value["required"] and not value.get("hasDefaultValue"):
                return Reply(status=400, body={"errorMessages": [], "errors": {key: "required"}})
        record.status, record.updated = way.to, self.now()
        self._noted(record)
        return Reply(status=204)

    # Comments

    def _comments(self, record: Record, request: Received) -> Reply:
        start = int(request.query.get("startAt", 0))
        size = min(int(request.query.get("maxResults", 50)), self.page_limit)
        ordered = list(record.comments)
        if request.query.get("orderBy") == "-created" and self.newest_first:
            ordered.reverse()
        told = "properties" in request.query.get("expand", "") and self.tells_properties
        shown = [self._told(c, told) for c in ordered[start : start + size]]
        page = {"startAt": start, "maxResults": size, "total": len(ordered), "comments": shown}
        return Reply(body=page)

    def _comments_by_id(self, ids: list[int]) -> Reply:
        every = [c for record in self.issues.values() for c in record.comments]
        found = [self._told(c, self.tells_properties) for c in every if c.id in ids]
        return Reply(body={"values": found, "total": len(found), "startAt": 0, "isLast": True})

    def _told(self, comment: Comment, with_properties: bool) -> Json:
        told = {
            "id": str(comment.id),
            "author": self._user(comment.author, comment.account),
            "body": comment.body,
        }
        if comment.created is not None:
            told["created"] = stamp(comment.created)
        if comment.visibility is not None:
            told["visibility"] = comment.visibility
        return {**told, "properties": comment.properties} if with_properties else told

    def _comment(self, record: Record, body: Json) -> Reply:
        text = body["body"]
        if isinstance(text, str) is self.cloud:
            return Reply(status=400, body={"errors": {"comment": "is not valid"}}, sound=False)
        if len(text if isinstance(text, str) else json.dumps(text)) > 32_767:
            told = (
                "The entered text is too long. It exceeds the allowed limit of 32,767 characters."
            )
            return Reply(status=400, body={"errorMessages": [], "errors": {"comment": told}})
        properties = body.get("properties", [])
        made = self.add_comment(record, text, "sortie", properties=properties, account=ME)
        record.updated = self.now()
        self._noted(record)
        return Reply(status=201, body=self._told(made, False))


_LINK_TYPE = {"id": "10000", "name": "Blocks", "inward": "is blocked by", "outward": "blocks"}
_RELATES = {"id": "10001", "name": "Relates", "inward": "relates to", "outward": "relates to"}


def _equal(operator: str, one: str, other: str) -> bool:
    return (one == other) is (operator == "=")


def _errors(message: str) -> Json:
    return {"errorMessages": [message], "errors": {}}


def stamp(time: datetime) -> str:
    """Return a time as Jira writes it."""
    return (
        time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1000:03}+0000"
    )
