"""The repository as GitLab's GraphQL API shows it, and the limits that GitLab has for questions.

What it shows is what the REST API shows, under other names and with other ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from graphql import (
    FieldNode,
    GraphQLDirective,
    GraphQLSchema,
    OperationDefinitionNode,
    SelectionSetNode,
    build_schema,
    execute_sync,
    get_named_type,
)
from graphql.execution.values import get_argument_values, get_directive_values

from tests.forges.hosted import PATH
from tests.forges.nouns import Request
from tests.trackers.server.contract import Violation
from tests.trackers.server.exchange import Received, Reply
from tests.trackers.server.graphql_documents import document_of

GRAPHQL_PATH = "/api/graphql"
MOST_COMPLEX, MOST_CHARACTERS, MOST_NODES = 250, 10_000, 100
"""GitLab's limits: complexity for who has a token, length of a question, nodes of a page."""

_STATUSES = {
    "merge_request_blocked": "BLOCKED_STATUS",
    "status_checks_must_pass": "EXTERNAL_STATUS_CHECKS",
    "jira_association_missing": "JIRA_ASSOCIATION",
    "security_policy_violations": "SECURITY_POLICIES_VIOLATIONS",
    "title_regex": "TITLE_NOT_MATCHING",
}
Json = Any


@cache
def merge_request_schema() -> GraphQLSchema:
    """Return the schema of what is used."""
    return build_schema(Path(__file__).with_name("merge_requests.graphql").read_text())


def check_merge_request_question(request: Received) -> None:
    """Raise Violation where a question is not as the schema has it."""
    if request.method != "POST" or set(request.json) - {"query", "variables"}:
        raise Violation(f"{request}: no question")
    document_of(request.json["query"], merge_request_schema())


def complexity_of(text: str) -> int:
    """Return the complexity of a question as GitLab counts it."""
    (operation,) = document_of(text, merge_request_schema()).definitions
    assert isinstance(operation, OperationDefinitionNode)
    return _of_fields(operation.selection_set, merge_request_schema().query_type)


def _cost() -> GraphQLDirective:
    found = merge_request_schema().get_directive("cost")
    assert found is not None
    return found


def _of_fields(selected: SelectionSetNode | None, type_: Any) -> int:
    total = 0
    for node in () if selected is None else selected.selections:
        assert isinstance(node, FieldNode)
        field = type_.fields[node.name.value]
        inner = _of_fields(node.selection_set, get_named_type(field.type))
        cost = get_directive_values(_cost(), field.ast_node) or {"own": 1, "share": 0.0}
        whole = cost["own"] + inner
        if cost["share"]:
            first = get_argument_values(field, node).get("first", MOST_NODES)
            whole += whole * min(first, MOST_NODES) * cost["share"]
        total += int(whole)
    return total


