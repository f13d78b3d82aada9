"""The repository as GitHub's REST API shows it."""

from __future__ import annotations

from typing import Any

from tests.forges.faces import ME, not_found, paged, refused, time_at
from tests.forges.github_checks import GitHubChecksFace
from tests.forges.github_graphql import GRAPHQL_PATH, answered
from tests.forges.hosted import PATH, HostedRepository
from tests.forges.nouns import Remark, Request, there
from tests.forges.shapes import smallest
from tests.trackers.server.exchange import Received, Reply

_ROLES = {"maintain": "write"}


class GitHubFace(GitHubChecksFace):
    """Pull requests, reviews, comments, labels."""

    def __init__(self, hosted: HostedRepository) -> None:
        super().__init__(hosted)
        one, issue = r"/pulls/(\d+)", r"/issues/(\d+)"
        self.routes += [
            ("GET", "", self._repository, ""),
            ("GET", "/pulls", self._list, "state head"),
            ("POST", "/pulls", self._open, ""),
            ("GET", one, self._one, ""),
            ("PATCH", one, self._change, ""),
            ("PUT", f"{one}/merge", self._merge, ""),
            ("PUT", f"{one}/update-branch", self._update, ""),
            ("GET", f"{one}/reviews", self._reviews, ""),
            ("GET", f"{one}/comments", self._review_comments, ""),
            ("POST", rf"{one}/comments/(\d+)/replies", self._answer_in, ""),
            ("POST", f"{one}/requested_reviewers", self._reviewers, ""),
            ("GET", f"{issue}/comments", self._comments, ""),
            ("POST", f"{issue}/comments", self._comment, ""),
            ("POST", r"/(issues|pulls)/comments/(\d+)/reactions", self._react, ""),
            ("POST", f"{issue}/labels", self._add_labels, ""),
            ("DELETE", f"{issue}/labels/([^/]+)", self._remove_label, ""),
            ("GET", r"/labels/([^/]+)", self._label, ""),
            ("POST", f"{issue}/assignees", self._assign, ""),
            ("GET", r"/collaborators/([^/]+)/permission", self._permission, ""),
            ("GET", r"/compare/(.+)\.\.\.(\w+)", self._compare, ""),
            ("DELETE", r"/git/refs/heads/(.+)", self._delete, ""),
        ]

    def outside(self, request: Received, path: str) -> Reply:
        """Answer GraphQL."""
        if request.path == GRAPHQL_PATH:
            return answered(self.hosted, request)
        return not_found()

    def _repository(self, request: Received) -> Reply:
        del request
        return Reply(body=smallest("full-repository", full_name=PATH, default_branch="main"))

    def _list(self, request: Received) -> Reply:
        found = [one for one in self.hosted.requests if one.number not in self.hosted.gone]
        if request.query.get("state") == "open":
            found = [one for one in found if one.state == "open"]
        if branch := request.query.get("head", "").partition(":")[2]:
            found = [one for one in found if one.branch == branch]
        shown = [self._shown(one, "pull-request-simple") for one in reversed(found)]
        return paged(request, shown)

    def _open(self, request: Received) -> Reply:
        body = request.json
        one = self.opened(request, body["head"], body["base"])
        if isinstance(one, Reply):
            if one.status == 409:
                said = {"message": "Validation Failed", "errors": [one.body]}
                return Reply(status=422, body=said, sound=False)
            return one
        return Reply(status=201, body=self._shown(one, "pull-request"))

    def _one(self, request: Received, number: str) -> Reply:
        del request
        return Reply(body=self._shown(self.one(number), "pull-request"))

    def _change(self, request: Received, number: str) -> Reply:
        self.change(self.one(number), request.json)
        return self._one(request, number)

    def _merge(self, request: Received, number: str) -> Reply:
        one, body = self.one(number), request.json
        if self.hosted.refusal(one) is not None or self.hosted.queue:
            return refused(405, "Pull Request is not mergeable")
        if body.get("sha") != one.seen:
            message = "Head branch was modified. Review and try the merge again."
            return refused(409, message)
        sha = self.hosted.merge(one, body.get("merge_method", "merge"))
        message = "Pull Request successfully merged"
        return Reply(body={"sha": sha, "merged": True, "message": message})

    def _update(self, request: Received, number: str) -> Reply:
        one = self.one(number)
        if (request.json or {}).get("expected_head_sha") != one.seen:
            return refused(422, "expected head sha didn't match current head ref.")
        if not self.hosted.is_behind(one):
            return refused(422, "There are no new commits on the base branch.")
        if self.hosted.conflicts(one):
            return refused(422, "merge conflict between base and head")
        self.hosted.git.merge_into(one.branch, one.base)
        self.hosted.observe()
        body = {"message": "Updating pull request branch.", "url": "https://forge.example/x"}
        return Reply(status=202, body=body)

    def _reviews(self, request: Received, number: str) -> Reply:
        shown = [
            smallest("pull-request-review", id=said.id, state=said.state.upper(), body=said.body)
            for said in self.one(number).opinions
        ]
        return paged(request, shown)

    def _review_comments(self, request: Received, number: str) -> Reply:
        threads = self.one(number).threads
        shown = [
            _review_comment(note, None if note is thread.notes[0] else thread.notes[0])
            for thread in threads
            for note in thread.notes
        ]
        return paged(request, shown)

    def _answer_in(self, request: Received, number: str, first: str) -> Reply:
        threads = {thread.notes[0].id: thread for thread in self.one(number).threads}
        thread = there(threads, first)
        note = self.hosted.say_in(int(number), thread, ME, request.json["body"])
        return Reply(status=201, body=_review_comment(note, thread.notes[0]))

    def _reviewers(self, request: Received, number: str) -> Reply:
        names = request.json["reviewers"]
        if unknown := [name for name in names if name not in self.hosted.people]:
            message = f"Reviews may only be requested from collaborators: {', '.join(unknown)}"
            return refused(422, message)
        one = self.one(number)
        one.reviewers += names
        return Reply(status=201, body=self._shown(one, "pull-request-simple"))

    def _comments(self, request: Received, number: str) -> Reply:
        shown = [smallest("issue-comment", id=c.id, body=c.body) for c in self.one(number).comments]
        return paged(request, shown)

    def _comment(self, request: Received, number: str) -> Reply:
        self.one(number)
        made = self.hosted.add_comment(int(number), ME, request.json["body"])
        return Reply(status=201, body=smallest("issue-comment", id=made.id, body=made.body))

    def _react(self, request: Received, kind: str, id_: str) -> Reply:
        requests = self.hosted.requests
        found = {c.id: c for one in requests for c in one.comments}
        if kind == "pulls":
            found = {c.id: c for one in requests for t in one.threads for c in t.notes}
        note, content = there(found, id_), request.json["content"]
        known = content in note.reactions
        note.reactions += [] if known else [content]
        return Reply(status=200 if known else 201, body=smallest("reaction", content=content))

    def _add_labels(self, request: Received, number: str) -> Reply:
        one, hosted = self.one(number), self.hosted
        for name in request.json["labels"]:
            hosted.labels = tuple(dict.fromkeys([*hosted.labels, name]))  # GitHub makes it
            one.labels += [] if name in one.labels else [name]
        hosted.touch(one)
        return Reply(body=[smallest("label", name=name) for name in one.labels])

    def _remove_label(self, request: Received, number: str, name: str) -> Reply:
        one, name = self.one(number), request.segments[-1]
        if name not in one.labels:
            return Reply(status=404, body=smallest("basic-error", message="Label does not exist"))
        one.labels.remove(name)
        self.hosted.touch(one)
        return Reply(body=[smallest("label", name=name) for name in one.labels])

    def _label(self, request: Received, name: str) -> Reply:
        name = request.segments[-1]
        if name not in self.hosted.labels:
            return not_found()
        return Reply(body=smallest("label", name=name))

    def _assign(self, request: Received, number: str) -> Reply:
        one = self.one(number)
        known = self.hosted.people
        one.assignees += [name for name in request.json["assignees"] if name in known]
        return Reply(status=201, body=smallest("issue", number=int(number)))

    def _permission(self, request: Received, name: str) -> Reply:
        name = request.segments[-2]
        if name not in self.hosted.people:
            return not_found(f"{name} is not a user")
        role = self.hosted.permissions.get(name, "read")
        body = {"permission": _ROLES.get(role, role), "role_name": role, "user": None}
        return Reply(body=body)

    def _compare(self, request: Received, base: str, head: str) -> Reply:
        base = request.segments[-1].partition("...")[0]
        if base not in self.hosted.branches or not self.hosted.git.has(head):
            return not_found()
        behind = self.hosted.git.behind(self.hosted.branches[base], head)
        return Reply(body=smallest("commit-comparison", behind_by=behind, ahead_by=1))

    def _delete(self, request: Received, branch: str) -> Reply:
        del request
        if not self.hosted.git.delete(branch):
            return refused(422, "Reference does not exist")
        return Reply(status=204)

    def _shown(self, one: Request, shape: str) -> Any:
        whole = smallest(shape)
        user = smallest("simple-user")
        conflicts = self.hosted.conflicts(one)
        repo = whole["head"]["repo"] | ({"id": 8} if one.fork else {})
        more = {
            "merged": one.state == "merged",
            "mergeable": None if one.computing else not conflicts,
        }
        return (
            whole
            | (more if shape == "pull-request" else {})
            | {
                "id": 1000 + one.number,
                "node_id": f"PR_{one.number}",
                "number": one.number,
                "html_url": f"https://forge.example/{PATH}/pulls/{one.number}",
                "state": "open" if one.state == "open" else "closed",
                "updated_at": time_at(one.updated),
                "merged_at": time_at(one.updated) if one.state == "merged" else None,
                "title": one.title,
                "body": one.body,
                "draft": one.draft,
                "labels": [
                    smallest("label", name=name, description="", id=1) for name in one.labels
                ],
                "requested_reviewers": [user | {"login": name} for name in one.reviewers],
                "assignees": [user | {"login": name} for name in one.assignees],
                "head": whole["head"]
                | {"ref": one.branch, "sha": one.seen or "gone", "repo": repo},
                "base": whole["base"] | {"ref": one.base},
            }
        )


def _review_comment(note: Remark, first: Remark | None) -> Any:
    more = {} if first is None else {"in_reply_to_id": first.id}
    return smallest("pull-request-review-comment", id=note.id, body=note.body, **more)
