"""What is Jira's own in HTTP: its headers of limits, how it says what is wrong, how it signs."""

from __future__ import annotations

from sortie.trackers.http.answers import HttpAnswer
from sortie.trackers.http.budget import BudgetHeaders, Reset
from sortie.trackers.http.credentials import Credential, basic, bearer
from sortie.trackers.http.requests import Provider, error_text_in_json
from sortie.trackers.jira.settings import is_cloud_host

_CLOUD_BUDGET = BudgetHeaders(
    limit="x-ratelimit-limit",
    remaining="x-ratelimit-remaining",
    reset="x-ratelimit-reset",
    unit=Reset.ISO,
)
_DATA_CENTER_BUDGET = BudgetHeaders(  # a bucket that gets some more in each interval
    limit="x-ratelimit-limit",
    remaining="x-ratelimit-remaining",
    reset="x-ratelimit-interval-seconds",
    unit=Reset.SECONDS,
)


def provider_of(endpoint: str, deployment: str) -> Provider:
    """Return Jira as the client is to know it."""
    is_cloud = deployment == "cloud" or is_cloud_host(endpoint)
    return Provider(
        name="Jira",
        headers={"X-Atlassian-Token": "no-check"},
        budgets=[_CLOUD_BUDGET if is_cloud else _DATA_CENTER_BUDGET],
        is_limit=lambda answer: answer.status == 429,
        error_text=_error_text,
    )


def credential_of(api_key: str) -> Credential:
    """Return what a key signs with: ``user:secret`` as Basic, anything else as a bearer token."""
    user, colon, secret = api_key.strip().partition(":")
    return basic(user.strip(), secret.strip()) if colon else bearer(user)


def _error_text(answer: HttpAnswer) -> str:
    login = answer.headers.get("x-seraph-loginreason", "")
    if "AUTHENTICATION_DENIED" in login:
        return "too many failed logins: log in with a browser, solve the CAPTCHA, mend the key"
    if "html" in answer.headers.get("content-type", ""):
        return "a page of HTML, and not of Jira's API"
    told = error_text_in_json(answer)
    if reason := answer.headers.get("ratelimit-reason"):
        return f"{reason}: {told}" if told else reason
    return told
