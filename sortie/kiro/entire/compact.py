"""A recorded session in the compact form of Entire: JSON lines, each of a user or an assistant."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sortie.kiro.conversations.records import (
    ModelAnswer,
    Record,
    ToolResult,
    ToolUse,
    ToolUsesCancelled,
    UserPrompt,
)
from sortie.kiro.entire.repository import EntireError
from sortie.kiro.entire.transcripts import Transcript

_NAMES = {"fs_write": "Write", "write": "Write", "fs_edit": "Edit", "str_replace": "Edit"}
"""Entire's names for the tools that write files."""

_STOPPED: Mapping[str, str] = {"output": "", "status": "error"}


def compacted(transcript: Transcript, version: str) -> bytes:
    """Return the lines of a session. ``version`` is Entire's, for a session that names none.

    Raises EntireError where there would be no line.
    """
    if not transcript.length:
        raise EntireError("the transcript has no history entries")
    results = _results(transcript.since(0))
    head = {"v": 1, "agent": "kiro", "cli_version": transcript.cli_version or version}
    lines = [
        json.dumps({**head, **line}, ensure_ascii=False, separators=(",", ":"))
        for timestamp, records in transcript.entries()
        for line in _lines(timestamp, records, results)
    ]
    if not lines:
        raise EntireError("the transcript has neither messages nor tool uses")
    return "".join(f"{line}\n" for line in lines).encode(errors="replace")


def _results(records: Sequence[Record]) -> Mapping[str, Mapping[str, str]]:
    """Return what came of each tool use, by its id."""
    found: dict[str, Mapping[str, str]] = {}
    for record in records:
        match record:
            case ToolResult():
                status = "error" if record.succeeded is False else "success"
                found[record.tool_use_id] = {"output": record.text, "status": status}
            case ToolUsesCancelled(tool_use_ids=ids):
                found.update(dict.fromkeys(ids, _STOPPED))
            case _:
                pass
    return found


def _lines(
    timestamp: str | None, records: Sequence[Record], results: Mapping[str, Mapping[str, str]]
) -> Iterator[Mapping[str, Any]]:
    """Yield the lines of one entry: what the user said, then what the model said and used."""
    at = {"ts": timestamp} if timestamp else {}
    blocks: list[Mapping[str, Any]] = []
    identity: str | None = None
    for record in records:
        match record:
            case UserPrompt(text=str(text)) | ToolUsesCancelled(prompt=str(text)) if text:
                yield {"type": "user", **at, "content": [{"text": text}]}
            case ModelAnswer():
                identity = record.message_id
                blocks += [{"type": "text", "text": record.text}] if record.text else []
            case ToolUse():
                blocks.append(_use(record, results.get(record.id)))
            case _:
                pass
    if blocks:
        named = {"id": identity} if identity else {}
        yield {"type": "assistant", **at, **named, "content": blocks}


def _use(use: ToolUse, result: Mapping[str, str] | None) -> Mapping[str, Any]:
    name = _NAMES.get(use.name, use.name)
    block = {"type": "tool_use", "id": use.id, "name": name, "input": dict(use.input)}
    return block if result is None else {**block, "result": result}
