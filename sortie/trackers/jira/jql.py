"""Jira's query language: literals that nothing breaks out of, and filters that stay in their place.

A filter of the user's stands in parentheses on a line of its own. It is refused where its own
brackets or quotes could end these, so that nothing in it widens what is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}

_ORDER_BY = re.compile(r"(?<![\w.])order\s+by(?![\w.])", re.IGNORECASE)


def quoted(text: str) -> str:
    """Return a text as a string literal."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    known = _ESCAPES.get(character)
    if known is not None:
        return known
    return character if character.isprintable() or ord(character) > 0xFF else _code(character)


def _code(character: str) -> str:
    return f"\\u{ord(character):04x}"


def one_of(field: str, values: Collection[str]) -> str:
    """Return the condition that a field has one of these values, of which there is at least one."""
    return f"{field} in ({', '.join(map(quoted, values))})"


def any_of(*conditions: str) -> str:
    """Return the condition that one of these is fulfilled, of which there is at least one."""
    if len(conditions) == 1:
        return conditions[0]
    return f"({' OR '.join(f'({each})' for each in conditions)})"


def query(*conditions: str) -> str:
    """Return what asks for the issues that fulfil all conditions, the oldest first."""
    return "\nAND ".join(conditions) + "\nORDER BY created ASC, key ASC"


def enclosed(filter_: str) -> str:
    """Return a filter that ``flaw_of`` has accepted as a condition."""
    return f"(\n{filter_.strip()}\n)"


def flaw_of(filter_: str) -> str | None:
    """Return what is wrong with a filter as a condition among others, None where nothing is."""
    outside, depth, quote = "", 0, ""
    characters = iter(filter_)
    for character in characters:
        if not character.isprintable() and (quote or character not in "\n\r\t"):
            return f"it holds the control character {character!r}; remove it"
        if quote:
            if character == "\\":
                next(characters, None)
            elif character == quote:
                quote = ""
            continue
        match character:
            case '"' | "'":
                quote = character
                outside += "x"  # a value, whatever it says
                continue
            case "\\":
                return "it holds a backslash outside of quotes; put the value in double quotes"
            case "(":
                depth += 1
            case ")":
                depth -= 1
                if depth < 0:
                    return "it closes a bracket that it did not open; remove the ')'"
        outside += character
    if quote:
        return f"a quote is not closed; end it with {quote}"
    if depth:
        return f"{depth} bracket{'s are' if depth > 1 else ' is'} not closed; add ')'"
    if _ORDER_BY.search(outside):
        return "it has ORDER BY; Sortie orders the issues by itself, so remove that"
    return None
