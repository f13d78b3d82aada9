"""Render a log event as exactly one line: key=value text for people, JSON for programs."""

from __future__ import annotations

import json
import re
from collections.abc import MutableMapping
from typing import Any

_BARE = re.compile(r"[^\s\"'=\\]+")
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT(\d\d:\d\d:\d\d)(?:\.\d+)?Z")
_RESET, _DIM, _BOLD = "\x1b[0m", "\x1b[2m", "\x1b[1m"
_GREEN, _YELLOW, _RED = "\x1b[32m", "\x1b[33m", "\x1b[31m"
_LEVEL_COLOURS = {"debug": _DIM, "warning": _YELLOW, "error": _RED, "critical": _RED}
_OUTCOMES = {
    **dict.fromkeys(("succeeded", "completed", "success", "ok"), _GREEN),
    **dict.fromkeys(("cancelled", "interrupted", "dropped", "skipped"), _YELLOW),
    **dict.fromkeys(("failed", "timed_out", "stalled", "error", "timeout"), _RED),
}
_OUTCOME_KEYS = frozenset({"status", "outcome", "result"})
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)
_RUN_SHOWN = 8
_ISSUE_SHOWN = 24
"""Columns that the names of issues are lined up in at most."""


class TextRenderer:
    """Renders ``TIME LEVEL EVENT key=value ...``; a value is quoted like JSON where it must be."""

    def __call__(self, _logger: object, _method: str, event: MutableMapping[str, Any]) -> str:
        rest = dict(event)
        time = _value(rest.pop("time", ""))
        level = _value(rest.pop("level", "info"))
        name = _value(rest.pop("event", ""))
        pairs = (f"{_value(key)}={_value(value)}" for key, value in rest.items())
        return " ".join((time, f"{level:<7}", name, *pairs))


class TerminalRenderer:
    """Renders ``TIME ISSUE EVENT key=value ... run=SHORT`` for a person at a terminal.

    The time is that of the day, in UTC. A level stands before the event unless it is info. Outcomes
    have a colour each where ``colours``; no information is in a colour alone.
    """

    def __init__(self, *, colours: bool) -> None:
        from rich.cells import cell_len  # not before: most daemons write to no terminal

        self._colours = colours
        self._columns_of = cell_len
        self._wide = 0  # columns of the longest name of an issue so far

    def __call__(self, _logger: object, _method: str, event: MutableMapping[str, Any]) -> str:
        rest = dict(event)
        time = _value(rest.pop("time", ""))
        level = _value(rest.pop("level", "info"))
        name = _value(rest.pop("event", ""))
        issue = _value(rest.pop("issue")) if "issue" in rest else ""
        run = _value(rest.pop("run")) if "run" in rest else ""
        colour = _LEVEL_COLOURS.get(level, "")
        parts = [
            self._paint(_DIM, _STAMP.sub(r"\1Z", time)),
            self._paint(_BOLD, issue) + " " * self._missing(issue),
            *([] if level == "info" else [self._paint(colour, level)]),
            self._paint(colour or _BOLD, name),
        ]
        parts += [
            f"{self._paint(_DIM, f'{_value(k)}=')}{self._pair(k, v)}" for k, v in rest.items()
        ]
        if run:
            parts.append(self._paint(_DIM, f"run={run[:_RUN_SHOWN]}"))
        return " ".join(part for part in parts if part)

    def _missing(self, issue: str) -> int:
        """Return how many columns line the events up with those above."""
        taken = self._columns_of(issue)
        self._wide = max(self._wide, min(taken, _ISSUE_SHOWN))
        return max(0, self._wide - taken)

    def _pair(self, key: str, value: object) -> str:
        written = _value(value)
        colour = _OUTCOMES.get(written, "") if key in _OUTCOME_KEYS else ""
        return self._paint(colour, written)

    def _paint(self, colour: str, text: str) -> str:
        return f"{colour}{text}{_RESET}" if self._colours and colour and text else text


class JsonRenderer:
    """Renders one JSON object; ``time``, ``level`` and ``event`` come first."""

    def __call__(self, _logger: object, _method: str, event: MutableMapping[str, Any]) -> str:
        rest = dict(event)
        head = {key: rest.pop(key) for key in ("time", "level", "event") if key in rest}
        return _json(head | rest)


def _value(value: object) -> str:
    if isinstance(value, str) and _BARE.fullmatch(value) and value.isprintable():
        return value
    return _json(value)


def _json(value: object) -> str:
    text = _ENCODER.encode(value)
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(char: str) -> str:
    """Return a character as it is or, where a terminal or a parser could act on it, as an escape.

    Inside JSON such characters stand in strings only, so the escape means the same.
    """
    if char.isprintable():
        return char
    units = char.encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
