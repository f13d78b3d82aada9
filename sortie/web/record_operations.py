"""The operations that ask about issues, runs and days."""

from __future__ import annotations

from functools import wraps
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from sortie.config.rules import DEFAULT_RULE
from sortie.model import StoreError
from sortie.store import UnknownRun
from sortie.web.issue import ExplanationView, IssueView
from sortie.web.leases import LeadershipsView
from sortie.web.operations import (
    IDENTIFIER,
    JSON,
    RUN_ID,
    DescribedAnswer,
    Handler,
    Operation,
    Parameter,
    identifier_in,
    number_in,
    number_parameter,
)
from sortie.web.responses import error_response, json_response
from sortie.web.runs import DAYS, MOST_DAYS, RunView, run_document, usage_day, usage_day_schema
from sortie.web.source import DaemonSource
from sortie.web.state import to_json
from sortie.web.transcripts import transcript_operation

DEFAULT_RUNS, MOST_RUNS = 100, 1000
"""Runs on a page of history: by default, and at most."""

_NEWEST = (1 << 53) - 1  # the greatest number that programs read exactly

_UNREADABLE = {503: "the database cannot be read"}


def record_operations(daemon: DaemonSource) -> list[Operation]:
    """Return the operations."""

    @_readable
    async def history(request: Request) -> Response:
        given = request.query_params
        limit = number_in(request, "limit", DEFAULT_RUNS, MOST_RUNS)
        if limit is None:
            return error_response(400, f"limit must be a number from 1 to {MOST_RUNS}")
        issue, before, rule = given.get("issue"), given.get("before"), given.get("rule")
        if "" in (issue, before, rule):
            return error_response(400, "issue, before and rule must not be empty")
        of_rule = "" if rule == DEFAULT_RULE else rule
        runs = await daemon.history(issue=issue, limit=limit, before=before, rule=of_rule)
        headers = {}
        if len(runs) == limit:
            more = {"issue": issue, "rule": rule, "limit": limit, "before": runs[-1].run_id}
            query = urlencode({name: value for name, value in more.items() if value is not None})
            headers["link"] = f'</api/v1/history?{query}>; rel="next"'
        return json_response(200, [run_document(run) for run in runs], headers)

    @_readable
    async def run(request: Request) -> Response:
        found = await daemon.run(request.path_params["run_id"])
        if found is None:
            return error_response(404, "no such run is recorded")
        return json_response(200, run_document(found))

    @_readable
    async def diff(request: Request) -> Response:
        text = await daemon.diff(request.path_params["run_id"])
        if text is None:
            return error_response(404, "no change of such a run is recorded")
        return PlainTextResponse(text)

    @_readable
    async def stats(request: Request) -> Response:
        days = number_in(request, "days", DAYS, MOST_DAYS)
        if days is None:
            return error_response(400, f"days must be a number from 1 to {MOST_DAYS}")
        return json_response(200, {"days": [usage_day(row) for row in await daemon.days(days)]})

    @_readable
    async def leaderships(request: Request) -> Response:
        limit = number_in(request, "limit", DEFAULT_RUNS, MOST_RUNS)
        before = number_in(request, "before", _NEWEST, _NEWEST)
        if limit is None or before is None:
            return error_response(400, f"limit must be from 1 to {MOST_RUNS}, and before a token")
        found = await daemon.leaderships(limit, before)
        headers = {}
        if len(found) == limit:
            after = found[-1].token
            headers["link"] = f'</api/v1/leaderships?limit={limit}&before={after}>; rel="next"'
        view = LeadershipsView(leaderships=tuple(found))
        return Response(to_json(view), media_type=JSON, headers=headers)

    async def explain(request: Request) -> Response:
        return _view_or_sentence(await daemon.explain(identifier_in(request)))

    return [
        Operation(
            method="GET",
            path="/api/v1/history",
            about="The recorded runs, newest first; the header Link has the next page",
            endpoint=history,
            answers={200: DescribedAnswer(about="a page of runs", body=tuple[RunView, ...])},
            parameters=(
                Parameter(
                    name="issue",
                    about="the identifier of an issue: its runs only",
                    schema={"type": "string", "minLength": 1},
                ),
                Parameter(
                    name="rule",
                    about=f"the name of a rule: its runs only; {DEFAULT_RULE}: those of none",
                    schema={"type": "string", "minLength": 1},
                ),
                number_parameter("limit", "how many at most", DEFAULT_RUNS, MOST_RUNS),
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
            endpoint=run,
            answers={200: DescribedAnswer(about="the run", body=RunView)},
            parameters=(RUN_ID,),
            failures={404: "it is not recorded", **_UNREADABLE},
        ),
        Operation(
            method="GET",
            path="/api/v1/runs/{run_id}/diff",
            about="What the work of a run changes against its base",
            endpoint=diff,
            answers={200: DescribedAnswer(about="a unified diff", media_type="text/plain")},
            parameters=(RUN_ID,),
            failures={404: "none is recorded", **_UNREADABLE},
        ),
        transcript_operation(daemon.transcripts),
        Operation(
            method="GET",
            path="/api/v1/stats",
            about="What each agent did and used on each of the last days",
            endpoint=stats,
            answers={200: DescribedAnswer(about="the days, newest first", body=_stats_schema())},
            parameters=(number_parameter("days", "how many days", DAYS, MOST_DAYS),),
            failures=_UNREADABLE,
        ),
        Operation(
            method="GET",
            path="/api/v1/leaderships",
            about="Which daemons led the workflow, newest first; none without store.url",
            endpoint=leaderships,
            answers={200: DescribedAnswer(about="a page of them", body=LeadershipsView)},
            parameters=(
                number_parameter("limit", "how many at most", DEFAULT_RUNS, MOST_RUNS),
                Parameter(
                    name="before",
                    about="a token: go on behind it",
                    schema={"type": "integer", "minimum": 1},
                ),
            ),
            failures=_UNREADABLE,
        ),
        Operation(
            method="GET",
            path="/api/v1/issues/{identifier}/explain",
            about="How an issue stands and why, and when it may run",
            endpoint=explain,
            answers={200: DescribedAnswer(about="the explanation", body=ExplanationView)},
            parameters=(IDENTIFIER,),
            failures={404: "the issue is not with the daemon"},
        ),
        issue_operation("/api/v1/issues/{identifier}", issue_endpoint(daemon)),
    ]


def issue_operation(path: str, endpoint: Handler) -> Operation:
    """Return the operation that shows one issue, at a path of its own."""
    return Operation(
        method="GET",
        path=path,
        about="How an issue stands, and its last runs",
        endpoint=endpoint,
        answers={200: DescribedAnswer(about="the issue", body=IssueView)},
        parameters=(IDENTIFIER,),
        failures={404: "nothing is known of such an issue", **_UNREADABLE},
    )


def issue_endpoint(daemon: DaemonSource) -> Handler:
    """Return what shows one issue."""

    @_readable
    async def issue(request: Request) -> Response:
        return _view_or_sentence(await daemon.issue(identifier_in(request)))

    return issue


def _view_or_sentence(found: ExplanationView | IssueView | str) -> Response:
    if isinstance(found, str):
        return error_response(404, found)
    return Response(to_json(found), media_type=JSON)


def _readable(endpoint: Handler) -> Handler:
    """Answer 404 for a run that is not recorded, and 503 where records cannot be read."""

    @wraps(endpoint)
    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except UnknownRun as exc:
            return error_response(404, str(exc))
        except StoreError as exc:
            return error_response(503, str(exc))

    return answered


def _stats_schema() -> dict[str, object]:
    days = {"type": "array", "items": usage_day_schema()}
    return {"type": "object", "required": ["days"], "properties": {"days": days}}
