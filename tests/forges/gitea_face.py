"""The repository as Gitea's API shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.forges.faces import not_found, refused, time_at
from tests.forges.gitea_talk import GiteaTalk
from tests.forges.hosted import GREEN, PATH, HostedRepository
from tests.forges.nouns import MadeCheck, Request
from tests.trackers.server.exchange import Received, Reply

_STATES = {"cancelled": "skipped", "neutral": "warning"}


class GiteaFace(GiteaTalk):
    """Pull requests, reviews, comments, labels by their numbers."""

    prefix = "/api/v1"

    def __init__(self, hosted: HostedRepository) -> None:
        super().__init__(hosted)
        one, issue = r"/pulls/(\d+)", r"/issues/(\d+)"
        self.routes = [
            ("GET", "", self._repository, ""),
            ("GET", "/pulls", self._list, "state sort"),
            ("POST", "/pulls", self._open, ""),
            ("GET", one, self._one, ""),
            ("PATCH", one, self._change, ""),
            ("POST", f"{one}/merge", self._merge, ""),
            ("DELETE", f"{one}/merge", self._cancel, ""),
            ("POST", f"{one}/update", self._update, "style"),
            ("POST", f"{one}/requested_reviewers", self._reviewers, ""),
            ("GET", f"{one}/reviews", self._reviews, ""),
            ("GET", rf"{one}/reviews/(\d+)/comments", self._review_comments, ""),
            ("GET", f"{issue}/comments", self._comments, ""),
            ("POST", f"{issue}/comments", self._comment, ""),
            ("GET", f"{issue}/timeline", self._timeline, ""),
            ("POST", r"/issues/comments/(\d+)/reactions", self._react, ""),
            ("GET", f"{issue}/labels", self._labels_on, ""),
            ("POST", f"{issue}/labels", self._add_labels, ""),
            ("DELETE", rf"{issue}/labels/(\d+)", self._remove_label, ""),
            ("GET", "/labels", self._labels, ""),
            ("POST", r"/statuses/(\w+)", self._status, ""),
            ("GET", r"/commits/(\w+)/statuses", self._statuses, ""),
            ("GET", r"/collaborators/([^/]+)/permission", self._permission, ""),
            ("GET", r"/branches/([^/]+)", self._branch, ""),
            ("DELETE", r"/branches/([^/]+)", self._delete, ""),
        ]

    def root(self) -> str:
        """See Face."""
        return f"/repos/{PATH}"

    def _repository(self, request: Received) -> Reply:
        del request
        return Reply(body={"id": 7, "full_name": PATH, "default_branch": "main"})

    def _list(self, request: Received) -> Reply:
        found = [one for one in self.hosted.requests if one.number not in self.hosted.gone]
        if request.query.get("state") == "open":
            found = [one for one in found if one.state == "open"]
        found.sort(key=lambda one: -one.updated)
        return self._paged(request, [self._shown(one) for one in found])

    def _open(self, request: Received) -> Reply:
        body = request.json
        if (reply := self._unknown_assignees(body)) is not None:
            return reply
        one = self.opened(request, body["head"], body["base"])
        if isinstance(one, Reply):
            return one
        one.labels = [self.hosted.labels[number - 1] for number in body.get("labels") or ()]
        one.assignees = list(body.get("assignees") or ())
        return Reply(status=201, body=self._shown(one))

    def _one(self, request: Received, number: str) -> Reply:
        del request
        return Reply(body=self._shown(self.one(number)))

    def _change(self, request: Received, number: str) -> Reply:
        one, body = self.one(number), request.json
        if (reply := self._unknown_assignees(body)) is not None:
            return reply
        one.assignees = list(body.get("assignees", one.assignees))
        self.change(one, body)
        return self._one(request, number)

    def _unknown_assignees(self, body: Mapping[str, Any]) -> Reply | None:
        known = self.hosted.people
        unknown = [name for name in body.get("assignees") or () if name not in known]
        return refused(422, f"Assignee does not exist: [name: {unknown[0]}]") if unknown else None

    def _merge(self, request: Received, number: str) -> Reply:
        one, body, hosted = self.one(number), request.json, self.hosted
        if body.get("merge_when_checks_succeed"):
            if one.queued:
                message = "pull request is already scheduled to auto merge when checks succeed"
                return refused(409, message)
            if not all(check.state in GREEN for check in hosted.checks(one.seen)):
                hosted.merge_later(one, body["Do"])
                return Reply(status=201)
        if hosted.refusal(one) is not None:
            return refused(405, "Please try again later")
        if body.get("head_commit_id") not in (None, "", one.seen):
            return refused(409, "head out of date")
        hosted.merge(one, body["Do"])
        return Reply()

    def _cancel(self, request: Received, number: str) -> Reply:
        del request
        return Reply(status=204) if self.hosted.cancel(self.one(number)) else not_found()

    def _update(self, request: Received, number: str) -> Reply:
        one = self.one(number)
        assert request.query["style"] == "merge"
        if self.hosted.conflicts(one):
            return refused(409, "merge failed because of conflict")
        self.hosted.git.merge_into(one.branch, one.base)
        self.hosted.observe()
        return Reply()

    def _labels(self, request: Received) -> Reply:
        shown = [{"id": at, "name": name} for at, name in enumerate(self.hosted.labels, 1)]
        return self._paged(request, shown)

    def _shown_labels(self, one: Request) -> list[dict[str, Any]]:
        known = [*self.hosted.labels, *self.hosted.labels_above]
        return [{"id": known.index(name) + 1, "name": name} for name in one.labels]

    def _labels_on(self, request: Received, number: str) -> Reply:
        del request
        return Reply(body=self._shown_labels(self.one(number)))

    def _add_labels(self, request: Received, number: str) -> Reply:
        one = self.one(number)
        for id_ in request.json["labels"]:
            name = self.hosted.labels[id_ - 1]
            one.labels += [] if name in one.labels else [name]
        self.hosted.touch(one)
        return Reply(body=self._shown_labels(one))

    def _remove_label(self, request: Received, number: str, id_: str) -> Reply:
        del request
        known = [*self.hosted.labels, *self.hosted.labels_above]
        one, name = self.one(number), known[int(id_) - 1]
        if name in one.labels:
            one.labels.remove(name)
        self.hosted.touch(one)
        return Reply(status=204)

    def _status(self, request: Received, commit: str) -> Reply:
        body = request.json
        if not self.hosted.git.has(commit):
            return refused(422, f"No commit found for SHA: {commit}")
        self.hosted.statuses[commit, body["context"]] = (body["state"], body["description"])
        self.hosted.observe()
        return Reply(status=201, body={"id": 1, "status": body["state"]})

    def _statuses(self, request: Received, commit: str) -> Reply:
        made = self.hosted.checks(commit)
        return self._paged(request, [_shown_check(check) for check in reversed(made)])

    def _permission(self, request: Received, name: str) -> Reply:
        name = request.segments[-2]
        if name not in self.hosted.people:
            return not_found("user does not exist")
        return Reply(body={"permission": self.hosted.permissions.get(name, "read")})

    def _branch(self, request: Received, name: str) -> Reply:
        name = request.segments[-1]
        if name not in self.hosted.branches:
            return not_found()
        required = list(self.hosted.required) if name == "main" else []
        return Reply(
            body={
                "name": name,
                "protected": bool(required),
                "enable_status_check": bool(required),
                "status_check_contexts": required,
            }
        )

    def _delete(self, request: Received, name: str) -> Reply:
        del name
        if not self.hosted.git.delete(request.segments[-1]):
            return not_found()
        return Reply(status=204)

    def _shown(self, one: Request) -> dict[str, Any]:
        hosted = self.hosted
        base = hosted.branches.get(one.base)
        head = one.seen
        mergeable = not (one.computing or one.draft or hosted.conflicts(one))
        return {
            "id": 1000 + one.number,
            "number": one.number,
            "html_url": f"https://forge.example/{PATH}/pulls/{one.number}",
            "state": "open" if one.state == "open" else "closed",
            "merged": one.state == "merged",
            "mergeable": mergeable,
            "title": f"WIP: {one.title}" if one.draft else one.title,
            "body": one.body,
            "draft": one.draft,
            "updated_at": time_at(one.updated),
            "comments": len(one.comments),
            "labels": self._shown_labels(one),
            "assignees": [{"login": name} for name in one.assignees] or None,
            "head": {
                "ref": one.branch,
                "sha": head,
                "repo": {"full_name": "mallory/thing" if one.fork else PATH},
            },
            "base": {"ref": one.base, "sha": base},
            "merge_base": hosted.git.merge_base(base, head) if base and head else None,
        }


def _shown_check(check: MadeCheck) -> dict[str, Any]:
    return {
        "id": check.id,
        "context": check.name,
        "status": _STATES.get(check.state, check.state),
        "target_url": None,
    }
