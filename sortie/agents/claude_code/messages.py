"""Reading parts of Claude Code's messages, whatever stands in them, and saying them in a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sortie.json_rpc.values import mapping
from sortie.lines import strip_escapes
from sortie.model.texts import start_of

_SHOWN = 2000
_WHOLE = 256 * 1024
_INPUTS = (
    "command",
    "file_path",
    "notebook_path",
    "path",
    "pattern",
    "url",
    "query",
    "description",
)
_DETAILS = ("message", "summary", "description", "status", "error", "model", "text")


def text_of(value: object) -> str:
    """Return a text, "" for anything else."""
    return value if isinstance(value, str) else ""


def summary(blocks: Sequence[Mapping[str, Any]]) -> str:
    """Say the content of a message in a line: its text, and what its tools are about."""
    return " ".join(filter(None, map(_said, blocks)))


def whole(blocks: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a message as it is, in lines; "" for one that only uses tools."""
    parts = (
        strip_escapes(start_of(text_of(block.get("text")), _WHOLE))
        for block in blocks
        if block.get("type") == "text"
    )
    return "\n".join(part.strip("\n") for part in parts if part.strip())


def _said(block: Mapping[str, Any]) -> str:
    match block.get("type"):
        case "text":
            return _squeezed(text_of(block.get("text")))
        case "tool_use":
            given = mapping(block.get("input"))
            about = next(filter(None, (text_of(given.get(name)) for name in _INPUTS)), "")
            name = text_of(block.get("name"))
            return _squeezed(f"{name}: {about}" if name and about else name or about)
        case _:
            return ""


def system_text(name: str, event: Mapping[str, Any]) -> str:
    """Return the kind of an event and its details, on one line."""
    if name == "api_retry":
        return _retry(event)
    details = " ".join(_details(event))
    return f"{name}: {details}" if details else name


def _details(event: Mapping[str, Any]) -> Iterator[str]:
    for name in _DETAILS:
        if found := _squeezed(text_of(event.get(name))):
            yield found


def _retry(event: Mapping[str, Any]) -> str:
    status = event.get("error_status")
    delay: Any = event.get("retry_delay_ms")
    after = f" in {delay / 1000:.1f} s" if _is_number(delay) else ""
    because = _squeezed(text_of(event.get("error"))) or "no reason given"
    code = f" ({status})" if isinstance(status, int) else ""
    tries = f"{_number(event.get('attempt'))} of {_number(event.get('max_retries'))}"
    return f"API retry {tries}{after}: {because}{code}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12


def _number(value: Any) -> str:
    return f"{value:.0f}" if _is_number(value) else "?"


def _squeezed(text: str) -> str:
    return " ".join(strip_escapes(start_of(text, _SHOWN)).split())
