"""GitLab in memory, as far as trackers ask it: projects of one group, their issues, notes, labels.

It does what GitLab does where that surprises: parameters filter by AND and by case, labels are made
by being written, a note that begins with a slash is an order, a page of notes may be short, links
are seen from the issue that was asked for, and what one may not see is not found.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from sortie.model.trust import Right
from tests.trackers.gitlab.world import GitLabWorld, Json, Project, text_of, user
from tests.trackers.server.exchange import Received, Reply

COMMANDS = ("close", "reopen", "label", "unlabel", "relabel", "assign", "todo", "shrug", "move")
_COMMAND = re.compile(
    r"(?P<code>^```.+?\n```$)"
    rf"|^/(?P<name>{'|'.join(COMMANDS)})(?:[ ](?P<argument>[^\n]*))?(?:\s*\n|$)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
"""As ``Gitlab::QuickActions::Extractor`` reads a note, after it has dropped carriage returns."""

_MENTION = re.compile(r"(?<![\w`])@(\w[\w.-]*)")


class Refused(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, body: Json, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status)
        self.reply = Reply(status=status, body=body, headers=headers or {}, sound=False)


@dataclass
class GitLabService(GitLabWorld):
    """The world behind GitLab's API."""

    def answer(self, request: Received) -> Reply:
        """Perform a request."""
        try:
            self._refuse(request)
            reply = self._routed(request)
        except Refused as refused:
            return refused.reply
        return self._tagged(request, reply)

    def _refuse(self, request: Received) -> None:
        if self.down:
            raise Refused(503, {"message": "503 Service Unavailable"})
        if self.retry_after is not None:
            headers = {"Retry-After": str(self.retry_after)}
            raise Refused(429, b"Retry later\n" if self.plain_429 else {"error": "limit"}, headers)
        if request.headers.get("private-token") != self.token:
            raise Refused(401, {"message": "401 Unauthorized"})
        if self.budget is not None:
            if self.budget <= 0:
                raise Refused(429, b"Retry later\n", self._budget_headers())
            self.budget -= 1

    def _budget_headers(self) -> dict[str, str]:
        if self.budget is None:
            return {}
        now = int(self.clock().timestamp())
        return {
            "RateLimit-Limit": "2000",
            "RateLimit-Remaining": str(self.budget),
            "RateLimit-Reset": str(now - now % 60 + 60),
            "RateLimit-Name": "throttle_authenticated_api",
        }

    def _tagged(self, request: Received, reply: Reply) -> Reply:
        headers = {**reply.headers, **self._budget_headers()}
        if request.method != "GET" or reply.status != 200:
            return Reply(status=reply.status, body=reply.body, headers=headers, sound=reply.sound)
        tag = f'W/"{hashlib.md5(reply.content).hexdigest()}"'
        headers |= {"ETag": tag, "Cache-Control": "max-age=0, private, must-revalidate"}
        if request.headers.get("if-none-match") == tag:
            return Reply(status=304, headers=headers, sound=False)
        return Reply(body=reply.body, headers=headers, sound=reply.sound)

    def _routed(self, request: Received) -> Reply:
        skipped = len([part for part in self.prefix.split("/") if part]) + 2
        match request.method, *request.segments[skipped:]:
            case "GET", "user":
                if not self.seen:
                    raise Refused(401, {"message": "401 Unauthorized"})
                return Reply(body={"id": 7, "username": "sortie", "name": "Sortie", "bot": True})
            case "GET", ("metadata" | "version"):
                body = {"version": "18.9.1-ee", "revision": "abc", "enterprise": self.enterprise}
                return Reply(body=body)
            case "GET", "personal_access_tokens", "self":
                return Reply(body=self._token())
            case "GET", "groups", group, "issues":
                return self._group_issues(request, group)
            case "GET", "projects", name:
                return Reply(body=self._project_body(self._project(name)))
            case "GET", "projects", name, "issues":
                return self._project_issues(request, name)
            case "GET", "projects", name, "labels":
                return self._labels(request, self._project(name))
            case "GET", "projects", name, "issues", iid:
                return Reply(body=self._issue(self._project(name), iid))
            case "PUT", "projects", name, "issues", iid:
                return self._change(self._project(name), iid, request.json)
            case "GET", ("projects" | "groups"), name, "members", "all":
                return self._members(request)
            case "GET", "projects", name, "issues", iid, "resource_label_events":
                return self._label_events(request, self._project(name), iid)
            case "GET", "projects", name, "issues", iid, "links":
                return self._links(self._project(name), iid)
            case "GET", "projects", name, "issues", iid, "notes":
                return self._notes(request, self._project(name), iid)
            case "POST", "projects", name, "issues", iid, "notes":
                return self._add_note(self._project(name), iid, request.json["body"])
            case _:
                raise Refused(404, {"error": "404 Not Found"})

    def _token(self) -> Json:
        return {
            "id": 3,
            "name": "sortie",
            "revoked": False,
            "created_at": "2026-06-30T00:00:00.000Z",
            "scopes": list(self.scopes),
            "user_id": 7,
            "active": True,
            "expires_at": None if self.expires_at is None else f"{self.expires_at}T00:00:00Z",
        }

    def _project(self, name: str) -> Project:
        for place in self.projects.values():
            if name in (str(place.id), place.path) and self.seen:
                return place
        raise Refused(404, {"message": "404 Project Not Found"})

    def _project_body(self, place: Project) -> Json:
        return {
            "id": place.id,
            "name": place.path.rpartition("/")[2],
            "path": place.path.rpartition("/")[2],
            "path_with_namespace": place.path,
            "web_url": f"https://gitlab.example.org/{place.path}",
            "archived": place.archived,
            "issues_enabled": place.issues_enabled,
            "issues_access_level": place.issues_access_level,
            **({} if place.visibility is None else {"visibility": place.visibility}),
            "permissions": {"project_access": {"access_level": self.role}, "group_access": None},
        }

    def _issue(self, place: Project, iid: str) -> dict[str, Json]:
        if not iid.isdecimal() or int(iid) not in place.issues:
            raise Refused(404, {"message": "404 Issue Not Found"})
        return place.issues[int(iid)]

    # People.

    def _members(self, request: Received) -> Reply:
        asked = request.query["query"]
        self.crowd.asked.append(asked)
        if self.crowd.refuses:
            raise Refused(403, {"message": "403 Forbidden"})
        found = [
            {**user(name), "state": "active", "access_level": 30 if right is Right.WRITE else 20}
            for name, right in self.crowd.rights.items()
            if asked in name
        ]
        return self._listed(request, found)

    def _label_events(self, request: Received, place: Project, iid: str) -> Reply:
        self._issue(place, iid)
        events = [
            {
                "id": at,
                "user": {"id": 8, "username": who},
                "created_at": text_of(done),
                "resource_type": "Issue",
                "resource_id": 1,
                "label": {"id": 1, "name": name},
                "action": what,
            }
            for at, (what, who, done, name) in enumerate(self.crowd.past(iid))
            if name
        ]
        return self._listed(request, events)

    # Lists.

    def _project_issues(self, request: Received, name: str) -> Reply:
        found = [] if not self.seen else list(self._project(name).issues.values())
        return self._listed(request, self._filtered(request, found))

    def _group_issues(self, request: Received, group: str) -> Reply:
        below = [p for p in self.projects.values() if p.path.startswith(f"{group}/")]
        if not below:
            raise Refused(404, {"message": "404 Group Not Found"})
        every = [i for p in below if not p.archived for i in p.issues.values()]
        return self._listed(request, self._filtered(request, every if self.seen else []))

    def _filtered(self, request: Received, items: list[Json]) -> list[Json]:
        query = dict(request.pairs)
        iids = {int(value) for key, value in request.pairs if key == "iids[]"}
        labels = [name for name in query.get("labels", "").split(",") if name]
        without = [name for name in query.get("not[labels]", "").split(",") if name]
        tests: list[Callable[[Json], bool]] = [lambda item: not iids or item["iid"] in iids]
        if query.get("state", "all") != "all":
            tests.append(lambda item: item["state"] == query["state"])
        if "issue_type" in query:
            tests.append(lambda item: item["issue_type"] == query["issue_type"])
        if "updated_after" in query:
            since = datetime.fromisoformat(query["updated_after"])
            tests.append(lambda item: datetime.fromisoformat(item["updated_at"]) >= since)
        if "created_after" in query:
            after = datetime.fromisoformat(query["created_after"])
            tests.append(lambda item: datetime.fromisoformat(item["created_at"]) >= after)
        if "assignee_username" in query:
            names = query["assignee_username"].split(",")
            tests.append(lambda item: any(a["username"] in names for a in item["assignees"]))
        if "confidential" in query:
            tests.append(lambda item: str(item["confidential"]).lower() == query["confidential"])
        tests.append(lambda item: all(name in item["labels"] for name in labels))
        tests.append(lambda item: not any(name in item["labels"] for name in without))
        found = [item for item in items if all(test(item) for test in tests)]
        key = query.get("order_by", "created_at")
        found.sort(key=lambda item: (item[key], item["id"]), reverse=query.get("sort") != "asc")
        return found

    def _listed(self, request: Received, items: list[Json]) -> Reply:
        """Return a page: by its number, or with ``pagination=keyset`` after the last one given."""
        query = dict(request.pairs)
        size = min(int(query.get("per_page", 20)), self.per_page_at_most)
        if query.get("pagination") == "keyset":
            if cursor := query.get("cursor"):
                after = json.loads(base64.urlsafe_b64decode(cursor))
                items = [i for i in items if [i["created_at"], i["id"]] > after]
            page = items[:size]
            following = None
            if len(items) > size:
                last = json.dumps([page[-1]["created_at"], page[-1]["id"]]).encode()
                following = {"cursor": base64.urlsafe_b64encode(last).decode()}
            return Reply(body=page, headers=self._next(request, following))
        number = int(query.get("page", 1))
        page = items[(number - 1) * size : number * size]
        more = number * size < len(items)
        headers = self._next(request, {"page": str(number + 1)} if more else None)
        total = {"X-Total": str(len(items))} if len(items) <= 10_000 else {}
        return Reply(body=page, headers={**headers, **total})

    def _next(self, request: Received, change: Mapping[str, str] | None) -> dict[str, str]:
        if change is None:
            return {}
        pairs = [pair for pair in request.pairs if pair[0] not in change]
        address = f"{self.origin or request.origin}{request.path}"
        return {"Link": f'<{address}?{urlencode([*pairs, *change.items()])}>; rel="next"'}

    def _labels(self, request: Received, place: Project) -> Reply:
        items = [
            {"id": number, "name": name, "color": "#428BCA", "is_project_label": True}
            for number, name in enumerate(sorted(place.labels), 1)
        ]
        return self._listed(request, items)

    def _links(self, place: Project, iid: str) -> Reply:
        self._issue(place, iid)
        found = []
        for number, (kind, project, target) in enumerate(place.links[int(iid)], 1):
            item = self.projects[project].issues.get(target)
            if item is None or (kind != "relates_to" and not (self.enterprise and self.licensed)):
                continue
            found.append({**item, "issue_link_id": str(number), "link_type": kind})
        return Reply(body=found)

    def _notes(self, request: Received, place: Project, iid: str) -> Reply:
        """Return a page, from which what was not asked for is taken out afterwards, as GitLab
        does: so it may be short, or empty, in the middle."""
        self._issue(place, iid)
        query = dict(request.pairs)
        notes = sorted(place.notes[int(iid)], key=lambda n: (n["created_at"], n["id"]))
        if query.get("sort", "desc") == "desc":
            notes.reverse()
        reply = self._listed(request, notes)
        shown = reply.body
        if query.get("activity_filter") == "only_comments":
            shown = [note for note in shown if not note["system"]]
        return Reply(body=shown, headers=reply.headers)

    # Changes.

    def _change(self, place: Project, iid: str, change: Json) -> Reply:
        item = self._issue(place, iid)
        if place.archived:
            raise Refused(403, {"message": "403 Forbidden"})
        if "api" not in self.scopes:
            told = {
                "error": "insufficient_scope",
                "error_description": "needs more",
                "scope": "api",
            }
            raise Refused(403, told)
        if self.locks:
            self.locks -= 1
            raise Refused(409, {"message": "Resource lock"})
        if not set(change) & {"add_labels", "remove_labels", "labels", "state_event", "title"}:
            raise Refused(400, {"error": "add_labels, labels, ... are missing, at least one"})
        if not self.may_write:
            return Reply(body=item)
        labels = list(change.get("labels", item["labels"]))
        for name in _names(change.get("add_labels")):
            if self.enterprise and self.licensed and "::" in name:
                scope = name.rpartition("::")[0] + "::"
                labels = [label for label in labels if label.rpartition("::")[0] + "::" != scope]
            labels += [name] if name not in labels else []
        gone = _names(change.get("remove_labels"))
        labels = [name for name in labels if name not in gone]
        state = {"close": "closed", "reopen": "opened"}.get(
            change.get("state_event"), item["state"]
        )
        if labels != item["labels"] or state != item["state"]:
            self.put(int(iid), project=place, labels=labels, state=state)
            self.note(int(iid), "changed it", project=place, system=True)
        return Reply(body=place.issues[int(iid)])

    def _add_note(self, place: Project, iid: str, text: str) -> Reply:
        item = self._issue(place, iid)
        if place.archived:
            raise Refused(403, {"message": "403 Forbidden"})
        if len(text) > 1_000_000:
            raise Refused(
                400, {"message": {"note": ["is too long (maximum is 1000000 characters)"]}}
            )
        text = text.replace("\r", "")
        orders = [m for m in _COMMAND.finditer(text) if m["code"] is None]
        self.orders += [found["name"] for found in orders]
        self.mentioned += _MENTION.findall(text)
        rest = text
        for found in reversed(orders):
            rest = rest[: found.start()] + rest[found.end() :]
            if found["name"].lower() == "close":
                self.put(item["iid"], project=place, state="closed")
        if not rest.strip():
            body = {"commands_changes": {"state_event": "close"}, "summary": ["Closed this issue."]}
            return Reply(status=202, body=body, sound=False)
        note = self.note(item["iid"], rest, project=place, author=user("sortie"))
        return Reply(status=201, body=note)


def _names(value: Json) -> list[str]:
    return value.split(",") if isinstance(value, str) else list(value or ())
