"""Keep a conversation where Kiro's engine v1 does: a row of a table in SQLite."""

from __future__ import annotations

import json
import os
import sqlite3
import time

from sortie.kiro.simulator.exchange import CANCELLED, SUCCESS, new_id
from sortie.kiro.simulator.keeping import MADE_BY, NEWEST, StoreTrouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sortie.kiro.simulator.exchange import Exchange, ToolUse
    from sortie.kiro.simulator.keeping import Keeping

_HISTORY_LIMIT = 10_000
_BUSY_TIMEOUT = 30.0
_TABLES = ("conversations", "conversations_v2")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS conversations (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS conversations_v2 (key TEXT NOT NULL, conversation_id TEXT NOT NULL,
  value TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  PRIMARY KEY (key, conversation_id));
"""
_ROW = "SELECT key, conversation_id, value, created_at FROM conversations_v2"
_NEWEST = f"{_ROW} WHERE key = ? ORDER BY updated_at DESC, rowid DESC LIMIT 1"
_NAMED = f"{_ROW} WHERE conversation_id = ? ORDER BY updated_at DESC LIMIT 1"
_WRITE = """
INSERT OR REPLACE INTO conversations_v2 (key, conversation_id, value, created_at, updated_at)
VALUES (?, ?, ?, ?, ?)
"""


def record_v1(keeping: Keeping, exchange: Exchange) -> str:
    """Add the exchange to a row and return its id. Raises StoreTrouble, OSError, ValueError."""
    path = keeping.database
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = sqlite3.connect(path, timeout=_BUSY_TIMEOUT, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        _require_own(connection, path)
        for statement in _SCHEMA.split(";")[:-1]:
            connection.execute(statement)
        now = time.time_ns() // 1_000_000
        key, identity, value, created = _row(connection, keeping, now)
        document = json.loads(value) if value else _empty(identity, keeping.made_by)
        _append(document, exchange, now)
        text = json.dumps(document, ensure_ascii=False)
        connection.execute(_WRITE, (key, identity, text, created, now))
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise StoreTrouble(str(error)) from error
    finally:
        connection.close()
    return identity


def _require_own(connection: sqlite3.Connection, path: str) -> None:
    names = {
        row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    if foreign := {n for n in names if not n.startswith("sqlite_")} - set(_TABLES):
        raise StoreTrouble(
            f"{path} belongs to a real Kiro (it has {', '.join(sorted(foreign))});"
            " the simulator leaves it alone"
        )


def _row(
    connection: sqlite3.Connection, keeping: Keeping, now: int
) -> tuple[str, str, str | None, int]:
    """Return key, id, document and time of making of the row that is to grow."""
    found = None
    if keeping.session == NEWEST:
        found = connection.execute(_NEWEST, (keeping.directory,)).fetchone()
    elif keeping.session:
        found = connection.execute(_NAMED, (keeping.session,)).fetchone()
    if found is not None:
        key, identity, value, created = found
        return key, identity, value, created
    identity = keeping.session if keeping.session not in ("", NEWEST) else new_id()
    return keeping.directory, identity, None, now


def _empty(identity: str, made_by: str) -> dict[str, Any]:
    return {
        "conversation_id": identity,
        MADE_BY: made_by,
        "history": [],
        "transcript": [],
        "model_info": {},
        "user_turn_metadata": {"usage_info": [], "requests": []},
    }


def _append(document: dict[str, Any], exchange: Exchange, now: int) -> None:
    """Add the turn's messages: an entry for each tool use, and one for the answer."""
    user: dict[str, Any] = {"Prompt": {"prompt": exchange.prompt}}
    added = exchange.added
    for use in exchange.tools:
        names = {"name": use.name, "orig_name": use.name}
        call = {"id": use.id, **names, "args": use.args, "orig_args": use.args}
        assistant = {"ToolUse": {"message_id": new_id(), "content": "", "tool_uses": [call]}}
        entry = _entry(user, assistant, exchange, now)
        entry["request_metadata"]["tool_use_ids_and_names"] = [[use.id, use.name]]
        document["history"].append(_with(entry, added))
        user, added = _outcome(use), ""
    message = new_id()
    response = {"Response": {"message_id": message, "content": exchange.answer}}
    document["history"].append(_with(_entry(user, response, exchange, now), added))
    document["history"] = document["history"][-_HISTORY_LIMIT:]
    document["transcript"] += [f"> {exchange.prompt}", exchange.answer]
    document["model_info"] = {"model_id": exchange.model}
    metadata = document["user_turn_metadata"]
    metadata["usage_info"].append({"value": exchange.spent, "unit": "credit"})
    metadata["requests"].append({"message_id": message})


def _outcome(use: ToolUse) -> dict[str, Any]:
    status = "Success" if use.status == SUCCESS else "Error"
    result = {"tool_use_id": use.id, "content": [{"Text": use.result}], "status": status}
    if use.status == CANCELLED:
        return {"CancelledToolUses": {"prompt": None, "tool_use_results": [result]}}
    return {"ToolUseResults": {"tool_use_results": [result]}}


def _with(entry: dict[str, Any], added: str) -> dict[str, Any]:
    """Return the entry with what hooks have added to the prompt in it."""
    if added:
        entry["user"]["additional_context"] = added
    return entry


def _entry(user: object, assistant: object, exchange: Exchange, now: int) -> dict[str, Any]:
    return {
        "user": {"content": user},
        "assistant": assistant,
        "request_metadata": {
            "request_start_timestamp_ms": now,
            "stream_end_timestamp_ms": now,
            "response_size": len(exchange.answer.encode(errors="replace")),
            "tool_use_ids_and_names": [],
            "model_id": exchange.model,
            "context_usage_percentage": exchange.context_share,
        },
    }
