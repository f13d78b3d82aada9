"""The transitions of an issue: which leads to a status, and taking it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from sortie.http.budget import Use
from sortie.http.client import HttpClient, segment
from sortie.http.json_values import list_of, mapping_of, word_of
from sortie.http.requests import HttpRequest
from sortie.model import Issue, TrackerError, TrackerErrorKind, same_state
from sortie.trackers.jira.editions import Edition

_SHOWN = 10


class WorkflowTransition(Struct, frozen=True, kw_only=True):
    """A way out of a status; ``missing`` are the fields that it needs and that nobody gives."""

    id: str
    name: str
    to: str
    missing: tuple[str, ...] = ()


async def offered_transitions(
    client: HttpClient, edition: Edition, issue: Issue
) -> list[WorkflowTransition]:
    """Return the transitions that an issue can take now, with the fields that they need."""
    request = HttpRequest(
        path=_path(edition, issue),
        what=f"cannot ask for the transitions of {issue.identifier}",
        params=[("expand", "transitions.fields")],
        list_at=("transitions",),
    )
    return _transitions_in((await client.ask(request)).json())


async def take(
    client: HttpClient, edition: Edition, issue: Issue, transition: WorkflowTransition
) -> None:
    """Take a transition. A refusal does not say that it was not made: the issue does."""
    what = f"cannot move {issue.identifier} from {issue.state} to {transition.to}"
    body = {"transition": {"id": transition.id}}
    path = _path(edition, issue)
    await client.ask(HttpRequest(method="POST", path=path, what=what, body=body, use=Use.WRITE))


def _path(edition: Edition, issue: Issue) -> str:
    return f"{edition.api}/issue/{segment(issue.id)}/transitions"


def _transitions_in(answer: object) -> list[WorkflowTransition]:
    """Return the transitions that an answer offers; those that are not available are left out."""
    told = map(mapping_of, list_of(mapping_of(answer).get("transitions")))
    return [
        WorkflowTransition(
            id=word_of(it.get("id")),
            name=word_of(it.get("name")),
            to=word_of(mapping_of(it.get("to")).get("name")),
            missing=tuple(_missing(mapping_of(it.get("fields")))),
        )
        for it in told
        if it.get("isAvailable") is not False and word_of(it.get("id"))
    ]


def _missing(fields: Mapping[str, Any]) -> list[str]:
    found = []
    for key, value in fields.items():
        field = mapping_of(value)
        if field.get("required") is not True or field.get("hasDefaultValue") is True:
            continue
        allowed = [_value_name(v) for v in list_of(field.get("allowedValues"))[:_SHOWN]]
        names = ", ".join(filter(None, allowed))
        found.append(f"{word_of(field.get('name')) or key}{f' ({names})' if names else ''}")
    return found


def _value_name(value: object) -> str:
    told = mapping_of(value)
    return word_of(told.get("name")) or word_of(told.get("value")) or word_of(value)


def chosen(
    transitions: list[WorkflowTransition], identifier: str, present: str, state: str
) -> WorkflowTransition:
    """Return the transition to take to a state. Raises TrackerError that says what there is.

    One that needs no further field comes first, then the one with the lowest id.
    """
    attempt = f"cannot move {identifier} from {present} to {state}"
    if not transitions:
        raise TrackerError(
            TrackerErrorKind.PERMISSION,
            f"{attempt}: Jira offers no transition at all; "
            "give the key's account the permission Transition issues",
        )
    leading = [it for it in transitions if same_state(it.to, state)]
    if not leading:
        ways = ", ".join(sorted({it.to for it in transitions}))
        raise TrackerError(
            TrackerErrorKind.INVALID,
            f"{attempt}: no transition of its workflow leads there, only to {ways}",
        )
    best = min(leading, key=lambda it: (bool(it.missing), _order(it.id)))
    if best.missing:
        raise TrackerError(
            TrackerErrorKind.INVALID,
            f'{attempt}: the transition "{best.name}" needs {"; ".join(best.missing)}; '
            "give the field a default in the workflow, or take it off the screen",
        )
    return best


def _order(transition_id: str) -> tuple[int, str]:
    return (int(transition_id) if transition_id.isdecimal() else 10**9, transition_id)
