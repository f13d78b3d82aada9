"""Checks values that the adapter of an agent gives."""

from __future__ import annotations

from typing import TypeVar

from sortie.model.texts import start_of

AGENT_NAME_LIMIT = 200
"""Characters of a name that an agent gives, as of a tool or a session."""

_LINES_LIMIT = 2**53

_Value = TypeVar("_Value")


def checked_session_id(session_id: object) -> str:
    """Return the id that an agent gave its session. Raises TypeError and ValueError for one that
    could not be stored and handed back: half an id would name another session, or none."""
    known = checked(session_id, str)
    if not known or len(known) > AGENT_NAME_LIMIT or not known.isprintable():
        raise ValueError(f"an agent's session id was expected, not {start_of(repr(known), 100)}")
    return known


def checked_count(count: object) -> int:
    """Return a number of lines. Raises ValueError for what is none."""
    if isinstance(count, int) and 0 < count < _LINES_LIMIT:
        return count
    raise ValueError(f"{start_of(repr(count), 100)} cannot be a number of lines")


def checked(value: object, kind: type[_Value]) -> _Value:
    """Return a value of this type. Raises TypeError for another one."""
    if not isinstance(value, kind):
        raise TypeError(f"{kind.__name__} was expected of an agent, not {type(value).__name__}")
    return value
