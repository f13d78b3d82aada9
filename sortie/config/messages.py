"""What to tell a person about a value that is not accepted."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any

from pydantic_core import ErrorDetails

_MISSPELT = 0.8  # how like a known name another must be, to be meant as it for certain
_SHOWN = 40
_LISTED = 40

_EXPECTED = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "string": "a text",
    "list": "a list",
    "tuple": "a list",
    "set": "a list",
    "frozen_set": "a list",
    "dict": "a mapping",
    "mapping": "a mapping",
    "model": "a mapping",
}

_BOUNDS = {
    "greater_than": ("gt", "a number above {}"),
    "greater_than_equal": ("ge", "a number of at least {}"),
    "less_than": ("lt", "a number below {}"),
    "less_than_equal": ("le", "a number of at most {}"),
}


def describe(value: object) -> str:
    """Name a value in a few words, shortened."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case str():
            shown = value if len(value) <= _SHOWN else value[: _SHOWN - 1] + "…"
            return f"the text {json.dumps(shown, ensure_ascii=False)}"
        case float():
            return str(value)
        case int():
            return str(value) if abs(value) < 10**20 else "a number that large"
        case Mapping():
            return "a mapping"
        case [] | ():
            return "an empty list"
        case _:
            return "a list"


def nearest(word: str, known: Collection[str]) -> str:
    """Return the hint that names the known word nearest to one that is not known."""
    plain = {name.casefold(): name for name in sorted(known)}
    close = get_close_matches(word.casefold().replace("-", "_")[:100], plain, n=1)
    if close:
        return f'did you mean "{plain[close[0]]}"?'
    if not 0 < len(known) <= _LISTED:
        return "no known one is like it"
    return f"known: {', '.join(sorted(known))}"


def misspelt(word: str, known: Collection[str]) -> str | None:
    """Return the known word that this one is a slip of, None where it may be something else."""
    plain = {name.casefold(): name for name in sorted(known)}
    close = get_close_matches(word.casefold()[:100], plain, n=1, cutoff=_MISSPELT)
    return plain[close[0]] if close else None


def _hint(expected: str, value: object) -> str:
    if expected == _EXPECTED["bool"] and isinstance(value, str):
        return "; yes, no, on and off are texts in YAML 1.2"
    if expected == _EXPECTED["string"] and isinstance(value, bool | int | float):
        return "; put it in quotes"
    return ""


def explain(error: ErrorDetails, value: Any, *, shown: bool) -> str:
    """Say what is accepted where pydantic found an error, and what stands there instead.

    ``shown`` is False for a secret: then the value is not mentioned.
    """
    kind, context = error["type"], error.get("ctx", {})
    if kind == "missing":
        return "is required"
    if kind in ("value_error", "assertion_error"):
        return str(context["error"])
    instead = f", not {describe(value)}" if shown else ""
    if kind == "needs":
        return f"{error['msg']}{instead}"
    if kind in ("literal_error", "enum"):
        return f"needs {context['expected']}{instead}"
    if kind in _BOUNDS:
        name, text = _BOUNDS[kind]
        return f"needs {text.format(context[name])}{instead}"
    expected = _EXPECTED.get(kind.removesuffix("_type").removesuffix("_from_float"))
    if expected is None:
        return f"{error['msg'][:1].lower()}{error['msg'][1:]}{instead}"
    return f"needs {expected}{instead}{_hint(expected, value) if shown else ''}"
