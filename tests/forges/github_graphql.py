"""The repository as GitHub's GraphQL API shows it, and what questions are held to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from graphql import GraphQLError, GraphQLSchema, build_schema, execute_sync

from tests.forges.hosted import GREEN, PATH, HostedRepository
from tests.forges.nouns import Absent, Conversation, MadeCheck, Opinion, Remark, Request
from tests.trackers.server.contract import Violation
from tests.trackers.server.exchange import Received, Reply
from tests.trackers.server.graphql_documents import document_of

GRAPHQL_PATH = "/api/graphql"
MOST = 100
Json = Any


@cache
def graphql_schema() -> GraphQLSchema:
    """Return the schema of what is used."""
    found = build_schema(Path(__file__).with_name("pull_requests.graphql").read_text())
    for name in ("Actor", "Node", "StatusCheckRollupContext"):
        found.type_map[name].resolve_type = (  # type: ignore[attr-defined]
            lambda value, *_: value["kind"]
        )
    return found


def check_question(request: Received) -> None:
    """Raise Violation where a question is not as the schema has it."""
    if request.method != "POST" or set(request.json) - {"query", "variables"}:
        raise Violation(f"{request}: no question")
    document_of(request.json["query"], graphql_schema())


def answered(hosted: HostedRepository, request: Received) -> Reply:
    """Return the answer to a question or a change."""
    root = _Root(hosted)
    done = execute_sync(
        graphql_schema(),
        document_of(request.json["query"], graphql_schema()),
        {
            "node": root.node,
            "enablePullRequestAutoMerge": root.enable_auto_merge,
            "enqueuePullRequest": root.enqueue,
            "disablePullRequestAutoMerge": root.disable_auto_merge,
            "dequeuePullRequest": root.dequeue,
        },
        variable_values=request.json["variables"],
    )
    body: dict[str, Json] = {"data": done.data}
    if done.errors:
        body["errors"] = [_shown(error) for error in done.errors]
    return Reply(body=body)


def _shown(error: GraphQLError) -> Json:
    if error.extensions is None or "type" not in error.extensions:
        raise AssertionError(f"the service broke: {error}") from error
    return {"type": error.extensions["type"], "path": error.path, "message": error.message}


def _error(kind: str, message: str) -> GraphQLError:
    return GraphQLError(message, extensions={"type": kind})


class _Root:
    def __init__(self, hosted: HostedRepository) -> None:
        self._hosted = hosted

    def _request(self, id_: str) -> Request:
        kind, _, number = id_.partition("_")
        try:
            if kind == "PR":
                return self._hosted.request(int(number))
        except Absent:
            pass
        raise _error("NOT_FOUND", f"Could not resolve to a node with the global id of '{id_}'")

    def node(self, _info: Any, id: str) -> Json:  # noqa: A002
        """Return a pull request or a thread."""
        for one in self._hosted.requests:
            for thread in one.threads:
                if id == f"PRRT_{thread.id}":
                    return _thread(one, thread)
        return _Shown(self._hosted, self._request(id)).pull_request()

    def _changed(self, input_: Mapping[str, Any]) -> Request:
        one = self._request(input_["pullRequestId"])
        if input_.get("expectedHeadOid") not in (None, one.seen):
            raise _error("UNPROCESSABLE", "Head branch was modified")
        return one

    def enable_auto_merge(self, _info: Any, input: Mapping[str, Any]) -> Json:  # noqa: A002
        """Enable auto-merge, which is refused where nothing is in the way of a merge."""
        one, hosted = self._changed(input), self._hosted
        if not hosted.automatic:
            message = "Auto merge is not allowed for this repository"
            raise _error("UNPROCESSABLE", message)
        why = hosted.refusal(one)
        if why in (None, "closed", "draft", "conflict"):
            status = {None: "clean", "conflict": "dirty"}.get(why, why)
            raise _error("UNPROCESSABLE", f"Pull request is in {status} status")
        hosted.merge_later(one, input.get("mergeMethod", "MERGE").lower())
        return {"pullRequest": {"kind": "PullRequest", "id": f"PR_{one.number}"}}

    def enqueue(self, _info: Any, input: Mapping[str, Any]) -> Json:  # noqa: A002
        """Put a pull request into the queue."""
        one, hosted = self._changed(input), self._hosted
        if not hosted.queue or hosted.refusal(one) not in (None, "checks"):
            raise _error("UNPROCESSABLE", "Pull request is not mergeable")
        hosted.merge_later(one, "merge")
        return {"mergeQueueEntry": {"kind": "MergeQueueEntry", "id": "MQE_1"}}

    def disable_auto_merge(self, _info: Any, input: Mapping[str, Any]) -> Json:  # noqa: A002
        """Disable auto-merge, which is refused where it is not enabled."""
        one = self._request(input["pullRequestId"])
        if self._hosted.queue or not self._hosted.cancel(one):
            raise _error("UNPROCESSABLE", "Can't disable auto-merge for this pull request.")
        return {"pullRequest": {"kind": "PullRequest", "id": f"PR_{one.number}"}}

    def dequeue(self, _info: Any, input: Mapping[str, Any]) -> Json:  # noqa: A002
        """Take a pull request out of the queue."""
        if not self._hosted.queue or not self._hosted.cancel(self._request(input["id"])):
            raise _error("UNPROCESSABLE", "Pull request is not in the merge queue")
        return {"mergeQueueEntry": {"kind": "MergeQueueEntry", "id": "MQE_1"}}


class _Shown:
    """A pull request as GraphQL tells it."""

    def __init__(self, hosted: HostedRepository, one: Request) -> None:
        self._hosted = hosted
        self._one = one

    def pull_request(self) -> Json:
        hosted, one = self._hosted, self._one
        opinions = hosted.opinions(one)
        latest = {said.author: said for said in one.opinions}
        oid = one.seen_before if one.lagging else one.seen
        checks = [self._check(check) for check in hosted.checks(oid)]
        checks += [self._expected(name) for name in hosted.expected(one)]
        rollup = {"contexts": _connection(checks)} if checks else None
        commit = {"oid": oid, "statusCheckRollup": rollup}
        conflicts = hosted.conflicts(one)
        return {
            "kind": "PullRequest",
            "id": f"PR_{one.number}",
            "number": one.number,
            "url": f"https://forge.example/{PATH}/pulls/{one.number}",
            "state": one.state.upper(),
            "isDraft": one.draft,
            "title": one.title,
            "body": one.body,
            "headRefOid": one.seen,
            "headRefName": one.branch,
            "baseRefName": one.base,
            "mergeable": "UNKNOWN"
            if one.computing
            else ("CONFLICTING" if conflicts else "MERGEABLE"),
            "mergeStateStatus": self._merge_state(),
            "reviewDecision": self._decision(opinions.values()),
            "isInMergeQueue": hosted.queue and one.queued is not None,
            "isMergeQueueEnabled": hosted.queue,
            "autoMergeRequest": {"enabledAt": "2026-01-02T03:04:05Z"}
            if one.queued and not hosted.queue
            else None,
            "repository": {"autoMergeAllowed": hosted.automatic},
            "labels": _connection([{"name": name} for name in one.labels]),
            "latestOpinionatedReviews": _connection([_review(o) for o in opinions.values()]),
            "latestReviews": _connection([_review(o) for o in latest.values()]),
            "reviewThreads": _connection([_thread(one, thread) for thread in one.threads]),
            "comments": _connection([_note(note) for note in one.comments]),
            "commits": _connection([{"commit": commit}]),
        }

    def _merge_state(self) -> str:
        if self._one.computing:
            return "UNKNOWN"
        words = {"conflict": "DIRTY", "draft": "DRAFT", "behind": "BEHIND", "closed": "UNKNOWN"}
        if (why := self._hosted.refusal(self._one)) is not None:
            return words.get(why, "BLOCKED")
        checks = self._hosted.checks(self._one.seen)
        return "CLEAN" if all(check.state in GREEN for check in checks) else "UNSTABLE"

    def _decision(self, opinions: Any) -> str | None:
        states = [said.state for said in opinions]
        if "changes_requested" in states:
            return "CHANGES_REQUESTED"
        if not self._hosted.approvals:
            return None
        enough = states.count("approved") >= self._hosted.approvals
        return "APPROVED" if enough else "REVIEW_REQUIRED"

    def _is_required(self, name: str) -> Callable[..., bool]:
        def is_required(_info: Any, pullRequestNumber: int | None = None, **_: Any) -> bool:
            assert pullRequestNumber == self._one.number
            return name in self._hosted.required

        return is_required

    def _expected(self, name: str) -> Json:
        return {
            "kind": "StatusContext",
            "context": name,
            "state": "EXPECTED",
            "targetUrl": None,
            "isRequired": self._is_required(name),
        }

    def _check(self, check: MadeCheck) -> Json:
        required = self._is_required(check.name)
        done = check.state != "pending"
        if check.status:
            return {
                "kind": "StatusContext",
                "context": check.name,
                "state": check.state.upper(),
                "targetUrl": None,
                "isRequired": required,
            }
        return {
            "kind": "CheckRun",
            "name": check.name,
            "status": "COMPLETED" if done else "IN_PROGRESS",
            "conclusion": check.state.upper() if done else None,
            "url": f"https://forge.example/{PATH}/actions/runs/7/job/{check.id}",
            "permalink": f"https://forge.example/{PATH}/runs/{check.id}?check_suite_focus=true",
            "isRequired": required,
        }


def _thread(one: Request, thread: Conversation) -> Json:
    return {
        "kind": "PullRequestReviewThread",
        "id": f"PRRT_{thread.id}",
        "isResolved": thread.resolved,
        "isOutdated": thread.head != one.seen,
        "path": thread.path,
        "line": thread.line if thread.head == one.seen else None,
        "originalLine": thread.line,
        "comments": _connection([_note(note) for note in thread.notes]),
    }


def _note(note: Remark) -> Json:
    return {
        "fullDatabaseId": str(note.id),
        "author": {"kind": "Bot" if note.bot else "User", "login": note.author},
        "body": note.body,
    }


def _review(said: Opinion) -> Json:
    return {
        "fullDatabaseId": str(said.id),
        "author": {"kind": "Bot" if said.bot else "User", "login": said.author},
        "body": said.body,
        "state": said.state.upper(),
        "commit": {"oid": said.head},
    }


def _connection(nodes: Sequence[Json]) -> Callable[..., Json]:
    def connection(
        _info: Any, first: int | None = None, after: str | None = None, **more: Any
    ) -> Json:
        count = first or more.get("last") or 0
        assert 1 <= count <= MOST
        start = int(after or 0)
        return {
            "nodes": list(nodes[start : start + count]),
            "pageInfo": {
                "endCursor": str(start + count),
                "hasNextPage": len(nodes) > start + count,
            },
        }

    return connection
