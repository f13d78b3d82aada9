"""What is GitHub's own among the trackers over HTTP: its limits and errors."""

from __future__ import annotations

from sortie.model import TrackerErrorKind
from sortie.trackers.github.batches import is_graphql_limit
from sortie.trackers.http.answers import HttpAnswer
from sortie.trackers.http.budget import BudgetHeaders, Reset
from sortie.trackers.http.requests import Provider, error_text_in_json

VERSION = "2022-11-28"
"""The version that is asked for; Enterprise Server knows no newer one."""


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
