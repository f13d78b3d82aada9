"""Values out of a provider's JSON: read tolerantly, or refused with a ValueError that says why."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sortie.model.texts import start_of


def mapping_of(value: object) -> Mapping[str, Any]:
    """Return an object, an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any]:
    """Return a list, an empty one for anything else."""
    return value if isinstance(value, list) else []


def text_of(value: object) -> str | None:
    """Return a text, None for anything else."""
    return value if isinstance(value, str) else None


def word_of(value: object) -> str:
    """Return a text without blanks around it, or a number as text; "" for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value.strip() if isinstance(value, str) else ""


def required_text(value: object, what: str) -> str:
    """Return a text that has to be there. Raises ValueError."""
    if (text := text_of(value)) is None:
        raise ValueError(f"{what} is no text: {shown(value)}")
    return text


def number_of(value: object) -> int | None:
    """Return a whole number, None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def required_number(value: object, what: str) -> int:
    """Return a whole number that has to be there. Raises ValueError."""
    if (number := number_of(value)) is None:
        raise ValueError(f"{what} is no number: {shown(value)}")
    return number


def time_of(value: object, what: str) -> datetime:
    """Return a time with its zone. Raises ValueError."""
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        found = None
    if found is None or found.utcoffset() is None:
        raise ValueError(f"{what} is no time: {shown(value)}")
    return found


def shown(value: object) -> str:
    """Return the beginning of a value, for a message."""
    return start_of(repr(value), 80)
