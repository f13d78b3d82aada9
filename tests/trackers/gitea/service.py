"""Gitea's API over issues in memory, as its documentation tells it: one repository."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sortie.model.trust import Right
from tests.trackers.server.exchange import Received, Reply
from tests.trackers.server.people import Crowd

TOKEN = "gitea-token-7c0ffee"
PROJECT = "team/web"
ROOT = f"/api/v1/repos/{PROJECT}"

Json = Any


@dataclass
class GiteaService:
    """The repository. ``down`` answers 503 to all, ``retry_after`` 429 with so many seconds.

    ``page`` is how many items a page has at most, whatever is asked for.
    """

    issues: dict[int, dict[str, Json]] = field(default_factory=dict)
    comments: dict[int, list[Json]] = field(default_factory=dict)
    dependencies: dict[int, list[int]] = field(default_factory=dict)
    labels: dict[int, str] = field(default_factory=dict)
    crowd: Crowd = field(default_factory=Crowd)
    private: bool = True
    down: bool = False
    retry_after: int | None = None
    page: int = 3
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def now(self) -> str:
        """Return the time as Gitea writes it."""
        return self.clock().replace(microsecond=0).isoformat().replace("+00:00", "Z")

    def label(self, name: str) -> int:
        """Return the id of a label, made if need be."""
        for number, known in self.labels.items():
            if known == name:
                return number
        self.labels[len(self.labels) + 1] = name
        return len(self.labels)

    def put(self, number: int, **fields: Json) -> None:
        """Add an issue, or change it as a person would; ``names`` are its labels."""
        plain = {
            "number": number,
            "title": f"Issue {number}",
            "body": "",
            "state": "open",
            "html_url": f"https://gitea.example/{PROJECT}/issues/{number}",
            "names": [],
            "user": {"login": "ann"},
            "assignees": None,
            "created_at": self.now(),
            "pull_request": None,
        }
        known = {**self.issues.get(number, plain), "updated_at": self.now()}
        self.issues[number] = {**known, **fields}
        self.comments.setdefault(number, [])

    def say(self, number: int, author: str, body: str, at: str | None = None) -> None:
        """Comment as a person would."""
        said = {"id": 1, "user": {"login": author}, "body": body, "created_at": at or self.now()}
        self.comments[number].append(said)
        self.issues[number]["updated_at"] = self.now()

    def answer(self, request: Received) -> Reply:
        """See Service."""
        if self.down:
            return Reply(status=503, body={"message": "down"})
        if self.retry_after is not None:
            return Reply(
                status=429, body={"message": "slow"}, headers={"Retry-After": str(self.retry_after)}
            )
        if request.headers.get("authorization") != f"token {TOKEN}":
            return Reply(status=401, body={"message": "token is required"})
        path = request.path.removeprefix(ROOT)
        routes: list[tuple[str, str, Callable[..., Reply]]] = [
            ("GET", "", lambda _: Reply(body={"full_name": PROJECT, "private": self.private})),
            ("GET", "/issues", self._list),
            ("GET", r"/labels", self._labels),
            ("POST", r"/labels", self._make_label),
            ("GET", r"/issues/(\d+)", self._one),
            ("PATCH", r"/issues/(\d+)", self._change),
            ("GET", r"/issues/(\d+)/comments", self._comments),
            ("POST", r"/issues/(\d+)/comments", self._comment),
            ("GET", r"/issues/(\d+)/dependencies", self._dependencies),
            ("GET", r"/issues/(\d+)/timeline", self._timeline),
            ("POST", r"/issues/(\d+)/labels", self._add_labels),
            ("DELETE", r"/issues/(\d+)/labels/(\d+)", self._remove_label),
        ]
        if (person := self._person(request.path)) is not None:
            return person
        if not request.path.startswith(ROOT):
            return Reply(status=404, body={"message": "not found"})
        for method, pattern, do in routes:
            found = re.fullmatch(pattern, path)
            if request.method == method and found is not None:
                numbers = [int(text) for text in found.groups()]
                if numbers and numbers[0] not in self.issues:
                    return Reply(status=404, body={"message": "issue does not exist"})
                return do(request, *numbers)
        return Reply(status=404, body={"message": "not found"})

    def _person(self, path: str) -> Reply | None:
        """Answer what somebody may do, None where something else is asked."""
        found = re.fullmatch(rf"{ROOT}/collaborators/([^/]+)(/permission)?", path)
        member = re.fullmatch(r"/api/v1/orgs/[^/]+/members/([^/]+)", path)
        if found is None and member is None:
            return None
        login = (found or member)[1]  # type: ignore[index]
        self.crowd.asked.append(login)
        if self.crowd.refuses:
            return Reply(status=403, body={"message": "Only admins can query all permissions"})
        if member is not None:
            return Reply(status=204 if self.crowd.may(login, Right.MEMBERS) else 404)
        if found is not None and found[2] is None:
            return Reply(status=404)
        permission = "write" if self.crowd.may(login, Right.WRITE) else "read"
        return Reply(body={"permission": permission, "role_name": "", "user": {"login": login}})

    def _timeline(self, request: Received, number: int) -> Reply:
        kinds = {"add": "label", "remove": "label", "title": "change_title"}
        past = [
            {
                "id": at,
                "type": kinds[what],
                "body": "1" if what == "add" else "",
                "user": {"login": who},
                "label": {"name": name} if name else None,
                "created_at": done.isoformat(),
            }
            for at, (what, who, done, name) in enumerate(self.crowd.past(number))
            if what in kinds
        ]
        return self._paged(request, past)

    def _paged(self, request: Received, items: list[Json]) -> Reply:
        size = min(int(request.query.get("limit", self.page)), self.page)
        number = int(request.query.get("page", "1"))
        shown = items[(number - 1) * size : number * size]
        headers = {"X-Total-Count": str(len(items))}
        if number * size < len(items):
            more = "&".join(f"{k}={v}" for k, v in request.pairs if k != "page")
            headers["Link"] = f'<{request.url}?{more}&page={number + 1}>; rel="next"'
        return Reply(body=shown, headers=headers)

    def _list(self, request: Received) -> Reply:
        query, found = request.query, sorted(self.issues.values(), key=lambda i: -i["number"])
        if query.get("state", "open") != "all":
            found = [i for i in found if i["state"] == query.get("state", "open")]
        if since := query.get("since"):
            first = datetime.fromisoformat(since)
            found = [i for i in found if datetime.fromisoformat(i["updated_at"]) >= first]
        if query.get("type") == "issues":
            found = [i for i in found if i["pull_request"] is None]
        return self._paged(request, [self._shown(i) for i in found])

    def _shown(self, issue: Json) -> Json:
        labels = [{"id": self.label(name), "name": name} for name in issue["names"]]
        told = {key: value for key, value in issue.items() if key != "names"}
        count = len(self.comments[issue["number"]])
        return told | {"labels": labels, "comments": count}

    def _one(self, _request: Received, number: int) -> Reply:
        return Reply(body=self._shown(self.issues[number]))

    def _change(self, request: Received, number: int) -> Reply:
        self.put(number, state=request.json["state"])
        return Reply(status=201, body=self._shown(self.issues[number]))

    def _comments(self, request: Received, number: int) -> Reply:
        return self._paged(request, self.comments[number])

    def _comment(self, request: Received, number: int) -> Reply:
        self.say(number, "sortie", request.json["body"])
        return Reply(status=201, body=self.comments[number][-1])

    def _dependencies(self, request: Received, number: int) -> Reply:
        found = [self.issues[other] for other in self.dependencies.get(number, ())]
        home = {"repository": {"full_name": PROJECT}}
        return self._paged(request, [self._shown(other) | home for other in found])

    def _labels(self, request: Received) -> Reply:
        items = [{"id": number, "name": name} for number, name in self.labels.items()]
        return self._paged(request, items)

    def _make_label(self, request: Received) -> Reply:
        number = self.label(request.json["name"])
        return Reply(status=201, body={"id": number, "name": request.json["name"]})

    def _add_labels(self, request: Received, number: int) -> Reply:
        issue = self.issues[number]
        added = [self.labels[each] for each in request.json["labels"]]
        self.put(number, names=[*issue["names"], *(n for n in added if n not in issue["names"])])
        return Reply(body=self._shown(self.issues[number])["labels"])

    def _remove_label(self, _request: Received, number: int, label: int) -> Reply:
        names = self.issues[number]["names"]
        if self.labels.get(label) not in names:
            return Reply(status=404, body={"message": "label does not exist"})
        self.put(number, names=[name for name in names if name != self.labels[label]])
        return Reply(status=204)
