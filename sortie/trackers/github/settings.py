"""The ``github`` block, and what can be wrong with the settings of GitHub without asking it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from sortie.config.report import Finding
from sortie.config.settings import TrackerSettings
from sortie.config.values import Frozen, Limits, State, milliseconds, whole
from sortie.model import state_key
from sortie.model.addresses import is_endpoint, is_loopback, split_endpoint
from sortie.trackers.endpoints import PATH as ENDPOINT_PATH
from sortie.trackers.endpoints import endpoint_findings, named_states
from sortie.trackers.github.search_filter import filter_fault

ENDPOINT = "https://api.github.com"

_PROJECT = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]*)/[A-Za-z0-9._-]+")

_LABEL_LIMIT = 50
"""Characters of a label that GitHub takes."""


class GitHubSettings(BaseModel):
    """The ``github`` block."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    unlabeled_state: State | None = None
    not_planned_states: tuple[State, ...] = ()
    priority_labels: Limits = Frozen()
    app_id: Annotated[int, whole(1)] | None = None
    installation_id: Annotated[int, whole(1)] | None = None
    change_gap: Annotated[float, milliseconds(0, 60_000)] = Field(1.0, alias="change_gap_ms")
    sweep_interval: Annotated[float, milliseconds(0)] = Field(600.0, alias="sweep_interval_ms")


def findings(tracker: TrackerSettings, block: GitHubSettings) -> Iterator[Finding]:
    """Yield what is wrong with the settings of ``tracker`` and the block."""
    if tracker.endpoint is not None:
        yield from _about_endpoint(tracker.endpoint)
    if tracker.project is not None and not _is_project(tracker.project):
        message = f'"{tracker.project}" is no OWNER/REPOSITORY, such as octocat/hello-world'
        yield Finding(path=("tracker", "project"), message=message)
    if tracker.query_filter is not None and (fault := filter_fault(tracker.query_filter)):
        yield Finding(path=("tracker", "query_filter"), message=fault)
    yield from _about_states(tracker, block)
    yield from _about_app(tracker, block)


def _is_project(project: str) -> bool:
    return _PROJECT.fullmatch(project) is not None and project.split("/")[1].strip(".") != ""


def _about_endpoint(endpoint: str) -> Iterator[Finding]:
    yield from endpoint_findings(endpoint, ENDPOINT)
    parts = split_endpoint(endpoint)
    if parts is None or not is_endpoint(endpoint):
        return
    host = parts.hostname or ""
    if host in ("github.com", "www.github.com"):
        message = f"is where people look at GitHub; its API is at {ENDPOINT}"
        yield Finding(path=ENDPOINT_PATH, message=message)
    elif not _looks_like_api(host, parts.path):
        message = f"is no API of an Enterprise Server, which is at https://{host}/api/v3"
        yield Finding(path=ENDPOINT_PATH, message=message, severity="warning")


def _looks_like_api(host: str, path: str) -> bool:
    """Tell whether an address can be GitHub's, a data residency's, or an Enterprise Server's."""
    return host.startswith("api.") or is_loopback(host) or path.rstrip("/") == "/api/v3"


def _about_states(tracker: TrackerSettings, block: GitHubSettings) -> Iterator[Finding]:
    for path, name in named_states(tracker):
        if "," in name or len(name) > _LABEL_LIMIT:
            too_long = f"more than {_LABEL_LIMIT} characters"
            message = f'"{name}" can be no label: it has a comma, or {too_long}'
            yield Finding(path=path, message=message)
    named = {state_key(name) for name in tracker.active_states}
    if tracker.handoff_state is not None:
        named.add(state_key(tracker.handoff_state))
    terminal = {state_key(name) for name in tracker.terminal_states}
    if not terminal:
        message = 'is empty, so that closed issues are in no state but "closed"'
        yield Finding(path=("tracker", "terminal_states"), message=message, severity="warning")
    if (unlabeled := block.unlabeled_state) is not None and state_key(unlabeled) not in named:
        message = f'"{unlabeled}" is none of active_states, and not handoff_state'
        yield Finding(path=("github", "unlabeled_state"), message=message)
    for place, name in enumerate(block.not_planned_states):
        if state_key(name) not in terminal:
            message = f'"{name}" is not in tracker.terminal_states'
            yield Finding(path=("github", "not_planned_states", place), message=message)


def _about_app(tracker: TrackerSettings, block: GitHubSettings) -> Iterator[Finding]:
    if block.installation_id is not None and block.app_id is None:
        message = "belongs to a GitHub App; set github.app_id as well"
        yield Finding(path=("github", "installation_id"), message=message)
    if tracker.api_key is None:
        return
    key = tracker.api_key.get_secret_value()
    is_private_key = "PRIVATE KEY-----" in key
    if block.app_id is None and is_private_key:
        message = "is a private key, which only a GitHub App has; set github.app_id as well"
        yield Finding(path=("tracker", "api_key"), message=message)
    elif block.app_id is None and any(ord(char) <= 32 for char in key.strip()):
        message = "has white space inside, and is no token"
        yield Finding(path=("tracker", "api_key"), message=message)
    elif block.app_id is not None and not is_private_key:
        message = "needs the private key of the GitHub App (PEM), since github.app_id is set"
        yield Finding(path=("tracker", "api_key"), message=message)
    if block.app_id is not None and find_spec("jwt") is None:
        message = "needs the package PyJWT: pip install 'sortie[github]'"
        yield Finding(path=("github", "app_id"), message=message)
