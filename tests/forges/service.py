"""A forge in memory over a bare repository, as GitHub, GitLab or Gitea shows it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.forges.shapes import smallest
from tests.trackers.server.contract import OpenApiContract
from tests.trackers.server.exchange import Received, Reply
from tests.trackers.server.serving import TestServer, serving
from tests.workspaces.remotes import git

TOKEN = "forge-token-7c0ffee-of-a-test"
PATH = "team/thing"
KINDS = ("github", "gitlab", "gitea")
_PREFIX = {"github": "/api/v3", "gitlab": "/api/v4", "gitea": "/api/v1"}


@dataclass
class Request:
    """A pull request."""

    number: int
    title: str
    body: str
    branch: str
    base: str
    draft: bool = False
    state: str = "open"
    labels: list[str] = field(default_factory=list)
    reviewers: list[str] = field(default_factory=list)
    assignees: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)


@dataclass
class ForgeService:
    """The repository: its pull requests, and what was told of commits.

    ``people`` are the users that there are. ``statuses`` are by commit and name.
    """

    kind: str
    bare: Path
    requests: list[Request] = field(default_factory=list)
    statuses: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    people: tuple[str, ...] = ("ann", "bob")
    labels: tuple[str, ...] = ("sortie", "bot")

    def head(self, branch: str) -> str | None:
        """Return the commit of a branch."""
        return (
            git(self.bare, "rev-parse", "-q", "--verify", f"refs/heads/{branch}", ok=False) or None
        )

    def answer(self, request: Received) -> Reply:
        """See Service."""
        said = request.headers.get("authorization", "") + request.headers.get("private-token", "")
        if TOKEN not in said:
            return Reply(status=401, body={"message": "Bad credentials"})
        root = {
            "github": f"/repos/{PATH}",
            "gitlab": f"/projects/{PATH.replace('/', '%2F')}",
            "gitea": f"/repos/{PATH}",
        }[self.kind]
        path = request.path.removeprefix(_PREFIX[self.kind])
        if path == "/users":
            found = [p for p in self.people if p == request.query.get("username")]
            return Reply(body=[{"id": self.people.index(p) + 1, "username": p} for p in found])
        if not path.startswith(root):
            return Reply(status=404, body={"message": "Not Found"})
        return self._about_repository(request, path.removeprefix(root))

    def _about_repository(self, request: Received, path: str) -> Reply:
        requests = "/merge_requests" if self.kind == "gitlab" else "/pulls"
        routes: list[tuple[str, str, Callable[..., Reply]]] = [
            ("GET", "", self._repository),
            ("GET", requests, self._list),
            ("POST", requests, self._open),
            ("GET", rf"{requests}/(\d+)", self._one),
            ("PATCH|PUT", rf"{requests}/(\d+)", self._change),
            ("PUT|POST", rf"{requests}/(\d+)/merge", self._merge),
            ("GET", rf"{requests}/(\d+)/(?:reviews|reviewers|comments|discussions)", self._nothing),
            ("POST", rf"{requests}/(\d+)/requested_reviewers", self._reviewers),
            ("POST", r"/issues/(\d+)/labels", self._add_labels),
            ("POST", r"/issues/(\d+)/assignees", self._add_assignees),
            ("GET|POST", rf"(?:/issues|{requests})/(\d+)/(?:comments|notes)", self._comments),
            ("GET", r"/labels", self._labels),
            ("POST", r"/statuses/(\w+)", self._status),
            ("GET", r"(?:/repository)?/commits/(\w+)/(statuses|status|check-runs)", self._checks),
        ]
        for method, pattern, do in routes:
            if request.method in method.split("|") and (m := re.fullmatch(pattern, path)):
                return do(request, *m.groups())
        return Reply(status=404, body={"message": "Not Found"})

    def _repository(self, request: Received) -> Reply:
        del request
        if self.kind == "github":
            return Reply(body=smallest("full-repository", full_name=PATH, default_branch="main"))
        return Reply(body={"id": 7, "full_name": PATH, "default_branch": "main"})

    def _list(self, request: Received) -> Reply:
        found = list(self.requests)
        if request.query.get("state") in ("open", "opened"):
            found = [one for one in found if one.state == "open"]
        branch = request.query.get("head", "").partition(":")[2]
        branch = branch or request.query.get("source_branch", "")
        if branch and self.kind != "gitea":
            found = [one for one in found if one.branch == branch]
        short = "pull-request-simple" if self.kind == "github" else ""
        return Reply(body=[self._shown(one, short) for one in reversed(found)])

    def _open(self, request: Received) -> Reply:
        body = request.json
        branch = body.get("source_branch") or body["head"]
        base = body.get("target_branch") or body["base"]
        if self.head(branch) is None or self.head(base) is None:
            return Reply(
                status=422, body={"message": "Validation Failed: head is invalid"}, sound=False
            )
        if self.head(branch) == self.head(base):
            message = f"Validation Failed: No commits between {base} and {branch}"
            return Reply(status=422, body={"message": message}, sound=False)
        if any(one.branch == branch and one.state == "open" for one in self.requests):
            message = f"A pull request already exists for {branch}."
            if self.kind == "github":
                said = {"message": "Validation Failed", "errors": [{"message": message}]}
                return Reply(status=422, body=said, sound=False)
            return Reply(status=409, body={"message": [message]})
        title, text = body["title"], body.get("body") or body.get("description") or ""
        one = Request(len(self.requests) + 1, title, text, branch, base)
        for mark in ("Draft: ", "WIP: "):
            if title.startswith(mark):
                one.draft, one.title = True, title.removeprefix(mark)
        one.draft = one.draft or bool(body.get("draft"))
        if isinstance(body.get("labels"), str):
            one.labels = body["labels"].split(",")
        elif self.kind == "gitea":
            one.labels = [self.labels[number - 1] for number in body.get("labels") or ()]
            one.assignees = list(body.get("assignees") or ())
        one.reviewers = [self.people[i - 1] for i in body.get("reviewer_ids") or ()]
        one.assignees += [self.people[i - 1] for i in body.get("assignee_ids") or ()]
        self.requests.append(one)
        return Reply(status=201, body=self._shown(one, "pull-request"))

    def _one(self, request: Received, number: str) -> Reply:
        del request
        return Reply(body=self._shown(self.requests[int(number) - 1], "pull-request"))

    def _change(self, request: Received, number: str) -> Reply:
        one, body = self.requests[int(number) - 1], request.json
        one.title = body.get("title", one.title).removeprefix("Draft: ").removeprefix("WIP: ")
        one.body = body.get("body", body.get("description", one.body))
        for label in filter(None, body.get("add_labels", "").split(",")):
            if label not in one.labels:
                one.labels.append(label)
        return self._one(request, number)

    def _merge(self, request: Received, number: str) -> Reply:
        one, body = self.requests[int(number) - 1], request.json
        if one.draft:
            return Reply(status=405, body={"message": "it is a draft"})
        if (body.get("sha") or body.get("head_commit_id")) != self.head(one.branch):
            return Reply(status=409, body={"message": "head moved"})
        one.state = "merged"
        if self.kind == "github":
            return Reply(body={"sha": self.head(one.branch), "merged": True, "message": "merged"})
        return Reply(body=None if self.kind == "gitea" else self._shown(one, ""))

    def _nothing(self, request: Received, number: str) -> Reply:
        del request, number
        return Reply(body=[])

    def _reviewers(self, request: Received, number: str) -> Reply:
        names = request.json["reviewers"]
        if unknown := [name for name in names if name not in self.people]:
            message = f"Reviews may only be requested from collaborators: {', '.join(unknown)}"
            return Reply(status=422, body={"message": message}, sound=False)
        one = self.requests[int(number) - 1]
        one.reviewers += names
        shape = "pull-request-simple" if self.kind == "github" else ""
        return Reply(status=201, body=self._shown(one, shape))

    def _add_labels(self, request: Received, number: str) -> Reply:
        one = self.requests[int(number) - 1]
        for label in request.json["labels"]:
            one.labels.append(label if isinstance(label, str) else self.labels[label - 1])
        if self.kind == "gitea":
            return Reply(body=[{"id": 1, "name": name} for name in one.labels])
        return Reply(body=[smallest("label", name=name) for name in one.labels])

    def _add_assignees(self, request: Received, number: str) -> Reply:
        one = self.requests[int(number) - 1]
        one.assignees += request.json["assignees"]
        return Reply(status=201, body=smallest("issue", number=int(number)))

    def _comments(self, request: Received, number: str) -> Reply:
        one = self.requests[int(number) - 1]
        if request.method == "POST":
            one.comments.append(request.json["body"])
        shown = [
            smallest("issue-comment", id=at, body=text)
            if self.kind == "github"
            else {"id": at, "body": text}
            for at, text in enumerate(one.comments, 1)
        ]
        return Reply(status=201, body=shown[-1]) if request.method == "POST" else Reply(body=shown)

    def _labels(self, request: Received) -> Reply:
        del request
        return Reply(body=[{"id": at, "name": name} for at, name in enumerate(self.labels, 1)])

    def _status(self, request: Received, commit: str) -> Reply:
        body = request.json
        if git(self.bare, "cat-file", "-t", commit, ok=False) != "commit":
            return Reply(status=422, body={"message": f"No commit found for SHA: {commit}"})
        name = body.get("context") or body["name"]
        known = self.statuses.get((commit, name))
        if self.kind == "gitlab" and known is not None and known[0] == body["state"]:
            message = "Cannot transition status via :succeed from :success"
            return Reply(status=400, body={"message": message})
        self.statuses[commit, name] = (body["state"], body["description"])
        return Reply(status=201, body={"id": 1, "state": body["state"], "context": name})

    def _checks(self, request: Received, commit: str, what: str) -> Reply:
        del request
        if what == "check-runs":
            return Reply(body={"total_count": 0, "check_runs": []})
        told = [
            {
                "id": at,
                "context": name,
                "name": name,
                "state": state,
                "status": state,
                "target_url": None,
                "allow_failure": False,
            }
            for at, ((of, name), (state, _)) in enumerate(self.statuses.items(), 1)
            if of == commit
        ]
        if what == "statuses":
            return Reply(body=told)
        told = [smallest("simple-commit-status", **_picked(one)) for one in told]
        return Reply(
            body=smallest(
                "combined-commit-status", state="success", statuses=told, total_count=len(told)
            )
        )

    def _shown(self, one: Request, shape: str) -> Any:
        head, url = self.head(one.branch), f"https://forge.example/{PATH}/pulls/{one.number}"
        people = [{"login": name, "username": name, "id": 1} for name in one.reviewers]
        if self.kind == "gitlab":
            return {
                "id": 1000 + one.number,
                "iid": one.number,
                "web_url": url,
                "state": {"open": "opened"}.get(one.state, one.state),
                "source_branch": one.branch,
                "target_branch": one.base,
                "title": f"Draft: {one.title}" if one.draft else one.title,
                "description": one.body,
                "sha": head,
                "draft": one.draft,
                "labels": one.labels,
                "detailed_merge_status": "mergeable",
                "reviewers": people,
            }
        labels = [{"id": 1, "name": name} for name in one.labels]
        if self.kind == "gitea":
            return {
                "id": 1000 + one.number,
                "number": one.number,
                "html_url": url,
                "state": "open" if one.state == "open" else "closed",
                "merged": one.state == "merged",
                "mergeable": True,
                "title": f"WIP: {one.title}" if one.draft else one.title,
                "body": one.body,
                "draft": one.draft,
                "labels": labels,
                "head": {"ref": one.branch, "sha": head, "repo": {"full_name": PATH}},
                "base": {"ref": one.base},
            }
        whole = smallest(shape)
        user = smallest("simple-user")
        merged = {"merged": one.state == "merged"} if shape == "pull-request" else {}
        return (
            whole
            | merged
            | {
                "id": 1000 + one.number,
                "node_id": f"PR_{one.number}",
                "number": one.number,
                "html_url": url,
                "state": "open" if one.state == "open" else "closed",
                "merged_at": "2026-01-02T03:04:05Z" if one.state == "merged" else None,
                "title": one.title,
                "body": one.body,
                "draft": one.draft,
                "labels": [
                    smallest("label", name=name, description="", id=1) for name in one.labels
                ],
                "requested_reviewers": [user | {"login": name} for name in one.reviewers],
                "assignees": [user | {"login": name} for name in one.assignees],
                "head": whole["head"] | {"ref": one.branch, "sha": head or "gone"},
                "base": whole["base"] | {"ref": one.base},
            }
        )


def _picked(one: dict[str, Any]) -> dict[str, Any]:
    return {key: one[key] for key in ("id", "context", "state", "target_url")}


class DescribedOnly(OpenApiContract):
    """Holds to a description what it describes; the rest is written by hand."""

    def _is_described(self, request: Received) -> bool:
        path = request.path.removeprefix(self._prefix)
        return "/statuses/" not in path

    def check_request(self, request: Received) -> None:
        """See OpenApiContract."""
        if self._is_described(request):
            super().check_request(request)

    def check_answer(self, request: Received, reply: Reply) -> None:
        """See OpenApiContract."""
        if self._is_described(request):
            super().check_answer(request, reply)


@contextmanager
def forge_server(kind: str, bare: Path) -> Iterator[tuple[ForgeService, TestServer]]:
    """Run a forge over a bare repository."""
    service = ForgeService(kind, bare)
    contract = None
    if kind == "github":
        description = Path(__file__).with_name("github.openapi.json.gz")
        contract = DescribedOnly(description, prefix=_PREFIX["github"])
    with serving(service, contract) as server:
        yield service, server
