"""The operations that ask about issues, runs and days."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from sortie.model import StoreError
from sortie.store import UnknownRun
from sortie.web.command_operations import IDENTIFIER, identifier_in
from sortie.web.controls import Controls, ExplanationView, explanation_to_json
from sortie.web.issue import IssueView, issue_to_json
from sortie.web.operations import JSON, Answer, Endpoint, Operation, Parameter
from sortie.web.records import HistoryQuery
from sortie.web.responses import error_response, json_response
from sortie.web.runs import RunView, run_document
from sortie.web.transcripts import transcript_operation
from sortie.web.usage_days import DAYS, MOST_DAYS, usage_day, usage_day_schema

RUNS, MOST_RUNS = 100, 1000
"""Runs on a page of history: where nobody says, and at the most."""

_UNREADABLE = {503: "the database cannot be read"}
_UNKNOWN_ISSUE = {404: "nothing is known of such an issue"}


def record_operations(controls: Controls) -> list[Operation]:
    """Return the operations."""
    return [
        Operation(
            method="GET",
            path="/api/v1/history",
            about="The recorded runs, newest first; the header Link has the next page",
            endpoint=_history(controls),
            answers={200: Answer(about="a page of runs", body=tuple[RunView, ...])},
            parameters=(
                Parameter(
                    name="issue",
                    about="the identifier of an issue: its runs only",
                    schema={"type": "string", "minLength": 1},
                ),
                _number("limit", "how many at most", RUNS, MOST_RUNS),
                Parameter(
                    name="before",
                    about="a run's id: go on behind it",
                    schema={"type": "string", "minLength": 1},
                ),
            ),
            failures={404: "the run in before is not recorded", **_UNREADABLE},
        ),
        Operation(
            method="GET",
            path="/api/v1/runs/{run_id}",
            about="One run",
            endpoint=_run(controls),
            answers={200: Answer(about="the run", body=RunView)},
            parameters=(
                Parameter(
                    name="run_id",
                    place="path",
                    about="the run's id",
                    schema={"type": "string", "minLength": 1},
                    example="6f1f2b1e-6a0e-4f53-9f3e-0a7d2c9b8e11",
                ),
            ),
            failures={404: "it is not recorded", **_UNREADABLE},
        ),
        transcript_operation(controls.transcripts),
        Operation(
            method="GET",
            path="/api/v1/stats",
            about="What each agent did and used on each of the last days",
            endpoint=_stats(controls),
            answers={200: Answer(about="the days, newest first", body=_stats_schema())},
            parameters=(_number("days", "how many days", DAYS, MOST_DAYS),),
            failures=_UNREADABLE,
        ),
        Operation(
            method="GET",
            path="/api/v1/issues/{identifier}/explain",
            about="How an issue stands and why, and when it may run",
            endpoint=_explain(controls),
            answers={200: Answer(about="the explanation", body=ExplanationView)},
            parameters=(IDENTIFIER,),
            failures={404: "the issue is not with the daemon"},
        ),
        issue_operation("/api/v1/issues/{identifier}", issue_endpoint(controls)),
    ]


def issue_operation(path: str, endpoint: Endpoint) -> Operation:
    """Return the operation that shows one issue, at a path of its own."""
    return Operation(
        method="GET",
        path=path,
        about="How an issue stands, and its last runs",
        endpoint=endpoint,
        answers={200: Answer(about="the issue", body=IssueView)},
        parameters=(IDENTIFIER,),
        failures={**_UNKNOWN_ISSUE, **_UNREADABLE},
    )


def issue_endpoint(controls: Controls) -> Endpoint:
    """Return what shows one issue."""

    async def issue(request: Request) -> Response:
        try:
            found = await controls.records.issue(identifier_in(request))
        except StoreError as exc:
            return error_response(503, str(exc))
        if isinstance(found, str):
            return error_response(404, found)
        return Response(issue_to_json(found), media_type=JSON)

    return issue


def _history(controls: Controls) -> Endpoint:
    async def history(request: Request) -> Response:
        given = request.query_params
        limit = _given_number(given.get("limit", str(RUNS)), MOST_RUNS)
        if limit is None:
            return error_response(400, f"limit must be a number from 1 to {MOST_RUNS}")
        if "" in (given.get("issue"), given.get("before")):
            return error_response(400, "issue and before must not be empty")
        query = HistoryQuery(issue=given.get("issue"), limit=limit, before=given.get("before"))
        try:
            runs = await controls.records.history(query)
        except UnknownRun as exc:
            return error_response(404, str(exc))
        except StoreError as exc:
            return error_response(503, str(exc))
        headers = {}
        if len(runs) == limit:
            more = {"issue": query.issue, "limit": limit, "before": runs[-1].run_id}
            told = urlencode({name: value for name, value in more.items() if value is not None})
            headers["link"] = f'</api/v1/history?{told}>; rel="next"'
        return json_response(200, [run_document(run) for run in runs], headers)

    return history


def _run(controls: Controls) -> Endpoint:
    async def run(request: Request) -> Response:
        try:
            found = await controls.records.run(request.path_params["run_id"])
        except StoreError as exc:
            return error_response(503, str(exc))
        if found is None:
            return error_response(404, "no such run is recorded")
        return json_response(200, run_document(found))

    return run


def _explain(controls: Controls) -> Endpoint:
    async def explain(request: Request) -> Response:
        told = await controls.explain(identifier_in(request))
        if isinstance(told, str):
            return error_response(404, told)
        return Response(explanation_to_json(told), media_type=JSON)

    return explain


def _stats(controls: Controls) -> Endpoint:
    async def stats(request: Request) -> Response:
        days = _given_number(request.query_params.get("days", str(DAYS)), MOST_DAYS)
        if days is None:
            return error_response(400, f"days must be a number from 1 to {MOST_DAYS}")
        try:
            rows = await controls.days(days)
        except StoreError as exc:
            return error_response(503, str(exc))
        return json_response(200, {"days": [usage_day(row) for row in rows]})

    return stats


def _stats_schema() -> dict[str, object]:
    days = {"type": "array", "items": usage_day_schema()}
    return {"type": "object", "required": ["days"], "properties": {"days": days}}


def _number(name: str, about: str, default: int, most: int) -> Parameter:
    schema = {"type": "integer", "minimum": 1, "maximum": most, "default": default}
    return Parameter(name=name, about=about, schema=schema)


def _given_number(text: str, most: int) -> int | None:
    """Return the number from 1 to ``most`` that a text is; None for any other."""
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(most)):
        return None
    return int(text) if 1 <= int(text) <= most else None
