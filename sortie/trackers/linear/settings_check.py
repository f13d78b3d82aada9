"""What is wrong with the settings of a Linear tracker, found without asking Linear."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from sortie.config.report import Finding
from sortie.config.settings import TrackerSettings
from sortie.trackers.endpoints import endpoint_findings

_TEAM_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")

_KNOWN = """
accumulatedStateUpdatedAt activity addedToCycleAt addedToCyclePeriod ageTime and archivedAt
assignee attachments autoArchivedAt autoClosedAt canceledAt children comments completedAt
createdAt creator customerCount customerImportantCount cycle cycleTime delegate description
dueDate estimate hasActiveAgentSessions hasBlockedByRelations hasBlockingRelations
hasDismissedAgentSessions hasDuplicateRelations hasErroredAgentSessions
hasMergedAgentPullRequests hasRelatedRelations hasSharedUsers hasSuggestedAssignees
hasSuggestedLabels hasSuggestedProjects hasSuggestedRelatedIssues hasSuggestedSimilarIssues
hasSuggestedTeams id labels lastAppliedTemplate leadTime needs number or parent priority project
projectMilestone reactions recurringIssueTemplate releases searchableContent sharedWith
slaBreachesAt slaStatus snoozedBy snoozedUntilAt sourceMetadata startedAt state subscribers
suggestions team title triageTime triagedAt updatedAt
"""
_FILTER_KEYS = frozenset(_KNOWN.split())
"""The fields of Linear's IssueFilter as of July 2026; it gets new ones without a version."""


class BadFilter(ValueError):
    """A ``query_filter`` that is no JSON object; the text says what is wrong."""


def filter_of(text: str | None) -> dict[str, Any] | None:
    """Return ``tracker.query_filter`` as the IssueFilter it is. Raises BadFilter."""
    if text is None:
        return None
    try:
        found = json.loads(text, object_pairs_hook=_without_doubles)
    except json.JSONDecodeError as exc:
        place = f"line {exc.lineno}, column {exc.colno}"
        raise BadFilter(f"is no JSON ({place}: {exc.msg}); {_EXAMPLE}") from exc
    except RecursionError as exc:
        raise BadFilter(f"is nested too deeply; {_EXAMPLE}") from exc
    if not isinstance(found, dict):
        raise BadFilter(f"needs to be a JSON object, an IssueFilter; {_EXAMPLE}")
    return found


_EXAMPLE = 'write it as in {"labels": {"name": {"eq": "agent"}}}'


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise BadFilter(f'has "{key}" twice in one object; put the two into "and": [...]')
        found[key] = value
    return found


def check_settings(tracker: TrackerSettings, _block: Any) -> Iterator[Finding]:
    """Yield what is wrong, each at its key."""
    yield from _about_project(tracker.project)
    if tracker.endpoint is not None:
        yield from endpoint_findings(tracker.endpoint, "https://api.linear.app/graphql")
    if tracker.api_key is not None:
        yield from _about_key(tracker.api_key.get_secret_value())
    try:
        keys = filter_of(tracker.query_filter) or {}
    except BadFilter as exc:
        yield _error("query_filter", str(exc))
    else:
        yield from _about_filter(keys)


def _about_project(project: str | None) -> Iterator[Finding]:
    if project is not None and not _TEAM_KEY.fullmatch(project):
        hint = project.split("-")[0]
        example = f"; did you mean {hint}?" if _TEAM_KEY.fullmatch(hint) else ""
        what = "needs the key of a team, such as ENG where issues are called ENG-12"
        yield _error("project", f"{what}{example}")


def _about_key(key: str) -> Iterator[Finding]:
    if key.lower().startswith("bearer ") or key != key.strip() or " " in key:
        message = (
            "needs the key alone, without Bearer or blanks; linear.auth says of which kind it is"
        )
        yield _error("api_key", message)


def _about_filter(keys: dict[str, Any]) -> Iterator[Finding]:
    for key in keys:
        if key in ("team", "state"):
            setting = "tracker.project" if key == "team" else "the states of the settings"
            what = f'"{key}" is chosen by {setting} already; is a further condition meant?'
            yield _warning(what)
        elif key not in _FILTER_KEYS:
            near = get_close_matches(key, _FILTER_KEYS, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            yield _warning(f'"{key}" is no field of Linear\'s IssueFilter that is known here{hint}')


def _error(key: str, message: str) -> Finding:
    return Finding(path=("tracker", key), message=message)


def _warning(message: str) -> Finding:
    return Finding(path=("tracker", "query_filter"), message=message, severity="warning")
