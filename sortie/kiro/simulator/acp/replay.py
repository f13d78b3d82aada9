"""Tell a client what was said and done in a conversation that it loads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sortie.kiro.conversations import Answer, Prompt, Record, ToolResult, ToolUse
from sortie.kiro.simulator.acp.link import Link


def replay(link: Link, session: str, records: tuple[Record, ...]) -> None:
    """Tell of each record, in order. Raises ClientGone."""
    for record in records:
        for update in _updates(record):
            link.tell("session/update", {"sessionId": session, "update": update})


def _updates(record: Record) -> Iterator[Mapping[str, Any]]:
    match record:
        case Prompt(text=text):
            yield {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": text}}
        case Answer(text=text) if text:
            yield {
                "sessionUpdate": "agent_message_chunk",
                "content": {"type": "text", "text": text},
            }
        case ToolUse(id=used, name=name, input=given):
            call = {"toolCallId": used, "title": name, "status": "pending", "rawInput": dict(given)}
            yield {"sessionUpdate": "tool_call", **call}
        case ToolResult(tool_use_id=used, succeeded=succeeded):
            status = "failed" if succeeded is False else "completed"
            yield {"sessionUpdate": "tool_call_update", "toolCallId": used, "status": status}
        case _:
            pass