class GitLabGraphql:
    """Answers questions out of what the face of REST shows."""

    def __init__(self, face: Any) -> None:
        self._face = face
        self.may_see_checks = True

    def answer(self, request: Received) -> Reply:
        """Return the answer to a question."""
        query = request.json["query"]
        if len(query) > MOST_CHARACTERS:
            return Reply(status=422, body={"errors": [{"message": "Query too large"}]})
        if (complexity := complexity_of(query)) > MOST_COMPLEX:
            told = f"Query has complexity of {complexity}, which exceeds max complexity of 250"
            return Reply(body={"errors": [{"message": told}]})
        document = document_of(query, merge_request_schema())
        variables = request.json["variables"]
        root = {"project": self._project}
        done = execute_sync(merge_request_schema(), document, root, variable_values=variables)
        assert not done.errors, f"the service broke: {done.errors}"
        return Reply(body={"data": done.data})

    def _project(self, _info: Any, fullPath: str) -> Json:
        if fullPath != PATH:
            return None
        return {
            "id": _gid("Project", 7),
            "userPermissions": {"readCommitStatus": self.may_see_checks},
            "mergeRequests": self._merge_requests,
        }

    def _merge_requests(self, info: Any, iids: Sequence[str] | None = None, **page: Any) -> Json:
        hosted = self._face.hosted
        found = [one for one in hosted.requests if one.number not in hosted.gone]
        if iids is not None:
            found = [one for one in found if str(one.number) in iids]
        shown = [self._merge_request(one) for one in reversed(found)]
        return _connection(shown)(info, **page)

    def _merge_request(self, one: Request) -> Json:
        told = self._face.shown(one)
        return {
            "id": _gid("MergeRequest", told["id"]),
            "iid": str(told["iid"]),
            "webUrl": told["web_url"],
            "state": told["state"],
            "title": told["title"],
            "description": told["description"],
            "draft": told["draft"],
            "sourceBranch": told["source_branch"],
            "targetBranch": told["target_branch"],
            "diffHeadSha": told["sha"],
            "conflicts": told["has_conflicts"],
            "detailedMergeStatus": _merge_status(told["detailed_merge_status"]),
            "autoMergeEnabled": told["merge_when_pipeline_succeeds"],
            "labels": _connection([{"title": name} for name in told["labels"]]),
            "approvedBy": _connection(
                [_user(said["user"]) for said in self._face.approvals(one)["approved_by"]]
            ),
            "reviewers": _connection([_reviewer(said) for said in self._face.reviewers(one)]),
            "discussions": _connection([_discussion(said) for said in self._face.talk(one)]),
            "headPipeline": lambda _info: self._head_pipeline(one),
            "pipelines": _lazy(lambda: self._pipelines(one)),
            "commits": _connection([self._commit(one.seen)] if one.seen else []),
        }

    def _head_pipeline(self, one: Request) -> Json:
        """Return the pipeline of the head alone, and none of a head before."""
        told = self._face.pipeline(one)
        if told is None or one.lagging or not self.may_see_checks:
            return None
        return self._pipeline(told["id"], told["sha"], told["status"], told["web_url"])

    def _pipelines(self, one: Request) -> list[Json]:
        told = self._face.pipeline(one) if self.may_see_checks else None
        if told is None:
            return []
        return [self._pipeline(told["id"], told["sha"], told["status"], told["web_url"])]

    def _commit(self, sha: str) -> Json:
        """Return a commit with its pipelines: one of jobs, and one of what was told over HTTP."""

        def pipelines() -> list[Json]:
            told = self._face.statuses_by_pipeline(sha) if self.may_see_checks else {}
            return [self._pipeline(id_, sha, "success", "", jobs) for id_, jobs in told.items()]

        return {"sha": sha, "pipelines": _lazy(pipelines)}

    def _pipeline(
        self, id_: int, sha: str, status: str, url: str, jobs: Sequence[Json] | None = None
    ) -> Json:
        """Return a pipeline; the jobs of that of a merge are those of the commit it runs on."""
        if jobs is None:
            jobs = self._face.statuses_by_pipeline(sha).get(id_, [])
        return {
            "id": _gid("Ci::Pipeline", id_),
            "sha": sha,
            "status": status.upper(),
            "path": urlsplit(url).path,
            "jobs": _connection([_job(job) for job in reversed(jobs)]),
        }


def _gid(kind: str, id_: object) -> str:
    return f"gid://gitlab/{kind}/{id_}"


def _merge_status(word: str) -> str:
    return _STATUSES.get(word, word.upper())


def _user(told: Mapping[str, Any]) -> Json:
    return {"id": _gid("User", told["id"]), "username": told["username"]}


def _reviewer(told: Mapping[str, Any]) -> Json:
    interaction = {"reviewState": told["state"].upper()}
    return _user(told["user"]) | {"mergeRequestInteraction": interaction}


def _discussion(told: Mapping[str, Any]) -> Json:
    notes = _connection([_note(note) for note in told["notes"]])
    return {"id": _gid("Discussion", told["id"]), "notes": notes}


def _note(told: Mapping[str, Any]) -> Json:
    place = told.get("position")
    return {
        "id": _gid("Note" if place is None else "DiffNote", told["id"]),
        "system": told["system"],
        "body": told["body"],
        "resolvable": told["resolvable"],
        "resolved": bool(told.get("resolved")),
        "author": _user(told["author"]),
        "position": place
        and {
            "newPath": place["new_path"],
            "newLine": place["new_line"],
            "oldLine": place.get("old_line"),
            "diffRefs": {"headSha": place["head_sha"]},
        },
    }


def _job(told: Mapping[str, Any]) -> Json:
    url = urlsplit(told["target_url"])
    return {
        "id": _gid("Ci::Build", told["id"]),
        "name": told["name"],
        "status": told["status"].upper(),
        "allowFailure": told["allow_failure"],
        "detailedStatus": {"detailsPath": url.path},
    }


def _lazy(nodes: Callable[[], Sequence[Json]]) -> Callable[..., Json]:
    return lambda info, **page: _connection(nodes())(info, **page)


def _connection(nodes: Sequence[Json]) -> Callable[..., Json]:
    """Return a list in pages, of which none has more than a hundred, whatever is asked for."""

    def connection(
        _info: Any, first: int | None = None, after: str | None = None, **more: Any
    ) -> Json:
        del more
        start = int(after or 0)
        end = start + min(MOST_NODES if first is None else first, MOST_NODES)
        page = {"endCursor": str(end), "hasNextPage": len(nodes) > end}
        return {"nodes": list(nodes[start:end]), "pageInfo": page}

    return connection
