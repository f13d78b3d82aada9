"""Keep a conversation where Kiro's engine v3 does: a folder for each session of a workspace."""

from __future__ import annotations

import hashlib
import os
import time

from sortie.kiro.simulator.exchange import CANCELLED, SUCCESS, new_id
from sortie.kiro.simulator.files import append_lines, read_document, write_document
from sortie.kiro.simulator.keeping import MADE_BY, NEWEST, is_own, timestamp, title_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from sortie.kiro.simulator.exchange import Exchange, ToolUse
    from sortie.kiro.simulator.keeping import Keeping

PREFIX = "sess_"
"""How ids and folders of engine v3 begin."""


def record_v3(keeping: Keeping, exchange: Exchange) -> str:
    """Add the exchange to a session's two files and return its id. Raises OSError, ValueError."""
    folder = _folder(keeping) or os.path.join(
        keeping.sessions, _workspace(keeping.directory), _new_name(keeping.session)
    )
    os.makedirs(folder, mode=0o700, exist_ok=True)
    now = time.time_ns()
    path = os.path.join(folder, "session.json")
    session = read_document(path) or {
        "schemaVersion": "1.0.0",
        "id": os.path.basename(folder),
        MADE_BY: keeping.made_by,
        "title": title_of(exchange.prompt),
        "agentMode": exchange.agent or "vibe",
        "workspacePaths": [keeping.directory],
        "createdAt": timestamp(now),
        "autopilot": True,
    }
    session |= {"lastModifiedAt": timestamp(now), "modelId": exchange.model, "status": "idle"}
    lines = [
        {"id": new_id(), "timestamp": timestamp(now), "payload": payload}
        for payload in _payloads(exchange)
    ]
    append_lines(os.path.join(folder, "messages.jsonl"), lines)
    write_document(path, session)
    return str(session["id"])


def _workspace(directory: str) -> str:
    """Return the name of a workspace's folder; how Kiro makes its 16 digits is not known."""
    return hashlib.sha256(os.fsencode(directory)).hexdigest()[:16]


def _new_name(session: str) -> str:
    if session in ("", NEWEST):
        return PREFIX + new_id()
    return session if session.startswith(PREFIX) else PREFIX + session


def _folder(keeping: Keeping) -> str | None:
    """Return the folder of the session that is to grow, None where there is none of that kind."""
    if not keeping.session:
        return None
    found: tuple[str, str] | None = None
    name = _new_name(keeping.session)
    for folder in _folders(keeping.sessions):
        session = read_document(os.path.join(folder, "session.json"))
        if session is None or not is_own(session):
            continue
        if keeping.session != NEWEST:
            if os.path.basename(folder) == name:
                return folder
        elif keeping.directory in session.get("workspacePaths", ()):
            changed = str(session.get("lastModifiedAt"))
            found = max(found or (changed, folder), (changed, folder))
    return found[1] if found else None


def _folders(sessions: str) -> Iterator[str]:
    for workspace in _names(sessions):
        for name in _names(os.path.join(sessions, workspace)):
            if name.startswith(PREFIX):
                yield os.path.join(sessions, workspace, name)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _payloads(exchange: Exchange) -> Iterator[dict[str, Any]]:
    execution = {"executionId": new_id()}
    yield {"type": "turn_start", **execution}
    yield {"type": "user", "content": exchange.prompt}
    if exchange.added:
        yield {"type": "session_event", "kind": "hook_output", "content": exchange.added}
    for use in exchange.tools:
        for payload in _of_tool(use):
            yield {**payload, **execution}
    yield {
        "type": "assistant",
        "operationType": "Say",
        "content": exchange.answer,
        "modelId": exchange.model,
        **execution,
    }
    share = {"usagePercentage": exchange.context_share}
    yield {"type": "session_metadata", "key": "contextUsage", "value": share}
    yield {"type": "turn_end", "stopReason": "end_turn", **execution}
    used = sorted({use.name for use in exchange.tools})
    spent = {"unit": "credit", "unitPlural": "credits", "usage": exchange.spent, "usedTools": used}
    yield {
        "type": "usage_summary",
        "promptTurnSummaries": [spent],
        "status": "success",
        **execution,
    }


def _of_tool(use: ToolUse) -> Iterator[dict[str, Any]]:
    """Yield what is kept of a tool use; one that was cancelled has a question and no result."""
    kind = {"fs_write": "edit", "fs_read": "read", "execute_bash": "execute"}.get(use.name, "other")
    call = {"type": "tool_call", "toolCallId": use.id, "toolName": use.name, "kind": kind}
    if use.status == CANCELLED:
        yield {
            "type": "pending_interaction",
            "interactionType": "tool_approval",
            "toolCallId": use.id,
            "question": use.name,
        }
        yield {"type": "interaction_resolved", "toolCallId": use.id, "outcome": "cancelled"}
        yield {**call, "args": use.args, "status": "cancelled"}
        return
    status = "completed" if use.status == SUCCESS else "failed"
    yield {**call, "args": use.args, "status": status}
    yield {
        "type": "tool_result",
        "toolCallId": use.id,
        "content": use.result,
        "success": use.status == SUCCESS,
    }
