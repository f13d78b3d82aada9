"""What exchanges with a Jira are held to.

For the cloud that is the published description. That of Data Center may not be copied, so the
shapes that the adapter needs are written down here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.trackers.server.contract import OpenApiContract, Violation
from tests.trackers.server.exchange import Received, Reply

_EITHER = "/rest/api/2/serverInfo"  # which edition it is, is asked there, of both


class CloudContract:
    """The description of Jira Cloud; ``prefix`` is what stands before its paths."""

    def __init__(self, prefix: str = "") -> None:
        path = Path(__file__).with_name("jira-cloud.openapi.json.gz")
        self._described = OpenApiContract(path, prefix)

    def check_request(self, request: Received) -> None:
        self._described.check_request(_in_version_3(request))

    def check_answer(self, request: Received, reply: Reply) -> None:
        self._described.check_answer(_in_version_3(request), reply)


def _in_version_3(request: Received) -> Received:
    return replace(request, path=request.path.replace(_EITHER, "/rest/api/3/serverInfo"))


Shape = Any
"""A type, a tuple of types, [the shape of items], or {key: shape}; a key ending in ? may lack."""

_STATUS = {"id": str, "name": str, "statusCategory?": {"key": str}}
_ISSUE = {"id": str, "key": str, "self?": str, "fields": dict}
_PERSON = {"displayName": str, "name?": str, "key?": str}
_COMMENT = {
    "id": str,
    "author?": _PERSON,
    "body": str,
    "created?": str,
    "properties?": [{"key": str, "value": object}],
    "visibility?": {"type": str, "value": str},
}
_TRANSITION = {"id": str, "name": str, "to": _STATUS, "fields?": dict}
_ERRORS = {"errorMessages": [str], "errors?": dict}


@dataclass(frozen=True)
class Operation:
    """One thing that can be asked, and its answers by status."""

    method: str
    path: str
    answers: Mapping[int, Shape]
    query: frozenset[str] = frozenset()
    body: Shape = None


_OPERATIONS = (
    Operation("GET", "/serverInfo", {200: {"baseUrl": str, "deploymentType": str}}),
    Operation("GET", "/myself", {200: _PERSON, 401: _ERRORS}),
    Operation("GET", "/project/[^/]+", {200: {"id": str, "key": str, "name": str}, 404: _ERRORS}),
    Operation(
        "GET",
        "/project/[^/]+/statuses",
        {200: [{"name": str, "statuses": [_STATUS]}], 404: _ERRORS},
    ),
    Operation(
        "GET",
        "/mypermissions",
        {200: {"permissions": dict}},
        query=frozenset({"projectKey", "projectId", "issueKey", "issueId"}),
    ),
    Operation(
        "GET",
        "/user/assignable/search",
        {200: [_PERSON], 400: _ERRORS, 403: _ERRORS},
        query=frozenset({"username", "project", "issueKey", "startAt", "maxResults"}),
    ),
    Operation("GET", "/issueLinkType", {200: {"issueLinkTypes": [{"name": str, "inward": str}]}}),
    Operation(
        "POST",
        "/search",
        {
            200: {"startAt": int, "maxResults": int, "total": int, "issues": [_ISSUE]},
            400: _ERRORS,
        },
        body={
            "jql": str,
            "fields": [str],
            "maxResults?": int,
            "startAt?": int,
            "validateQuery?": bool,
        },
    ),
    Operation(
        "GET",
        "/issue/[^/]+",
        {200: _ISSUE, 404: _ERRORS},
        query=frozenset({"fields", "expand", "properties", "updateHistory"}),
    ),
    Operation(
        "PUT",
        "/issue/[^/]+",
        {204: None, 400: _ERRORS, 403: _ERRORS, 404: _ERRORS},
        body={"update": {"labels": [{"add?": str, "remove?": str}]}},
        query=frozenset({"notifyUsers"}),
    ),
    Operation(
        "GET",
        "/issue/[^/]+/transitions",
        {
            200: {"transitions": [{"id": str, "name": str, "to": _STATUS, "fields?": dict}]},
            404: _ERRORS,
        },
        query=frozenset({"transitionId", "expand"}),  # the latter stands in the text only
    ),
    Operation(
        "POST",
        "/issue/[^/]+/transitions",
        {204: None, 400: _ERRORS, 404: _ERRORS, 500: _ERRORS},
        body={"transition": {"id": str}},
    ),
    Operation(
        "GET",
        "/issue/[^/]+/comment",
        {
            200: {"startAt": int, "maxResults": int, "total": int, "comments": [_COMMENT]},
            404: _ERRORS,
        },
        query=frozenset({"startAt", "maxResults", "orderBy", "expand"}),
    ),
    Operation(
        "POST",
        "/issue/[^/]+/comment",
        {201: _COMMENT, 400: _ERRORS, 404: _ERRORS},
        body={"body": str, "properties?": [{"key": str, "value": str}]},
        query=frozenset({"expand"}),
    ),
)


class DataCenterContract:
    """The shapes of version 2, as far as they are needed."""

    def check_request(self, request: Received) -> None:
        operation = _operation(request)
        if unknown := sorted(set(request.query) - operation.query):
            raise Violation(f"{request}: it has no parameter {', '.join(unknown)}")
        _check(request.json, operation.body, str(request), closed=True)

    def check_answer(self, request: Received, reply: Reply) -> None:
        operation = _operation(request)
        if reply.status in (429, 401, 503):
            return
        if reply.status not in operation.answers:
            raise Violation(f"{request} does not answer {reply.status}")
        _check(reply.body, operation.answers[reply.status], f"{request} answered", closed=False)


def _operation(request: Received) -> Operation:
    path = request.path.removeprefix("/rest/api/2")
    for operation in _OPERATIONS:
        if operation.method == request.method and re.fullmatch(operation.path, path):
            return operation
    raise Violation(f"{request}: Data Center has no such route")


def _check(value: Any, shape: Shape, where: str, *, closed: bool) -> None:
    """Raise Violation where a value has not a shape; ``closed``: further keys are a violation."""
    match shape:
        case None:
            fits = value is None
        case dict():
            fits = isinstance(value, dict)
        case list():
            fits = isinstance(value, list)
        case _:
            fits = isinstance(value, shape)
    if not fits:
        raise Violation(f"{where}: {str(value)[:80]!r} is not {shape}")
    if isinstance(shape, list):
        for number, item in enumerate(value):
            _check(item, shape[0], f"{where}[{number}]", closed=closed)
    if isinstance(shape, dict):
        known = {key.removesuffix("?"): key.endswith("?") for key in shape}
        missing = [key for key, optional in known.items() if not optional and key not in value]
        unknown = [key for key in value if key not in known] if closed else []
        if missing or unknown:
            raise Violation(f"{where}: it lacks {missing}, and has {unknown} besides")
        for key, inner in shape.items():
            if (name := key.removesuffix("?")) in value:
                _check(value[name], inner, f"{where}.{name}", closed=closed)
