"""The tools that Claude Code uses in a turn: their starts, their ends, and what failed ones say."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from sortie.lines import strip_escapes
from sortie.model.turns import ToolEnded, ToolStarted

ERROR_LIMIT = 2048
"""Bytes of UTF-8 that the text of a tool's error may have."""

_FIRST_LINE_LIMIT = 512
_AT_ONCE = 1000
_ENVELOPE = re.compile(r"\s*<tool_use_error>(.*)</tool_use_error>\s*", re.DOTALL)
_CUT = "\n[...]\n"

_KINDS = {
    "Read": "read",
    "NotebookRead": "read",
    "Edit": "edit",
    "MultiEdit": "edit",
    "Write": "edit",
    "NotebookEdit": "edit",
    "Bash": "execute",
    "Glob": "search",
    "Grep": "search",
    "ToolSearch": "search",
    "WebFetch": "fetch",
    "WebSearch": "fetch",
}
_PATHS = ("file_path", "notebook_path", "path")
_GIVEN = ("command", "pattern", "url", "query", "description")


class ClaudeToolCalls:
    """The tool calls of a turn, by their ids.

    Rule: a call that was told to have started is told to have ended, at the latest with its turn.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began: dict[str, float] = {}

    def started(self, block: Mapping[str, Any]) -> ToolStarted | None:
        """Take a ``tool_use`` block; None where it is invalid or a repetition."""
        call, name, given = block.get("id"), block.get("name"), block.get("input")
        if not (isinstance(call, str) and isinstance(name, str)) or call in self._began:
            return None
        if len(self._began) >= _AT_ONCE:
            return None
        self._began[call] = self._clock()
        return ToolStarted(
            id=call,
            name=name,
            kind=_KINDS.get(name),
            locations=_locations(given),
            about=_about(given),
        )

    def ended(self, block: Mapping[str, Any]) -> ToolEnded | None:
        """Take a ``tool_result`` block; None where no call waits for it."""
        call = block.get("tool_use_id")
        began = self._began.pop(call, None) if isinstance(call, str) else None
        if began is None or not isinstance(call, str):
            return None
        failed = block.get("is_error") is True
        said = error_text(block.get("content"))
        return ToolEnded(
            id=call,
            failed=failed,
            duration=self._clock() - began,
            error=said if failed else None,
            output=said if said and not failed else None,
        )

    def close(self) -> list[ToolEnded]:
        """Return the ends of the calls that end with the turn."""
        now = self._clock()
        error = "the turn ended before the tool did"
        ended = [
            ToolEnded(id=call, failed=True, duration=now - began, error=error)
            for call, began in self._began.items()
        ]
        self._began.clear()
        return ended


def _locations(given: object) -> tuple[str, ...]:
    if not isinstance(given, Mapping):
        return ()
    found = (given.get(name) for name in _PATHS)
    return tuple(path for path in found if isinstance(path, str) and path)


def _about(given: object) -> str | None:
    """Return what a tool is given besides files."""
    if not isinstance(given, Mapping):
        return None
    found = (given.get(name) for name in _GIVEN)
    return next((strip_escapes(each) for each in found if isinstance(each, str) and each), None)


def error_text(content: object) -> str:
    """Return what a tool has said: without its envelope, colours and middle.

    ``content`` is a text, or a list of blocks of which some are texts. A text of more than
    ERROR_LIMIT bytes is cut to its first line, which tells the exit status, and its end, where a
    program says what was wrong.
    """
    text = content if isinstance(content, str) else _joined(content)
    if found := _ENVELOPE.fullmatch(text):
        text = found[1]
    return _shortened(strip_escapes(text).strip())


def _joined(content: object) -> str:
    if not isinstance(content, list):
        return ""
    texts = (block.get("text") for block in content if isinstance(block, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))


def _shortened(text: str) -> str:
    encoded = text.encode(errors="replace")
    if len(encoded) <= ERROR_LIMIT:
        return text
    first = encoded.partition(b"\n")[0][:_FIRST_LINE_LIMIT]
    last = encoded[-(ERROR_LIMIT - len(first) - len(_CUT)) :]
    return f"{first.decode(errors='ignore')}{_CUT}{last.decode(errors='ignore')}"
