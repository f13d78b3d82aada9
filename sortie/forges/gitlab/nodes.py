"""Merge requests as GitLab's GraphQL API tells them, in the shapes that its REST API has.

Rule: what GraphQL does not tell whole is None here, and is read by REST. It tells a hundred of a
list at most, and of what the token may not see nothing at all, which would look like an empty list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin

from msgspec import Struct

from sortie.forges.gitlab.state import checks_of
from sortie.http.json_values import mapping_of, text_of, word_of
from sortie.model.pull_requests import HeadCheck

_PAGE = "pageInfo { hasNextPage }"
_JOBS = f"""jobs(retried: false, first: 100) {{
  nodes {{ id name status allowFailure detailedStatus {{ detailsPath }} }} {_PAGE}
}}"""

QUERY = f"""
query MergeRequests($project: ID!, $numbers: [String!]) {{
  project(fullPath: $project) {{
    userPermissions {{ readCommitStatus }}
    mergeRequests(iids: $numbers) {{ nodes {{
      id iid webUrl state title description draft sourceBranch targetBranch
      diffHeadSha conflicts detailedMergeStatus autoMergeEnabled
      labels(first: 100) {{ nodes {{ title }} {_PAGE} }}
      approvedBy(first: 100) {{ nodes {{ id username }} {_PAGE} }}
      reviewers(first: 100) {{
        nodes {{ id username mergeRequestInteraction {{ reviewState }} }} {_PAGE}
      }}
      discussions(first: 100) {{ nodes {{
        id
        notes(first: 100) {{ nodes {{
          id system body resolvable resolved author {{ username }}
          position {{ newPath newLine oldLine diffRefs {{ headSha }} }}
        }} {_PAGE} }}
      }} {_PAGE} }}
      headPipeline {{ id sha status path {_JOBS} }}
      pipelines(first: 1) {{ nodes {{ id }} }}
      commits(first: 1) {{ nodes {{
        sha pipelines(first: 10) {{ nodes {{ {_JOBS} }} {_PAGE} }}
      }} }}
    }} }}
  }}
}}
"""
"""Asks for up to a hundred merge requests. GitLab counts its complexity, which does not grow with
their number, as 128 of 250."""

_REST_WORDS = {
    "blocked_status": "merge_request_blocked",
    "external_status_checks": "status_checks_must_pass",
    "jira_association": "jira_association_missing",
    "security_policies_violations": "security_policy_violations",
    "title_not_matching": "title_regex",
}
"""What REST calls a reason against a merge, where GraphQL has another word for it."""


class _NotWhole(Exception):
    """A list of an answer is longer than its page, or is not told."""


class Talk(Struct, frozen=True, kw_only=True):
    """What people say of a merge request, in the shapes of REST."""

    discussions: list[Any]
    reviewers: list[Any]
    approvals: Mapping[str, Any]


class ReadRequest(Struct, frozen=True, kw_only=True):
    """A merge request as one question has told it.

    ``item`` is as REST lists it, without times and counts. ``checks`` and ``talk`` are None where
    they have to be read by REST.
    """

    item: dict[str, Any]
    checks: tuple[HeadCheck, ...] | None
    talk: Talk | None


def read_requests(data: Mapping[str, Any]) -> dict[str, ReadRequest]:
    """Return the merge requests of an answer by their ids. Raises KeyError, TypeError, ValueError
    or AttributeError where it has another shape."""
    project = data["project"]
    may_see = bool(project["userPermissions"]["readCommitStatus"])
    found: dict[str, ReadRequest] = {}
    for node in project["mergeRequests"]["nodes"]:
        if node is None:
            continue
        try:
            item = _item(node)
        except _NotWhole:
            continue
        found[str(item["id"])] = ReadRequest(
            item=item, checks=_checks(node) if may_see else None, talk=_talk(node)
        )
    return found


def _item(node: Mapping[str, Any]) -> dict[str, Any]:
    status = word_of(node["detailedMergeStatus"]).lower()
    return {
        "id": _number(node["id"]),
        "iid": int(node["iid"]),
        "web_url": node["webUrl"],
        "state": node["state"],
        "source_branch": node["sourceBranch"],
        "target_branch": node["targetBranch"],
        "title": node["title"],
        "description": node["description"],
        "sha": node["diffHeadSha"],
        "draft": node["draft"],
        "labels": sorted(label["title"] for label in _whole(node["labels"])),
        "has_conflicts": node["conflicts"],
        "detailed_merge_status": _REST_WORDS.get(status, status),
        "merge_when_pipeline_succeeds": node["autoMergeEnabled"],
    }


def _checks(node: Mapping[str, Any]) -> tuple[HeadCheck, ...] | None:
    """Return the checks of the head.

    GraphQL has no pipeline of an earlier head, by which REST tells that one of this head is to
    come, so that is left to REST. A head pipeline with another commit is of the merge of this head
    with its base: GitLab compares the commit from which it was made.
    """
    head, pipeline = text_of(node["diffHeadSha"]), node["headPipeline"]
    if head is None or node["state"] not in ("opened", "locked"):
        return ()
    if pipeline is None and mapping_of(node["pipelines"]).get("nodes") != []:
        return None
    try:
        (commit,) = node["commits"]["nodes"]
        if commit["sha"] != head:
            return None  # a push came in, which GitLab has not taken in yet
        jobs = [job for one in _whole(commit["pipelines"]) for job in _whole(one["jobs"])]
        if pipeline is not None and pipeline["sha"] != head:
            jobs += _whole(pipeline["jobs"])
    except (_NotWhole, TypeError, ValueError):
        return None
    address = node["webUrl"]
    statuses = [_status(job, address) for job in jobs]
    return checks_of(_pipeline(pipeline, address), statuses, believed=True)


def _pipeline(node: Mapping[str, Any] | None, address: str) -> dict[str, Any]:
    if node is None:
        return {}
    return {
        "id": _number(node["id"]),
        "status": word_of(node["status"]).lower(),
        "web_url": _url(node["path"], address),
    }


def _status(job: Mapping[str, Any], address: str) -> dict[str, Any]:
    return {
        "id": _number(job["id"]),
        "name": job["name"],
        "status": word_of(job["status"]).lower(),
        "allow_failure": job["allowFailure"],
        "target_url": _url(mapping_of(job["detailedStatus"]).get("detailsPath"), address),
    }


def _url(path: object, address: str) -> str | None:
    """Return the address of a page, of which GraphQL tells the path; that of another service is
    told whole."""
    return urljoin(address, path) if isinstance(path, str) and path else None


def _talk(node: Mapping[str, Any]) -> Talk | None:
    try:
        return Talk(
            discussions=[_discussion(one) for one in _whole(node["discussions"])],
            reviewers=[_reviewer(one) for one in _whole(node["reviewers"])],
            approvals={"approved_by": [{"user": _user(u)} for u in _whole(node["approvedBy"])]},
        )
    except _NotWhole:
        return None


def _discussion(node: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": _last(node["id"]), "notes": [_note(note) for note in _whole(node["notes"])]}


def _note(node: Mapping[str, Any]) -> dict[str, Any]:
    place = mapping_of(node["position"])
    position = {
        "new_path": place.get("newPath"),
        "new_line": place.get("newLine"),
        "old_line": place.get("oldLine"),
        "head_sha": mapping_of(place.get("diffRefs")).get("headSha"),
    }
    return {
        "id": _last(node["id"]),
        "system": node["system"],
        "body": node["body"],
        "resolvable": node["resolvable"],
        "resolved": node["resolved"],
        "author": node["author"],
        "position": position if place else None,
    }


def _reviewer(node: Mapping[str, Any]) -> dict[str, Any]:
    state = word_of(mapping_of(node["mergeRequestInteraction"]).get("reviewState")).lower()
    return {"user": _user(node), "state": state}


def _user(node: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": _number(node["id"]), "username": node["username"]}


def _whole(connection: Any) -> list[Any]:
    """Return the nodes of a list. Raises _NotWhole where they are not all."""
    if connection is None or connection["pageInfo"]["hasNextPage"]:
        raise _NotWhole
    return [node for node in connection["nodes"] if node is not None]


def _last(global_id: str) -> str:
    """Return the id that REST has, of ``gid://gitlab/DiffNote/7``."""
    return global_id.rpartition("/")[2]


def _number(global_id: str) -> int:
    return int(_last(global_id))
