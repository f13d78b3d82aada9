"""The ``jira`` block, and what can be wrong with the settings without asking Jira."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import util
from typing import Annotated, Literal
from urllib.parse import SplitResult

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from sortie.config.report import Finding
from sortie.config.settings import TrackerSettings
from sortie.config.values import Frozen, choice
from sortie.model.addresses import is_endpoint, split_endpoint
from sortie.trackers.endpoints import PATH as ENDPOINT_PATH
from sortie.trackers.endpoints import endpoint_findings
from sortie.trackers.jira.jql import flaw_of

GATEWAY = "api.atlassian.com"
"""The host through which scoped tokens and service accounts reach a site."""

_CLOUD = (".atlassian.net", ".jira.com", ".atlassian-us-gov-mod.net")
_GATEWAY_PATH = re.compile(r"/ex/jira/[0-9A-Za-z-]+/?")
_PROJECT = re.compile(r"[A-Za-z][A-Za-z0-9_]*|\d+")

_LABEL_LIMIT = 255
"""Characters of a label that Jira takes."""

MISSING_LIBRARIES = "needs libraries that are not installed: pip install 'sortie[jira]'"


class JiraSettings(BaseModel):
    """The ``jira`` block.

    ``deployment``: which Jira it is; by itself Sortie looks at the address, and then asks the
    server. ``blocked_by``: how a link to what has to be finished first is called, seen from the
    issue that waits. ``priorities``: numbers for names of priorities, before the usual ones.
    ``restricted_comments``: comments that only a group or a role may see are read, too.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    deployment: Annotated[
        Literal["auto", "cloud", "data-center"], choice("auto", "cloud", "data-center")
    ] = "auto"
    blocked_by: Annotated[str, Field(min_length=1, max_length=255)] = "is blocked by"
    priorities: Annotated[
        Mapping[str, Annotated[int, Field(ge=0, le=1000)]], AfterValidator(Frozen)
    ] = Frozen()
    restricted_comments: bool = False


def lacks_libraries() -> bool:
    """Tell whether the libraries of ``sortie[jira]`` are not installed."""
    return util.find_spec("md_adf") is None or util.find_spec("mistune") is None


def host_of(endpoint: str) -> str:
    """Return the name of the server in an address, "" where it has none."""
    parts = split_endpoint(endpoint)
    return "" if parts is None else (parts.hostname or "").lower()


def is_cloud_host(endpoint: str) -> bool:
    """Tell whether an address can only be one of Jira Cloud."""
    host = host_of(endpoint)
    return host == GATEWAY or host.endswith(_CLOUD)


def check(tracker: TrackerSettings, block: JiraSettings) -> Iterator[Finding]:
    """Yield what is wrong with the settings, as far as can be seen without asking Jira."""
    if lacks_libraries():
        yield Finding(path=("tracker", "kind"), message=MISSING_LIBRARIES)
    endpoint, project, deployment = tracker.endpoint, tracker.project, block.deployment
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
    for position, state in enumerate(tracker.label_states):
        if any(map(str.isspace, state)) or len(state) > _LABEL_LIMIT:
            message = (
                f'"{state}" can be no label of Jira, which has no blanks and '
                f"{_LABEL_LIMIT} characters at most"
            )
            yield Finding(path=("tracker", "label_states", position), message=message)
    if tracker.query_filter is not None and (flaw := flaw_of(tracker.query_filter)):
        yield Finding(path=("tracker", "query_filter"), message=f"cannot be a condition: {flaw}")


def _about_endpoint(endpoint: str, deployment: str) -> Iterator[Finding]:
    yield from endpoint_findings(endpoint, "https://example.atlassian.net")
    parts = split_endpoint(endpoint)
    if parts is not None and is_endpoint(endpoint):
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
