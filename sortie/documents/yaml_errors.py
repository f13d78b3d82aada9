"""Say in plain words what a YAML parser did not understand, and where it began."""

from __future__ import annotations

import re

from yaml import MarkedYAMLError

_CONTEXTS = {"a flow sequence": ("list", "]"), "a flow mapping": ("mapping", "}")}

_BEYOND_UNICODE = re.compile(r"\\U(?!0010|000)[0-9A-Fa-f]{8}")

_INDENTED_OTHERWISE = "this line is indented otherwise than those that it belongs to"


def explained(error: MarkedYAMLError, text: str) -> tuple[int, str]:
    """Return the index in the text to point at, and what is wrong there."""
    begin, found = error.context_mark, error.problem_mark
    context, problem = error.context or "", error.problem or "not understood"
    at = found.index if found else begin.index if begin else 0
    what = context.removeprefix("while parsing ").removeprefix("while scanning ")
    opened = begin.index if begin else at
    if what in _CONTEXTS and problem.startswith("expected ','"):
        kind, closing = _CONTEXTS[what]
        return opened, (
            f"the {kind} that begins here is not closed with {closing}, or lacks a comma"
        )
    if what.endswith("quoted scalar") and "unexpected end" in problem:
        return opened, "the quote that begins here is not closed"
    if what == "a simple key" and problem.startswith("could not find expected ':'"):
        return opened, "this line has no colon; a setting is written as key: value"
    words = _in_plain_words(problem, text, at)
    if words is None:
        words = " ".join(filter(None, (context, problem)))
    return at, words


def out_of_range(text: str) -> tuple[int, str] | None:
    """Return where an escape names no character, and what is wrong, None where none does."""
    found = _BEYOND_UNICODE.search(text)
    if found is None:
        return None
    return found.start(), f"{found[0]} is no character; the last one is \\U0010FFFF"


def _in_plain_words(problem: str, text: str, at: int) -> str | None:
    before = text[text.rfind("\n", 0, at) + 1 : at]
    sign = text[at : at + 1]
    if "cannot start any token" in problem:
        if sign == "\t":
            return "a tab stands here; lines are indented with blanks only"
        return f"a text cannot begin with {sign}; put it in quotes"
    if problem == "mapping values are not allowed here":
        if ": " in before:
            return "a second colon on this line; put a text that holds a colon in quotes"
        return (
            "a key cannot stand here: the text above goes on until here; "
            "look at the indentation, and for a colon that is missing"
        )
    if problem == "sequence entries are not allowed here":
        return "a list cannot begin on the line of its key; write [a, b], or begin a line with it"
    if problem.startswith("expected <block end>, but found"):
        if sign and sign in "]}":
            return f"{sign} closes nothing that is open"
        if before.strip():
            return "nothing can follow a closing quote or bracket here; quote the whole text"
        if sign == "-":
            return "a list cannot go on here, among keys"
        return _INDENTED_OTHERWISE
    if problem.startswith("expected the node content"):
        return f"a value is missing before {sign}" if sign.strip() else "a value is missing here"
    return None
