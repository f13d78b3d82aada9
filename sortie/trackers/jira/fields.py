"""An issue as Jira gives it, made into an issue of the port."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from msgspec import Struct

from sortie.http.json_values import list_of, mapping_of, text_of, time_of, word_of
from sortie.model import Blocker, Issue, IssueId, TrackerError, TrackerErrorKind, state_key
from sortie.trackers import TrackerStates
from sortie.trackers.http.added_states import AddedStates
from sortie.trackers.jira.people import person_of

_ASKED_FOR = (
    "summary description status priority labels creator assignee issuetype parent issuelinks "
    "created updated project"
)
JIRA_FIELDS = tuple(_ASKED_FOR.split())
"""The fields of an issue that are asked for."""

USUAL_PRIORITIES: Mapping[str, int] = {
    **dict.fromkeys(("highest", "blocker", "critical"), 1),
    **dict.fromkeys(("high", "major"), 2),
    **dict.fromkeys(("medium", "normal"), 3),
    **dict.fromkeys(("low", "minor"), 4),
}


class FieldRules(Struct, frozen=True, kw_only=True):
    """What an issue is made by; ``blocked_by`` is the ``state_key`` of a link's name."""

    browse: str
    read_text: Callable[[object], str]
    blocked_by: str
    priorities: Mapping[str, int]
    added: AddedStates

    @property
    def states(self) -> TrackerStates:
        """The states that the settings name."""
        return self.added.states


@dataclass(frozen=True, slots=True, kw_only=True)
class JiraIssue:
    """What an answer told of an issue.

    ``issue`` is None where it cannot be read, and ``error`` says why. ``project_id`` is where it
    is. ``blocking_state`` is its state as others see it that wait for it. ``status`` is its own,
    which ``is_ended`` where Jira takes it for the end of an issue.
    """

    id: IssueId
    key: str
    project_id: str
    updated: datetime | None
    blocking_state: str | None
    issue: Issue | None
    status: str = ""
    is_ended: bool = False
    error: TrackerError | None = field(default=None, compare=False)

    @property
    def readable(self) -> Issue:
        """The issue. Raises TrackerError (INVALID) where it cannot be read."""
        if self.issue is None:
            raise self.error or AssertionError
        return self.issue


def jira_issue(item: object, rules: FieldRules, known: JiraIssue | None = None) -> JiraIssue:
    """Return what an item of an answer tells; ``known`` is what was known of the issue before.

    Raises TrackerError (INVALID) where not even its id can be read.
    """
    record = mapping_of(item)
    issue_id, key = word_of(record.get("id")), word_of(record.get("key"))
    if not issue_id:
        raise _invalid(f"an issue has no id (its key is {key or 'missing'})")
    fields = mapping_of(record.get("fields"))
    project_id = word_of(mapping_of(fields.get("project")).get("id"))
    try:
        issue = _issue(issue_id, key, fields, rules, known)
    except ValueError as exc:
        return JiraIssue(
            id=IssueId(issue_id),
            key=key,
            project_id=project_id,
            updated=None,
            blocking_state=None,
            issue=None,
            error=_invalid(f"{key or issue_id}: {exc}"),
        )
    return JiraIssue(
        id=issue.id,
        key=key,
        project_id=project_id,
        updated=issue.updated_at,
        blocking_state=blocking_state(fields.get("status"), rules.states),
        issue=issue,
        status=_name_of(fields.get("status")),
        is_ended=_is_ended(fields.get("status")),
    )


def _issue(
    issue_id: str, key: str, fields: Mapping[str, Any], rules: FieldRules, known: JiraIssue | None
) -> Issue:
    title = text_of(fields.get("summary")) or ""
    status = _name_of(fields.get("status"))
    labels = tuple(text for text in list_of(fields.get("labels")) if isinstance(text, str))
    if not key:
        raise ValueError("it has no key")
    if not title.strip():
        raise ValueError("it has no summary; give it one")
    if not status.strip():
        raise ValueError("it has no status")
    updated, author = time_of(fields.get("updated"), "updated"), person_of(fields.get("creator"))
    return Issue(
        id=IssueId(issue_id),
        identifier=key,
        title=title,
        state=rules.added.state_of(status, labels, ended=_is_ended(fields.get("status"))),
        description=_description(fields, rules, known, updated),
        priority=_priority(fields.get("priority"), rules.priorities),
        url=f"{rules.browse}/browse/{key}",
        labels=labels,
        author=author.name or author.login or None,
        author_id=author.login or None,
        assignee=word_of(mapping_of(fields.get("assignee")).get("displayName")) or None,
        issue_type=word_of(mapping_of(fields.get("issuetype")).get("name")) or None,
        parent=word_of(mapping_of(fields.get("parent")).get("key")) or None,
        blocked_by=tuple(_blockers(fields.get("issuelinks"), rules)),
        created_at=time_of(fields.get("created"), "created"),
        updated_at=updated,
    )


def _description(
    fields: Mapping[str, Any], rules: FieldRules, known: JiraIssue | None, updated: datetime
) -> str:
    """Return the description; a known one is not made again where the issue has not changed."""
    if known is not None and known.issue is not None and known.updated == updated:
        return known.issue.description
    return rules.read_text(fields.get("description"))


def _priority(value: object, priorities: Mapping[str, int]) -> int | None:
    name = state_key(word_of(mapping_of(value).get("name")))
    return priorities.get(name, USUAL_PRIORITIES.get(name))


def _blockers(links: object, rules: FieldRules) -> list[Blocker]:
    """Return what an issue waits for: the inward ends of links that are called so."""
    found = []
    for link in map(mapping_of, list_of(links)):
        other = mapping_of(link.get("inwardIssue"))
        name = word_of(mapping_of(link.get("type")).get("inward"))
        if not other or state_key(name) != rules.blocked_by:
            continue
        issue_id = word_of(other.get("id"))
        found.append(
            Blocker(
                identifier=word_of(other.get("key")) or issue_id or "?",
                id=IssueId(issue_id) if issue_id else None,
                state=blocking_state(mapping_of(other.get("fields")).get("status"), rules.states),
            )
        )
    return found


def blocking_state(status: object, states: TrackerStates) -> str | None:
    """Return a blocker's state; a finished one with a name of its own is in a terminal state.

    Issues of other projects have other names; Jira's category says whether they are finished.
    """
    name = word_of(mapping_of(status).get("name"))
    if not name:
        return None
    is_named = state_key(name) in {state_key(state) for state in states.named}
    return states.terminal[0] if _is_ended(status) and not is_named and states.terminal else name


def _name_of(status: object) -> str:
    return text_of(mapping_of(status).get("name")) or ""


def _is_ended(status: object) -> bool:
    """Tell whether a status is of the category that Jira takes for the end of an issue."""
    return mapping_of(mapping_of(status).get("statusCategory")).get("key") == "done"


def _invalid(message: str) -> TrackerError:
    return TrackerError(TrackerErrorKind.INVALID, message)
