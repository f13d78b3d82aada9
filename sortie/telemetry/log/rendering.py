"""Render a log event as exactly one line: key=value text for people, JSON for programs."""

from __future__ import annotations

import json
import re

from structlog.typing import EventDict, WrappedLogger

_BARE = re.compile(r"[^\s\"'=\\]+")
_RESET = "\x1b[0m"
_DIM = "\x1b[2m"
_BOLD = "\x1b[1m"
_LEVEL_COLOURS = {
    "debug": "\x1b[2m",
    "info": "\x1b[32m",
    "warning": "\x1b[33m",
    "error": "\x1b[31m",
    "critical": "\x1b[1;31m",
}


class TextRenderer:
    """Renders ``TIME LEVEL EVENT key=value ...``; a value is quoted like JSON where it must be."""

    def __init__(self, *, colours: bool) -> None:
        self._colours = colours

    def __call__(self, _logger: WrappedLogger, _method: str, event: EventDict) -> str:
        rest = dict(event)
        time = _value(rest.pop("time", ""))
        level = _value(rest.pop("level", "info"))
        name = _value(rest.pop("event", ""))
        colour = _LEVEL_COLOURS.get(level, "")
        parts = [
            self._paint(_DIM, time),
            self._paint(colour, f"{level:<7}"),
            self._paint(_BOLD, name),
        ]
        parts += [f"{self._paint(_DIM, f'{_value(k)}=')}{_value(v)}" for k, v in rest.items()]
        return " ".join(parts)

    def _paint(self, colour: str, text: str) -> str:
        return f"{colour}{text}{_RESET}" if self._colours and colour else text


class JsonRenderer:
    """Renders one JSON object; ``time``, ``level`` and ``event`` come first."""

    def __call__(self, _logger: WrappedLogger, _method: str, event: EventDict) -> str:
        rest = dict(event)
        head = {key: rest.pop(key) for key in ("time", "level", "event") if key in rest}
        return _json(head | rest)


def _value(value: object) -> str:
    if isinstance(value, str) and _BARE.fullmatch(value) and value.isprintable():
        return value
    return _json(value)


def _json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(char: str) -> str:
    """Return a character as it is or, where a terminal or a parser could act on it, as an escape.

    Inside JSON such characters stand in strings only, so the escape means the same.
    """
    if char.isprintable():
        return char
    units = char.encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
