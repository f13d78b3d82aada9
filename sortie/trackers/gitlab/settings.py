"""The ``gitlab`` block, and what is wrong with settings that can be known without asking GitLab."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, PlainSerializer, StrictBool

from sortie.config.report import Finding
from sortie.config.settings import TrackerSettings
from sortie.config.values import Frozen, Script, choice, whole
from sortie.documents import Path
from sortie.model import state_key
from sortie.trackers.endpoints import endpoint_findings, named_states
from sortie.trackers.gitlab.query_filter import flaws

API = "/api/v4"

DEFAULT_ENDPOINT = "https://gitlab.com"

PRIORITIES: Mapping[str, int] = {
    "priority::1": 1,
    "priority::2": 2,
    "priority::3": 3,
    "priority::4": 4,
    "priority::critical": 1,
    "priority::high": 2,
    "priority::medium": 3,
    "priority::low": 4,
}

LABEL_LIMIT = 255
"""Characters of a label."""

_PATH = re.compile(r"[A-Za-z0-9_.][\w.-]*(/[A-Za-z0-9_.][\w.-]*)*", re.ASCII)


_freeze: Callable[[Mapping[str, int]], Mapping[str, int]] = Frozen

Priorities = Annotated[
    Mapping[str, Annotated[int, whole(1, 4)]],
    AfterValidator(_freeze),
    PlainSerializer(dict, return_type=dict[str, int]),
]
"""Priorities by the names of labels; it cannot be changed."""


class GitLabSettings(BaseModel):
    """The ``gitlab`` block."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scope: Annotated[str, choice("project", "group")] = "project"
    label_prefix: Script | None = None
    priorities: Priorities = Frozen(PRIORITIES)
    blockers: StrictBool = True
    confidential: StrictBool = False


def api_of(endpoint: str) -> str:
    """Return the address of the API of a GitLab, which may have been given itself."""
    return f"{endpoint.rstrip('/').removesuffix(API)}{API}"


def check(tracker: TrackerSettings, block: Any) -> Iterator[Finding]:
    """Yield what is wrong with the settings of ``tracker`` and of the block."""
    assert isinstance(block, GitLabSettings)
    if tracker.endpoint is not None:
        yield from endpoint_findings(tracker.endpoint, "https://gitlab.example.org")
    if tracker.project is not None and (flaw := _project_flaw(tracker.project, block)) is not None:
        yield Finding(path=("tracker", "project"), message=flaw)
    if tracker.query_filter is not None:
        for flaw in flaws(tracker.query_filter):
            yield Finding(path=("tracker", "query_filter"), message=flaw)
    if "," in (block.label_prefix or ""):
        yield Finding(
            path=("gitlab", "label_prefix"), message="has a comma, which no label of GitLab's has"
        )
    yield from _state_findings(tracker, block)


def _project_flaw(project: str, block: GitLabSettings) -> str | None:
    name = project.strip("/")
    if "://" in name:
        return f"needs the path alone, such as group/{block.scope}, not a whole address"
    if name.isdecimal():
        return None
    if not _PATH.fullmatch(name):
        return f"needs the path or the number of a {block.scope}, such as group/sub/name"
    if block.scope == "project" and "/" not in name:
        return (
            "needs the path of a project with its group, such as group/name; "
            "for all projects of a group set gitlab.scope to group"
        )
    return None


def _state_findings(tracker: TrackerSettings, block: GitLabSettings) -> Iterator[Finding]:
    for path, state in named_states(tracker):
        if (flaw := _state_flaw(path, state, block.label_prefix or "")) is not None:
            yield Finding(path=path, message=flaw)
    if tracker.active_states and not tracker.terminal_states:
        yield Finding(
            path=("tracker", "terminal_states"),
            message='is empty: name "closed" in it, or a closed issue is never finished',
            severity="warning",
        )


def _state_flaw(path: Path, state: str, prefix: str) -> str | None:
    key = state_key(state)
    if "," in state:
        return f'"{state}" has a comma, which no label of GitLab\'s has'
    if len(prefix) + len(state) > LABEL_LIMIT:
        return f"is longer than a label of GitLab's can be, {LABEL_LIMIT} characters"
    if key == "closed" and path[1] not in ("terminal_states", "handoff_state"):
        return '"closed" is the state of closed issues, on which nobody works'
    if key == "opened" and path[1] == "terminal_states":
        return '"opened" is the state of open issues without a label; these are not finished'
    if prefix and key.startswith(state_key(prefix)):
        return f'"{state}" begins with gitlab.label_prefix, which is put before it anyhow'
    return None
