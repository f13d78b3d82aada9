"""Which transition of a workflow leads to a status; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from sortie.model import TrackerError, TrackerErrorKind, same_state
from sortie.trackers.jira.fields import list_of, mapping_of, word_of

_SHOWN = 10


class Transition(Struct, frozen=True, kw_only=True):
    """A way out of a status; ``missing`` are the fields that it needs and that nobody gives."""

    id: str
    name: str
    to: str
    missing: tuple[str, ...] = ()


def transitions_in(answer: object) -> list[Transition]:
    """Return the transitions that an answer offers; those that are not available are left out."""
    told = map(mapping_of, list_of(mapping_of(answer).get("transitions")))
    return [
        Transition(
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


def chosen(transitions: list[Transition], identifier: str, present: str, state: str) -> Transition:
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
