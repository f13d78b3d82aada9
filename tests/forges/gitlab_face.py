"""The repository as GitLab's API shows it."""

from __future__ import annotations

from typing import Any

from tests.forges.faces import not_found, paged, refused, time_at
from tests.forges.gitlab_graphql import GRAPHQL_PATH, GitLabGraphql
from tests.forges.gitlab_talk import GitLabTalk
from tests.forges.hosted import PATH, HostedRepository
from tests.forges.nouns import MadeCheck, Request
from tests.trackers.server.exchange import Received, Reply

_STATES = {
    "failure": "failed",
    "cancelled": "canceled",
    "pending": "running",
    "neutral": "manual",
}
_REFUSALS = {
    "closed": "not_open",
    "draft": "draft_status",
    "behind": "need_rebase",
    "approvals": "not_approved",
    "threads": "discussions_not_resolved",
    "checks": "ci_must_pass",
}
_LEVELS = {"read": 20, "write": 30, "maintain": 40, "admin": 50}


class GitLabFace(GitLabTalk):
    """Merge requests, jobs, discussions."""

    prefix = "/api/v4"

    def __init__(self, hosted: HostedRepository) -> None:
        super().__init__(hosted)
        self.graphql = GitLabGraphql(self)
        one = r"/merge_requests/(\d+)"
        more = "include_diverged_commits_count include_rebase_in_progress"
        self.routes = [
            ("GET", "", self._project, ""),
            (
                "GET",
                "/merge_requests",
                self._list,
                "state source_branch iids[] with_merge_status_recheck",
            ),
            ("POST", "/merge_requests", self._open, ""),
            ("GET", one, self._one, more),
            ("PUT", one, self._change, ""),
            ("PUT", f"{one}/merge", self._merge, ""),
            ("PUT", f"{one}/rebase", self._rebase, ""),
            ("POST", f"{one}/cancel_merge_when_pipeline_succeeds", self._cancel, ""),
            ("GET", f"{one}/reviewers", self._reviewers, ""),
            ("GET", f"{one}/approvals", self._approvals, ""),
            ("GET", f"{one}/discussions", self._discussions, ""),
            ("GET", rf"{one}/discussions/(\w+)", self._discussion, ""),
            ("POST", rf"{one}/discussions/(\w+)/notes", self._answer_in, ""),
            ("GET", f"{one}/notes", self._notes, ""),
            ("POST", f"{one}/notes", self._note, ""),
            ("POST", rf"{one}/notes/(\d+)/award_emoji", self._award, ""),
            ("GET", r"/labels/([^/]+)", self._label, ""),
            ("POST", r"/statuses/(\w+)", self._status, ""),
            ("GET", r"/repository/commits/(\w+)", self._commit, ""),
            ("GET", r"/repository/commits/(\w+)/statuses", self._statuses, ""),
            ("DELETE", r"/repository/branches/([^/]+)", self._delete, ""),
            ("GET", "/members/all", self._members, "query"),
            ("GET", r"/jobs/(\d+)/trace", self._trace, ""),
            ("POST", r"/jobs/(\d+)/retry", self._retry, ""),
        ]

    def root(self) -> str:
        """See Face."""
        return f"/projects/{PATH.replace('/', '%2F')}"

    def outside(self, request: Received, path: str) -> Reply:
        """Answer who somebody is, and questions of GraphQL."""
        if request.path == GRAPHQL_PATH and request.method == "POST":
            return self.graphql.answer(request)
        if path != "/users":
            return not_found()
        people = self.hosted.people
        return Reply(body=[self.user(p) for p in people if p == request.query.get("username")])

    def _project(self, request: Received) -> Reply:
        del request
        return Reply(body={"id": 7, "path_with_namespace": PATH, "default_branch": "main"})

    def _list(self, request: Received) -> Reply:
        found = [one for one in self.hosted.requests if one.number not in self.hosted.gone]
        if request.query.get("state") == "opened":
            found = [one for one in found if one.state == "open"]
        if numbers := {value for key, value in request.pairs if key == "iids[]"}:
            found = [one for one in found if str(one.number) in numbers]
        if branch := request.query.get("source_branch"):
            found = [one for one in found if one.branch == branch]
        return paged(request, [self.shown(one) for one in reversed(found)])

    def _open(self, request: Received) -> Reply:
        body = request.json
        one = self.opened(request, body["source_branch"], body["target_branch"])
        if isinstance(one, Reply):
            return one
        one.labels = [name for name in body.get("labels", "").split(",") if name]
        people = self.hosted.people
        one.reviewers = [people[i - 1] for i in body.get("reviewer_ids") or ()]
        one.assignees = [people[i - 1] for i in body.get("assignee_ids") or ()]
        return Reply(status=201, body=self._whole(one))

    def _one(self, request: Received, number: str) -> Reply:
        one = self.one(number)
        shown = self._whole(one)
        if request.query.get("include_diverged_commits_count") == "true":
            base = self.hosted.branches[one.base]
            behind = self.hosted.is_behind(one) and self.hosted.git.behind(base, one.seen or "")
            shown["diverged_commits_count"] = int(behind)
        if request.query.get("include_rebase_in_progress") == "true":
            shown["rebase_in_progress"] = False
        return Reply(body=shown)

    def _change(self, request: Received, number: str) -> Reply:
        one, body = self.one(number), request.json
        for name in body.get("add_labels", ()):
            if name not in one.labels:
                one.labels.append(name)
        gone = body.get("remove_labels", ())
        one.labels = [name for name in one.labels if name not in gone]
        self.change(one, body)
        return Reply(body=self._whole(one))

    def _merge(self, request: Received, number: str) -> Reply:
        one, body, hosted = self.one(number), request.json, self.hosted
        if body.get("sha") != one.seen:
            return refused(409, "SHA does not match HEAD of source branch")
        why = hosted.refusal(one)
        method = "squash" if body.get("squash") else "merge"
        waits = any(check.state == "pending" for check in hosted.checks(one.seen))
        if body.get("auto_merge") and (waits or why in ("checks", "approvals", "threads")):
            if not hosted.automatic:
                return refused(405, "405 Method Not Allowed")
            hosted.merge_later(one, method)
            return Reply(body=self._whole(one))
        if why is not None:
            return refused(422 if why == "conflict" else 405, "Branch cannot be merged")
        hosted.merge(one, method)
        return Reply(body=self._whole(one))

    def _cancel(self, request: Received, number: str) -> Reply:
        del request
        if not self.hosted.cancel(self.one(number)):
            return refused(406, "Failed to cancel the automatic merge")
        return Reply(status=201, body=self._whole(self.one(number)))

    def _rebase(self, request: Received, number: str) -> Reply:
        del request
        one, git_ = self.one(number), self.hosted.git
        assert one.seen is not None
        if self.hosted.conflicts(one):
            one.merge_error = "Rebase failed: Rebase locally, resolve all conflicts, then push."
        else:
            made = git_.rebased(one.seen, self.hosted.branches[one.base])
            git_.move(one.branch, made, one.seen)
            self.hosted.observe()
        return Reply(status=202, body={"rebase_in_progress": True})

    def _label(self, request: Received, name: str) -> Reply:
        known = request.segments[-1]
        del name
        label = {"id": 1, "name": known, "color": "#ffffff"}
        return Reply(body=label) if known in self.hosted.labels else not_found()

    def _status(self, request: Received, commit: str) -> Reply:
        body = request.json
        if not self.hosted.git.has(commit):
            return not_found("404 Commit Not Found")
        name = body["name"]
        known = self.hosted.statuses.get((commit, name))
        if known is not None and known[0] == body["state"]:
            return refused(400, "Cannot transition status via :succeed from :success")
        self.hosted.statuses[commit, name] = (body["state"], body["description"])
        self.hosted.observe()
        return Reply(status=201, body={"id": 1, "status": body["state"], "name": name})

    def _statuses(self, request: Received, commit: str) -> Reply:
        made = self.hosted.checks(commit)
        return paged(request, [_shown_check(check) for check in made])

    def statuses_by_pipeline(self, commit: str) -> dict[int, list[dict[str, Any]]]:
        """Return jobs and statuses of a commit by the ids of their pipelines."""
        found: dict[int, list[dict[str, Any]]] = {}
        for check in self.hosted.checks(commit):
            found.setdefault(501 if check.status else 500, []).append(_shown_check(check))
        return found

    def _commit(self, request: Received, commit: str) -> Reply:
        del request
        if not self.hosted.git.has(commit):
            return not_found("404 Commit Not Found")
        return Reply(body={"id": commit, "parent_ids": self.hosted.git.parents(commit)})

    def _delete(self, request: Received, branch: str) -> Reply:
        del branch
        if not self.hosted.git.delete(request.segments[-1]):
            return not_found("404 Branch Not Found")
        return Reply(status=204)

    def _members(self, request: Received) -> Reply:
        found = [
            self.user(name) | {"access_level": _LEVELS[right], "state": "active"}
            for name, right in self.hosted.permissions.items()
            if request.query["query"] in name
        ]
        return paged(request, found)

    def _job(self, number: str) -> MadeCheck | None:
        jobs = (check for check in self.hosted.made if not check.status)
        return next((check for check in jobs if check.id == int(number)), None)

    def _trace(self, request: Received, number: str) -> Reply:
        del request
        job = self._job(number)
        if job is None:
            return not_found()
        return Reply(body=job.log, content_type="text/plain")

    def _retry(self, request: Received, number: str) -> Reply:
        del request
        job = self._job(number)
        if job is None:
            return not_found()
        if job.state in ("pending", "success"):
            return refused(403, "Job is not retryable")
        self.hosted.rerun(job)
        return Reply(status=201, body=_shown_check(job))

    def shown(self, one: Request) -> dict[str, Any]:
        """Return a merge request as a list shows it."""
        why = self.hosted.refusal(one)
        status = "mergeable" if why is None else _REFUSALS.get(why, why)
        if why == "changes_requested":
            status = "requested_changes"
        if why == "checks" and any(c.state == "pending" for c in self.hosted.checks(one.seen)):
            status = "ci_still_running"
        return {
            "id": 1000 + one.number,
            "iid": one.number,
            "web_url": f"https://forge.example/{PATH}/pulls/{one.number}",
            "state": {"open": "opened"}.get(one.state, one.state),
            "source_branch": one.branch,
            "source_project_id": 8 if one.fork else 7,
            "target_project_id": 7,
            "target_branch": one.base,
            "title": f"Draft: {one.title}" if one.draft else one.title,
            "description": one.body,
            "sha": one.seen,
            "draft": one.draft,
            "labels": sorted(one.labels),
            "updated_at": time_at(one.updated),
            "user_notes_count": len(one.comments) + sum(len(t.notes) for t in one.threads),
            "has_conflicts": not one.computing and self.hosted.conflicts(one),
            "detailed_merge_status": "checking" if one.computing else status,
            "merge_when_pipeline_succeeds": one.queued is not None,
            "merge_error": one.merge_error,
            "reviewers": [self.user(name) for name in one.reviewers],
        }

    def _whole(self, one: Request) -> dict[str, Any]:
        return self.shown(one) | {"head_pipeline": self.pipeline(one)}

    def pipeline(self, one: Request) -> dict[str, Any] | None:
        """Return the pipeline of a merge request, which may be that of its head before."""
        sha = one.seen_before if one.lagging else one.seen
        if self.hosted.merged_results and sha and not self.hosted.conflicts(one):
            sha = self.hosted.git.merged(self.hosted.branches[one.base], sha)
        jobs = [check for check in self.hosted.checks(sha) if not check.status]
        if not jobs:
            return None
        states = {check.state for check in jobs if not check.allow_failure}
        state = next((s for s in ("pending", "failure", "cancelled") if s in states), "success")
        return {
            "id": 500,
            "sha": sha,
            "ref": f"refs/merge-requests/{one.number}/{'merge' if sha != one.seen else 'head'}",
            "status": _STATES.get(state, state),
            "web_url": f"https://forge.example/{PATH}/pipelines/500",
        }


def _shown_check(check: MadeCheck) -> dict[str, Any]:
    return {
        "id": check.id,
        "name": check.name,
        "status": _STATES.get(check.state, check.state),
        "allow_failure": check.allow_failure,
        "target_url": f"https://forge.example/{PATH}/jobs/{check.id}",
    }
