"""Checks of commits as GitHub's REST API shows them: runs, jobs, annotations, logs, statuses."""

from __future__ import annotations

from typing import Any

from tests.forges.faces import Face, not_found, refused
from tests.forges.hosted import PATH, HostedRepository
from tests.forges.nouns import MadeCheck, there
from tests.forges.shapes import smallest
from tests.trackers.server.exchange import Received, Reply

LOGS = "/logs/"
"""Where logs lie: on another host, to which no credential is sent."""


class GitHubChecksFace(Face):
    """Check runs and statuses of the repository."""

    prefix = "/api/v3"

    def __init__(self, hosted: HostedRepository) -> None:
        super().__init__(hosted)
        self.routes = [
            ("POST", r"/statuses/(\w+)", self._status, ""),
            ("GET", r"/check-runs/(\d+)", self._check_run, ""),
            ("GET", r"/check-runs/(\d+)/annotations", self._annotations, ""),
            ("POST", r"/check-runs/(\d+)/rerequest", self._rerequest, ""),
            ("GET", r"/actions/jobs/(\d+)/logs", self._log, ""),
            ("POST", r"/actions/jobs/(\d+)/rerun", self._rerun, ""),
        ]

    def root(self) -> str:
        """See Face."""
        return f"/repos/{PATH}"

    def log_of(self, request: Received) -> Reply:
        """Return the log behind the address of a redirect, which is signed itself."""
        assert "authorization" not in request.headers, "a credential was sent to another host"
        assert not request.headers["host"].startswith("127.0.0.1")
        check = self._made(request.path.removeprefix(LOGS))
        return Reply(body=check.log, content_type="text/plain")

    def _made(self, id_: str) -> MadeCheck:
        runs = {check.id: check for check in self.hosted.made if not check.status}
        return there(runs, id_)

    def _status(self, request: Received, commit: str) -> Reply:
        body = request.json
        if not self.hosted.git.has(commit):
            return refused(422, f"No commit found for SHA: {commit}")
        self.hosted.statuses[commit, body["context"]] = (body["state"], body["description"])
        self.hosted.observe()
        shown = smallest("status", state=body["state"], context=body["context"])
        return Reply(status=201, body=shown)

    def _check_run(self, request: Received, id_: str) -> Reply:
        del request
        check = self._made(id_)
        done = check.state != "pending"
        shown: dict[str, Any] = smallest("check-run", id=check.id, name=check.name)
        shown |= {
            "status": "completed" if done else "in_progress",
            "conclusion": check.state if done else None,
            "app": smallest("nullable-integration", slug=check.app, name=check.app),
        }
        if check.app != "github-actions":
            text = check.log.decode()
            shown["output"] = shown["output"] | {"title": "It failed", "summary": text}
        # The description forgets that there is no conclusion of one that is under way.
        return Reply(body=shown, sound=done)

    def _annotations(self, request: Received, id_: str) -> Reply:
        del request
        shown = [
            smallest(
                "check-annotation",
                path=path,
                start_line=line,
                annotation_level="failure",
                message=text,
            )
            for path, line, text in self._made(id_).annotations
        ]
        return Reply(body=shown)

    def _rerequest(self, request: Received, id_: str) -> Reply:
        del request
        check = self._made(id_)
        if check.app == "github-actions":
            return refused(403, "This check run is not rerequestable")
        self.hosted.rerun(check)
        return Reply(status=201, body={})

    def _rerun(self, request: Received, id_: str) -> Reply:
        del request
        check = self._made(id_)
        if check.app != "github-actions":
            return not_found()
        if check.state == "pending":
            return refused(403, "The workflow run containing this job is already running")
        self.hosted.rerun(check)
        return Reply(status=201, body={})

    def _log(self, request: Received, id_: str) -> Reply:
        check = self._made(id_)
        if check.app != "github-actions":
            return not_found()
        elsewhere = request.origin.replace("127.0.0.1", "localhost")
        return Reply(status=302, headers={"Location": f"{elsewhere}{LOGS}{id_}?sig=0"})
