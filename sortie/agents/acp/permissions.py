"""Answer what an agent asks by the rules of WORKFLOW.md; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from sortie.acp import values
from sortie.agents.permissions import PermissionRules, ruling_for

_PATH_KEYS = frozenset(
    {
        "path",
        "paths",
        "file",
        "files",
        "filepath",
        "filename",
        "dir",
        "directory",
        "parentdir",
        "dirpath",
        "absolutepath",
        "notebookpath",
        "oldpath",
        "newpath",
        "source",
        "destination",
        "cwd",
        "workdir",
    }
)
"""Keys of a tool's input that name files, without their underscores; agents differ."""


class PermissionAnswer(Struct, frozen=True, kw_only=True):
    """What is answered: an option's id or None for none of them; ``reason`` is for people."""

    option_id: str | None
    allowed: bool
    reason: str


def decide(
    kind: str, *, outside: bool, options: Sequence[Mapping[str, Any]], rules: PermissionRules
) -> PermissionAnswer:
    """Return the answer for a call of a kind; once is preferred to always."""
    ruling = ruling_for(kind, rules, outside=outside)
    verb, reason = "allow" if ruling.allowed else "reject", ruling.reason
    for word in (f"{verb}_once", f"{verb}_always"):
        for option in options:
            option_id = values.text(option, "optionId")
            if option.get("kind") == word and option_id is not None:
                said = f"{'allowed' if ruling.allowed else 'denied'} {reason} ({word})"
                return PermissionAnswer(option_id=option_id, allowed=ruling.allowed, reason=said)
    unchoosable = f"allowed {reason}, but it offered no such choice"
    said = unchoosable if ruling.allowed else f"denied {reason}"
    return PermissionAnswer(option_id=None, allowed=False, reason=said)


def paths_of(call: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths that a tool call names: its locations, diffs, and those of its input."""
    for place in (*values.items(call, "locations"), *values.items(call, "content")):
        if path := values.text(place, "path"):
            yield _plain(path)
    for key, value in values.mapping(call, "rawInput").items():
        if key.replace("_", "").lower() in _PATH_KEYS:
            for path in value if isinstance(value, list) else [value]:
                if isinstance(path, str) and path:
                    yield _plain(path)


def _plain(path: str) -> str:
    return unquote(path.removeprefix("file://")) if path.startswith("file://") else path
