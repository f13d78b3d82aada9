"""Keep a conversation where Kiro's engine v2 does: two files for each session."""

from __future__ import annotations

import os
import time

from sortie.kiro.simulator.exchange import SUCCESS, new_id
from sortie.kiro.simulator.files import append_lines, read_document, write_document
from sortie.kiro.simulator.keeping import MADE_BY, NEWEST, is_own, timestamp, title_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sortie.kiro.simulator.exchange import Exchange
    from sortie.kiro.simulator.keeping import Keeping


def record_v2(keeping: Keeping, exchange: Exchange) -> str:
    """Add the exchange to a session's two files and return its id. Raises OSError, ValueError."""
    folder = os.path.join(keeping.sessions, "cli")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    now = time.time_ns()
    session = _session(keeping, folder) or {
        "session_id": keeping.session if keeping.session not in ("", NEWEST) else new_id(),
        MADE_BY: keeping.made_by,
        "cwd": keeping.directory,
        "created_at": timestamp(now),
        "title": title_of(exchange.prompt),
        "session_state": {
            "agent_name": exchange.agent,
            "conversation_metadata": {"user_turn_metadatas": []},
        },
    }
    session["updated_at"] = timestamp(now)
    session["session_state"]["conversation_metadata"]["user_turn_metadatas"].append(
        {
            "input_token_count": 0,
            "output_token_count": 0,
            "model": exchange.model,
            "context_usage_percentage": exchange.context_share,
            "metering_usage": [{"value": exchange.spent, "unit": "credit"}],
        }
    )
    identity = str(session["session_id"])
    base = os.path.join(folder, identity)
    append_lines(f"{base}.jsonl", _messages(exchange, now // 1_000_000_000))
    write_document(f"{base}.json", session)
    return identity


def _session(keeping: Keeping, folder: str) -> dict[str, Any] | None:
    """Return the session that is to grow, None where there is none of that kind."""
    if keeping.session == NEWEST:
        own = [s for s in _sessions(folder) if is_own(s) and s.get("cwd") == keeping.directory]
        return max(own, key=lambda session: str(session.get("updated_at")), default=None)
    if not keeping.session:
        return None
    found = read_document(os.path.join(folder, f"{keeping.session}.json"))
    return found if found is not None and is_own(found) else None


def _sessions(folder: str) -> list[dict[str, Any]]:
    names = [name for name in os.listdir(folder) if name.endswith(".json")]
    found = [read_document(os.path.join(folder, name)) for name in names]
    return [session for session in found if session is not None]


def _messages(exchange: Exchange, now: int) -> list[dict[str, object]]:
    def line(kind: str, *content: dict[str, object]) -> dict[str, object]:
        data = {"message_id": new_id(), "content": list(content), "meta": {"timestamp": now}}
        return {"version": "v1", "kind": kind, "data": data}

    lines = [line("Prompt", {"kind": "text", "data": exchange.prompt})]
    if exchange.added:
        lines[0]["additional_context"] = exchange.added
    for use in exchange.tools:
        call = {"toolUseId": use.id, "name": use.name, "input": use.args}
        said = [{"kind": "text", "data": use.result}]
        status = "success" if use.status == SUCCESS else "error"
        done = {"toolUseId": use.id, "content": said, "status": status}
        lines.append(line("AssistantMessage", {"kind": "toolUse", "data": call}))
        lines.append(line("ToolResults", {"kind": "toolResult", "data": done}))
    lines.append(line("AssistantMessage", {"kind": "text", "data": exchange.answer}))
    return lines
