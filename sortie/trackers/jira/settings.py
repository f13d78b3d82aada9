"""What can be wrong with the settings of a Jira, seen without asking it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import SplitResult

from sortie.config import Finding, TrackerSettings
from sortie.trackers.endpoints import PATH as ENDPOINT_PATH
from sortie.trackers.endpoints import endpoint_findings, split_endpoint
from sortie.trackers.jira.jql import flaw_of

GATEWAY = "api.atlassian.com"
"""The host through which scoped tokens and service accounts reach a site."""

_CLOUD = (".atlassian.net", ".jira.com", ".atlassian-us-gov-mod.net")
_GATEWAY_PATH = re.compile(r"/ex/jira/[0-9A-Za-z-]+/?")
_PROJECT = re.compile(r"[A-Za-z][A-Za-z0-9_]*|\d+")


def host_of(endpoint: str) -> str:
    """Return the name of the server in an address, "" where it has none."""
    parts = split_endpoint(endpoint)
    return "" if parts is None else (parts.hostname or "").lower()


def is_cloud_host(endpoint: str) -> bool:
    """Tell whether an address can only be one of Jira Cloud."""
    host = host_of(endpoint)
    return host == GATEWAY or host.endswith(_CLOUD)


def findings(tracker: TrackerSettings, deployment: str) -> Iterator[Finding]:
    """Yield what is wrong with the keys of ``tracker``."""
    endpoint, project = tracker.endpoint, tracker.project
    if endpoint is not None:
        yield from _about_endpoint(endpoint, deployment)
    if endpoint is not None and tracker.api_key is not None:
        key = tracker.api_key.get_secret_value().strip()
        if message := _about_key(key, endpoint, deployment):
            path, needs = ("tracker", "api_key"), (("tracker", "endpoint"),)
            yield Finding(path=path, message=message, needs=needs)
    if project is not None and not _PROJECT.fullmatch(project):
        message = f'"{project}" is no key of a project: the PROJ of PROJ-7'
        yield Finding(path=("tracker", "project"), message=message)
    if tracker.query_filter is not None and (flaw := flaw_of(tracker.query_filter)):
        yield Finding(path=("tracker", "query_filter"), message=f"cannot be a condition: {flaw}")


def _about_endpoint(endpoint: str, deployment: str) -> Iterator[Finding]:
    found = list(endpoint_findings(endpoint, "https://example.atlassian.net"))
    yield from found
    parts = split_endpoint(endpoint)
    if parts is None or any(finding.severity == "error" for finding in found):
        return
    for message in _about_site(endpoint, parts, deployment):
        yield Finding(path=ENDPOINT_PATH, message=message)


def _about_site(endpoint: str, parts: SplitResult, deployment: str) -> Iterator[str]:
    host, path, is_cloud = parts.hostname or "", parts.path.rstrip("/"), is_cloud_host(endpoint)
    if "/rest" in path:
        yield "needs the address before /rest, which Sortie adds itself"
    elif host == GATEWAY and not _GATEWAY_PATH.fullmatch(parts.path):
        yield f"needs the id of the site: https://{GATEWAY}/ex/jira/CLOUD-ID"
    elif is_cloud and host != GATEWAY and path:
        yield f"needs the address of the site alone: https://{host}"
    if is_cloud and deployment == "data-center":
        yield 'is one of Jira Cloud, and jira.deployment is "data-center"'


def _about_key(key: str, endpoint: str, deployment: str) -> str | None:
    """Return what is wrong with the form of a key; it is not shown."""
    user, colon, secret = key.partition(":")
    if colon and not (user.strip() and secret.strip()):
        return "needs both sides of its colon: email:token, or user:password"
    host = host_of(endpoint)
    is_site = deployment == "cloud" or (is_cloud_host(endpoint) and host != GATEWAY)
    if not colon and is_site and host != GATEWAY:
        return "needs the form email:token for a site of Jira Cloud, such as me@example.org:$TOKEN"
    return None
