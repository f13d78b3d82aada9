"""Answer what an agent asks by the rules of WORKFLOW.md; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from sortie.agents.permissions import PermissionRules, ruling_for
from sortie.json_rpc import values
from sortie.model.asked_permissions import Granted

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
    kind: str,
    *,
    outside: bool,
    options: Sequence[Mapping[str, Any]],
    rules: PermissionRules,
    granted: Granted | None = None,
) -> PermissionAnswer:
    """Return the answer for a call of a kind; once is preferred to always.

    ``granted`` is for how long people have allowed it, where they are to be asked. What they have
    allowed once is not allowed for always.
    """
    ruling = ruling_for(kind, rules, outside=outside)
    if not ruling.asks:
        return _answer(options, ruling.reason, allowed=ruling.allowed)
    reason = f"{ruling.reason}, {'by a person' if granted else 'until a person allows it'}"
    once = granted is Granted.ONCE
    return _answer(options, reason, allowed=granted is not None, only_once=once)


def grant(options: Sequence[Mapping[str, Any]]) -> PermissionAnswer:
    """Return the answer that allows a tool of Sortie's own, which no rule needs to allow."""
    return _answer(options, "as a tool of Sortie's", allowed=True)


def is_of_server(call: Mapping[str, Any], kind: str, server: str, announced: str = "") -> bool:
    """Tell whether a call is one of a tool of an MCP server, by the words of agents that name it.

    What the model says can be in a title, but neither in its end nor in the id in one of Gemini's.
    Copilot has ``announced`` the call by another title than it asks with; where a title is the
    model's, both are the same.
    """
    title, id_ = values.text(call, "title") or "", values.text(call, "toolCallId") or ""
    if kind != "other":
        return False
    if title.startswith(f"mcp__{server}__") and title.isidentifier():  # Claude Code
        return True
    if title and announced == f"{server}-{title}":
        return True
    return title.endswith(f" ({server} MCP Server)") and id_.startswith(f"mcp_{server}_")  # Gemini


def _answer(
    options: Sequence[Mapping[str, Any]], reason: str, *, allowed: bool, only_once: bool = False
) -> PermissionAnswer:
    verb = "allow" if allowed else "reject"
    for word in (f"{verb}_once",) if only_once else (f"{verb}_once", f"{verb}_always"):
        for option in options:
            option_id = values.text(option, "optionId")
            if option.get("kind") == word and option_id is not None:
                said = f"{'allowed' if allowed else 'denied'} {reason} ({word})"
                return PermissionAnswer(option_id=option_id, allowed=allowed, reason=said)
    unchoosable = f"allowed {reason}, but it offered no such choice"
    said = unchoosable if allowed else f"denied {reason}"
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
