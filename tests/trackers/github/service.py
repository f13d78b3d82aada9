"""GitHub's REST API over issues in memory: one repository, faithful in what a tracker can meet.

What is known of GitHub only by hearsay has a switch, so that it can be tried both ways.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from sortie.model.trust import Right
from tests.trackers.github.graphql_service import MOST, PATH, answered
from tests.trackers.github.shapes import (
    Json,
    a_label,
    a_repository,
    a_user,
    an_installation,
    an_issue,
)
from tests.trackers.server.exchange import Received, Reply
from tests.trackers.server.people import Crowd

TOKEN = "ghp_7c0ffee0000000000000000000000000test"
OWNER, NAME = "octo-org", "hello-world"
ACCOUNT = "sortie"
PREFIX = "/api/v3"


class Refusal(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.reply = Reply(
            status=status,
            body={
                "message": message,
                "documentation_url": "https://docs.github.com/rest",
                "status": str(status),
            },
            headers=headers,
            sound=status in (404, 410, 422),  # the others are described for few requests
        )


@dataclass
class GitHubService:
    """The repository, and switches for what differs between servers, accounts and moments.

    ``tokens`` are taken. ``remaining`` of ``limit`` requests are left, 304s not counted; None:
    none are counted. ``retry_after`` refuses all with a secondary limit of so many seconds.
    ``down`` answers 503 to all. ``may_write``: label changes are not dropped. ``makes_labels``: an
    unknown label is made when it is put on an issue, else that is a 422. ``lag`` (requests): a
    read of an issue answers with what it was so many writes before. ``index_lag``: the search
    finds issues as they were when ``reindex`` was called. ``has_dependencies``: as from
    Enterprise Server 3.19 on. ``touches``: a change of dependencies changes ``updated_at``.
    ``graphql``: ``new`` has all fields, ``old`` not those of late years, ``none`` is a 404.
    ``graphql_remaining`` requests are left of GraphQL; None: none are counted. ``graphql_most``
    issues may be asked for at once.
    """

    base: str = ""  # of its addresses, set once it is served
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    items: dict[int, Json] = field(default_factory=dict)
    comments: dict[int, list[Json]] = field(default_factory=dict)
    edges: dict[int, list[Json]] = field(default_factory=dict)
    hidden_edges: dict[int, int] = field(default_factory=dict)
    labels: dict[str, Json] = field(default_factory=dict)
    gone: dict[int, Reply] = field(default_factory=dict)
    spoiled: set[int] = field(default_factory=set)
    changed: dict[int, datetime] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=lambda: {TOKEN})
    public_key: Any = None
    limit: int = 5000
    remaining: int | None = None
    reset_in: timedelta = timedelta(minutes=30)
    retry_after: int | None = None
    down: bool = False
    may_write: bool = True
    makes_labels: bool = True
    lags: bool = False
    indexed: dict[int, Json] | None = None
    incomplete: bool = False
    has_dependencies: bool = True
    touches: bool = True
    visible: bool = True
    has_issues: bool = True
    archived: bool = False
    private: bool = True
    graphql: str = "new"
    graphql_remaining: int | None = None
    graphql_most: int = MOST
    crowd: Crowd = field(default_factory=Crowd)
    counted: int = 0
    minted: int = 0
    _stale: dict[int, Json] = field(default_factory=dict)
    _comment_id: int = 1000

    # What the world does

    def put(self, number: int, *, names: list[str], **fields: Json) -> None:
        """Add an issue, or change it as a person would; ``names`` are its labels."""
        for name in names:
            self.labels.setdefault(name.casefold(), a_label(self.repository, name))
        issue = self.items.get(number) or an_issue(self.repository, number, self.clock())
        self.items[number] = {**issue, **fields, "labels": [self._label(n) for n in names]}
        self.comments.setdefault(number, [])
        self.touch(number)

    def touch(self, number: int) -> None:
        """Note that an issue has changed now, without a word in its fields."""
        self.changed[number] = self.clock()

    def change(self, number: int, **fields: Json) -> None:
        """Change fields of an issue as a person would."""
        self.items[number] = {
            **self.items[number],
            "updated_at": _text(self.clock()),
            **fields,
        }
        self.touch(number)

    def relabel(self, number: int, *names: str) -> None:
        """Give an issue these labels and no other."""
        for name in names:
            self.labels.setdefault(name.casefold(), a_label(self.repository, name))
        self.change(number, labels=[self._label(n) for n in names])

    def names(self, number: int) -> list[str]:
        """Return the labels of an issue."""
        return [label["name"] for label in self.items[number]["labels"]]

    def say(self, number: int, author: str, body: str, at: datetime | None = None) -> Json:
        """Add a comment."""
        self._comment_id += 1
        when = _text(at or self.clock())
        url = f"{self.repository}/issues/comments/{self._comment_id}"
        comment = {
            "id": self._comment_id,
            "node_id": f"C_{self._comment_id}",
            "url": url,
            "html_url": url,
            "issue_url": f"{self.repository}/issues/{number}",
            "user": a_user(author),
            "body": body,
            "created_at": when,
            "updated_at": when,
            "author_association": "MEMBER",
        }
        self.comments[number].append(comment)
        return comment

    def remove(self, number: int, how: str = "deleted") -> None:
        """Delete an issue (410 where it may be known, or 404), or transfer it to another place."""
        del self.items[number]
        self.comments.pop(number, None)
        elsewhere = f"{self.base}/repositories/99/issues/{number}"
        moved = {"message": "Moved Permanently", "url": elsewhere, "documentation_url": "x"}
        self.gone[number] = {
            "deleted": Reply(status=410, body={"message": "This issue was deleted"}),
            "hidden": Reply(status=404, body={"message": "Not Found"}),
            "transferred": Reply(status=301, body=moved, headers={"Location": elsewhere}),
        }[how]

    def block(self, number: int, *blockers: int | Json, hidden: int = 0) -> None:
        """Have an issue wait for these: numbers here, or issues of other repositories."""
        self.edges[number] = list(blockers)
        self.hidden_edges[number] = hidden
        if self.touches:
            self.change(number)

    def reindex(self) -> None:
        """Have the search find issues as they are now, whatever changes from here on."""
        self.indexed = json.loads(json.dumps({n: self._shown(n) for n in self.items}))
        self.indexed = {int(number): item for number, item in self.indexed.items()}

    @property
    def repository(self) -> str:
        """The address of the repository."""
        return f"{self.base}/repos/{OWNER}/{NAME}"

    # What it answers

    def answer(self, request: Received) -> Reply:
        """See Service."""
        try:
            self._admit(request)
            reply = self._routed(request)
        except Refusal as exc:
            reply = exc.reply
        reply = self._with_etag(request, reply)
        return replace(reply, headers={**reply.headers, **self._limit_headers(request, reply)})

    def _admit(self, request: Received) -> None:
        if self.down:
            raise Refusal(503, "Service Unavailable")
        assert request.headers.get("user-agent"), "GitHub wants to know who asks"
        assert request.headers.get("x-github-api-version") == "2022-11-28"
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        is_signature = token.count(".") == 2 and self.public_key is not None
        if kind != "Bearer" or (token not in self.tokens and not is_signature):
            raise Refusal(401, "Bad credentials")
        if self.retry_after is not None:
            raise Refusal(
                403,
                "You have exceeded a secondary rate limit. Please wait.",
                **{"retry-after": str(self.retry_after)},
            )
        if request.path == PATH:
            return
        if self.remaining == 0 and request.segments[-1] != "rate_limit":
            raise Refusal(403, "API rate limit exceeded for user ID 1.")
        if request.path.endswith("/") and request.path != "/":
            raise Refusal(404, "Not Found")

    def _routed(self, request: Received) -> Reply:
        if request.path == PATH and self.graphql != "none":
            if self.graphql_remaining == 0:
                told = {"type": "RATE_LIMITED", "message": "API rate limit exceeded"}
                return Reply(body={"errors": [told]})
            return answered(self, request)
        path = request.path.removeprefix(PREFIX)
        match request.method, [*request.segments[2:]]:
            case "GET", ["rate_limit"]:
                return self._rates()
            case "GET", ["search", "issues"]:
                return self._search(request)
            case "POST", ["app", "installations", _, "access_tokens"]:
                return self._mint()
            case _, ["repos", owner, name, *rest] if (owner, name.casefold()) == (OWNER, NAME):
                return self._of_repository(request, rest)
        raise Refusal(404, f"Not Found: {path}")

    def _person(self, login: str, right: Right) -> Reply:
        self.crowd.asked.append(login)
        if self.crowd.refuses:
            raise Refusal(403, "Must have push access to view collaborator permission.")
        if right is Right.MEMBERS:
            return Reply(status=204 if self.crowd.may(login, right) else 404, sound=False)
        permission = "write" if self.crowd.may(login, right) else "read"
        body = {
            "permission": permission,
            "role_name": permission,
            "user": a_user(login) | {"role_name": permission},
        }
        return Reply(body=body)

    def _of_repository(self, request: Received, rest: list[str]) -> Reply:
        if not self.visible:
            raise Refusal(404, "Not Found")
        query = request.query
        match request.method, rest:
            case "GET", []:
                return Reply(
                    body=a_repository(
                        self.repository,
                        has_issues=self.has_issues,
                        archived=self.archived,
                        private=self.private,
                        may_write=self.may_write,
                    )
                )
            case "GET", ["installation"]:
                return Reply(body=an_installation(self.repository))
            case "GET", ["labels"]:
                return self._page(request, list(self.labels.values()))
            case "POST", ["labels"]:
                return self._make_label(request.json["name"])
            case "GET", ["issues"]:
                return self._page(request, self._listed(query))
            case "GET", ["collaborators", login, *more] if more in ([], ["permission"]):
                return self._person(login, Right.WRITE if more else Right.MEMBERS)
            case _, ["issues", number, *more]:
                return self._of_issue(request, self._present(number), more)
        raise Refusal(404, "Not Found")

    def _of_issue(self, request: Received, number: int, more: list[str]) -> Reply:
        match request.method, more:
            case "GET", []:
                shown = self._stale.get(number) if self.lags else None
                sound = number not in self.spoiled
                return Reply(body=shown or self._shown(number), sound=sound)
            case "PATCH", []:
                return self._patch(number, request)
            case "GET", ["comments"]:
                since = request.query.get("since", "")
                listed = [c for c in self.comments[number] if c["updated_at"] >= since]
                return self._page(request, listed)
            case "POST", ["comments"]:
                return self._comment(number, request.json["body"])
            case "POST", ["labels"]:
                return self._add_labels(number, request.json["labels"])
            case "DELETE", ["labels", name]:
                return self._remove_label(number, name)
            case "GET", ["dependencies", "blocked_by"]:
                if not self.has_dependencies:
                    raise Refusal(404, "Not Found")
                listed = self._blockers(number)
                sound = not self.spoiled.intersection(
                    b for b in self.edges.get(number, []) if isinstance(b, int)
                )
                return replace(self._page(request, listed), sound=sound)
        raise Refusal(404, "Not Found")

    def _present(self, number: str) -> int:
        if not number.isdigit() or int(number) not in self.items:
            if number.isdigit() and int(number) in self.gone:
                gone = self.gone[int(number)]
                refusal = Refusal(gone.status, "")
                refusal.reply = gone
                raise refusal
            raise Refusal(404, "Not Found")
        return int(number)

    def _listed(self, query: Mapping[str, str]) -> list[int]:
        since = query.get("since", "")
        wanted = query.get("state", "open")
        found = [
            number
            for number in self.items
            if wanted in ("all", self.items[number]["state"])
            and (not since or _text(self.changed[number]) >= since)
        ]
        assert query.get("sort") == "created"
        assert query.get("direction") == "asc"
        return sorted(found)

    def _search(self, request: Received) -> Reply:
        words = request.query["q"].split()
        assert f"repo:{OWNER}/{NAME}" in words
        assert "is:issue" in words
        items = self.indexed
        if items is None:
            items = {number: self._shown(number) for number in self.items}
        found = [item for item in items.values() if _fits(item, request.query["q"])]
        page = self._page(request, found)
        scored = [{**item, "body": item["body"] or "", "score": 1.0} for item in page.body]
        body = {
            "total_count": len(found),
            "incomplete_results": self.incomplete,
            "search_type": "lexical",
            "items": scored,
        }
        return replace(page, body=body)

    def _patch(self, number: int, request: Received) -> Reply:
        if "if-match" in request.headers:
            raise Refusal(400, "Conditional request headers are not allowed in unsafe requests")
        fields = request.json
        self._remember(number)
        self._may_change()
        state = fields.get("state", self.items[number]["state"])
        closed_at = _text(self.clock()) if state == "closed" else None
        self.change(
            number, state=state, state_reason=fields.get("state_reason"), closed_at=closed_at
        )
        return Reply(body=self._shown(number))

    def _comment(self, number: int, body: str) -> Reply:
        if len(body) > 65536:
            raise Refusal(422, "Validation Failed: Body is too long")
        self._may_change()
        if self.items[number]["locked"]:
            raise Refusal(403, "Unable to create comment because issue is locked.")
        said = self.say(number, ACCOUNT, body)
        self.change(number)
        return Reply(status=201, body=said)

    def _add_labels(self, number: int, names: list[str]) -> Reply:
        self._remember(number)
        if self.may_write:
            for name in names:
                if name.casefold() not in self.labels and not self.makes_labels:
                    raise Refusal(422, "Validation Failed: label does not exist")
                self.labels.setdefault(name.casefold(), a_label(self.repository, name))
            present = self.names(number)
            known = {name.casefold() for name in present}
            added = [n for n in names if n.casefold() not in known]
            self.relabel(number, *present, *added)
        return Reply(body=self.items[number]["labels"])

    def _remove_label(self, number: int, name: str) -> Reply:
        self._remember(number)
        present = self.names(number)
        left = [n for n in present if n.casefold() != name.casefold()]
        if len(left) == len(present):
            raise Refusal(404, "Label does not exist")
        if self.may_write:
            self.relabel(number, *left)
        return Reply(body=self.items[number]["labels"])

    def _make_label(self, name: str) -> Reply:
        self._may_change()
        if name.casefold() in self.labels:
            raise Refusal(422, "Validation Failed: already_exists")
        assert "," not in name
        self.labels[name.casefold()] = a_label(self.repository, name)
        return Reply(status=201, body=self.labels[name.casefold()])

    def _may_change(self) -> None:
        if self.archived:
            raise Refusal(403, "Repository was archived so is read-only.")
        if not self.may_write:
            raise Refusal(403, "Resource not accessible by personal access token")

    def _mint(self) -> Reply:
        self.minted += 1
        token = f"ghs_77_minted{self.minted}"
        self.tokens = {token}
        ends = _text(self.clock() + timedelta(hours=1))
        return Reply(status=201, body={"token": token, "expires_at": ends})

    def _rates(self) -> Reply:
        reset = int((self.clock() + self.reset_in).timestamp())
        left = self.limit if self.remaining is None else self.remaining
        core = {"limit": self.limit, "used": self.limit - left, "remaining": left, "reset": reset}
        search = {"limit": 30, "used": 0, "remaining": 30, "reset": reset}
        return Reply(body={"resources": {"core": core, "search": search}, "rate": core})

    # How it is shown

    def _label(self, name: str) -> Json:
        return self.labels[name.casefold()]

    def _shown(self, number: int) -> Json:
        item = self.items[number]
        shown = {**item, "comments": len(self.comments.get(number, []))}
        if shown["state_reason"] is None:
            del shown["state_reason"]  # the description has no null among its words
        if self.has_dependencies:
            blockers = self._blockers(number)
            hidden = self.hidden_edges.get(number, 0)
            is_open = sum(b.get("state") == "open" for b in blockers)
            shown["issue_dependencies_summary"] = {
                "blocked_by": is_open + hidden,
                "total_blocked_by": len(blockers) + hidden,
                "blocking": 0,
                "total_blocking": 0,
            }
        return shown

    def _blockers(self, number: int) -> list[Json]:
        found = self.edges.get(number, [])
        return [
            {k: v for k, v in self.items[b].items() if v is not None or k != "state_reason"}
            if isinstance(b, int)
            else b
            for b in found
            if not isinstance(b, int) or b in self.items
        ]

    def _remember(self, number: int) -> None:
        self._stale.setdefault(number, self._shown(number))

    def _page(self, request: Received, every: list[Json]) -> Reply:
        size = int(request.query.get("per_page", "30"))
        assert 1 <= size <= 100
        page = int(request.query.get("page", "1"))
        shown = every[(page - 1) * size : page * size]
        shown = [self._shown(item) if isinstance(item, int) else item for item in shown]
        sound = not any(item.get("number") in self.spoiled for item in shown)
        headers = {}
        if page * size < len(every):
            others = {k: v for k, v in request.query.items() if k != "page"}
            query = "&".join(f"{k}={_quoted(v)}" for k, v in {**others, "page": page + 1}.items())
            headers["Link"] = f'<{request.url}?{query}>; rel="next", <{request.url}>; rel="last"'
        return Reply(body=shown, headers=headers, sound=sound)

    def _with_etag(self, request: Received, reply: Reply) -> Reply:
        if request.method != "GET" or reply.status != 200:
            return reply
        etag = f'W/"{hashlib.sha256(reply.content).hexdigest()}"'
        headers = {**reply.headers, "ETag": etag, "Cache-Control": "private, max-age=60"}
        if request.headers.get("if-none-match") == etag:
            return Reply(status=304, headers=headers, sound=False)
        return replace(reply, headers=headers)

    def _limit_headers(self, request: Received, reply: Reply) -> dict[str, str]:
        if request.path == PATH:
            return self._graphql_headers()
        if self.remaining is None:
            return {}
        if reply.status != 304 and request.segments[-1] != "rate_limit":
            self.counted += 1
            self.remaining = max(0, self.remaining - 1)
        return {
            "x-ratelimit-limit": str(self.limit),
            "x-ratelimit-remaining": str(self.remaining),
            "x-ratelimit-used": str(self.limit - self.remaining),
            "x-ratelimit-reset": str(int((self.clock() + self.reset_in).timestamp())),
            "x-ratelimit-resource": "search" if "search" in request.segments else "core",
        }

    def _graphql_headers(self) -> dict[str, str]:
        if self.graphql_remaining is None:
            return {}
        self.graphql_remaining = max(0, self.graphql_remaining - 1)
        return {
            "x-ratelimit-limit": "5000",
            "x-ratelimit-remaining": str(self.graphql_remaining),
            "x-ratelimit-reset": str(int((self.clock() + self.reset_in).timestamp())),
            "x-ratelimit-resource": "graphql",
        }


def _fits(item: Json, query: str) -> bool:
    """Tell whether an issue fits a query of ``label:`` and ``state:`` qualifiers."""
    labels = {label["name"].casefold() for label in item["labels"]}
    wanted = re.findall(r'label:(?:"([^"]*)"|(\S+))', query)
    if "state:open" in query.split() and item["state"] != "open":
        return False
    return all((quoted or bare).casefold() in labels for quoted, bare in wanted)


def _quoted(value: object) -> str:
    return quote(str(value), safe="")


def _text(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
