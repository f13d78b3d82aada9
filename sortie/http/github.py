"""What is GitHub's own among the services over HTTP: its limits and errors, and its GraphQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sortie.http.answers import HttpAnswer, NoJson
from sortie.http.budget import BudgetHeaders, Reset, Use
from sortie.http.client import HttpClient
from sortie.http.json_values import list_of, mapping_of
from sortie.http.requests import HttpRequest, Provider, error_text_in_json
from sortie.model import TrackerErrorKind

VERSION = "2022-11-28"
"""The version that is asked for; Enterprise Server knows no newer one."""


GRAPHQL = "graphql"
"""The budget that these requests are counted in, which is not that of REST."""

GRAPHQL_LIMITS = frozenset({"RATE_LIMITED", "RATE_LIMIT"})
"""Words by which GraphQL tells that no more is asked for now."""

TOO_MUCH = frozenset({"RESOURCE_LIMITS_EXCEEDED", "MAX_NODE_LIMIT_EXCEEDED"})
"""Words by which GraphQL tells that one question asked for too much."""

FORBIDDEN = frozenset({"FORBIDDEN", "INSUFFICIENT_SCOPES"})
"""Words by which GraphQL tells that the credential may not see something."""

UNKNOWN_FIELDS = frozenset({"undefinedField", "missingField", "undefinedType"})
"""Words by which GraphQL of an older server tells that it does not know what is asked for."""


def graphql_path(base: str) -> str:
    """Return the path of GraphQL from the root of a server whose REST is at this address."""
    path = "/" + base.partition("://")[2].partition("/")[2]
    if path.endswith("/api/v3"):
        return f"{path.removesuffix('/v3')}/{GRAPHQL}"
    return f"{path.rstrip('/')}/{GRAPHQL}"


def graphql_request(
    client: HttpClient,
    what: str,
    query: str,
    variables: Mapping[str, Any],
    *,
    use: Use = Use.READ,
    wanted: frozenset[int] = frozenset(),
) -> HttpRequest:
    """Return a question, or a change, in GraphQL; ``what`` begins an error's text."""
    return HttpRequest(
        method="POST",
        path=graphql_path(str(client.endpoint)),
        from_root=True,
        what=what,
        body={"query": query, "variables": variables},
        use=use,
        wanted=wanted,
        budget=GRAPHQL,
    )


def errors_in(body: object) -> list[Mapping[str, Any]]:
    """Return the errors that an answer of GraphQL tells."""
    return list(filter(None, map(mapping_of, list_of(mapping_of(body).get("errors")))))


def kinds_of(error: Mapping[str, Any]) -> set[str]:
    """Return the words by which an error of GraphQL says what kind it is."""
    code = mapping_of(error.get("extensions")).get("code")
    return {str(kind) for kind in (error.get("type"), code) if kind}


def messages_of(errors: Iterable[Mapping[str, Any]]) -> str:
    """Return what errors of GraphQL say for people."""
    return "; ".join(dict.fromkeys(str(error.get("message") or "") for error in errors))


def is_graphql_limit(answer: HttpAnswer) -> bool:
    """Tell whether an answer that looks like a success refuses for too many requests."""
    if answer.status != 200 or not answer.url.endswith(f"/{GRAPHQL}"):
        return False
    try:
        errors = errors_in(answer.json())
    except NoJson:
        return False
    return any(kinds_of(error) & GRAPHQL_LIMITS for error in errors)


def is_limit(answer: HttpAnswer) -> bool:
    """Tell a refusal for too many requests from one for a lack of permission."""
    if answer.status == 429 or is_graphql_limit(answer):
        return True
    if answer.status != 403:
        return False
    headers = answer.headers
    if "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0":
        return True
    told = error_text_in_json(answer).casefold()
    return "rate limit" in told or "abuse detection" in told


def kind_of(answer: HttpAnswer) -> TrackerErrorKind | None:
    """Return what a refusal means that is about all issues, or about one alone."""
    told = error_text_in_json(answer).casefold()
    if answer.status == 403:
        one = "locked" in told
        return TrackerErrorKind.PERMISSION if one else TrackerErrorKind.CLOSED
    if answer.status == 410 and "disabled" in told:
        return TrackerErrorKind.CLOSED
    return None


PROVIDER = Provider(
    name="GitHub",
    headers={"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": VERSION},
    kind_of=kind_of,
    is_limit=is_limit,
    budgets=[
        BudgetHeaders(
            limit="x-ratelimit-limit",
            remaining="x-ratelimit-remaining",
            reset="x-ratelimit-reset",
            unit=Reset.EPOCH_SECONDS,
            name_header="x-ratelimit-resource",
        )
    ],
    at_once=4,
)
