"""Store a conversation where Kiro's engine v1 does: a row of a table in SQLite."""

from __future__ import annotations

import json
import os
import sqlite3
import time

from sortie.kiro.simulator.exchange import (
    MADE_BY,
    NEWEST,
    PROGRAM,
    Exchange,
    SimulatedStoreError,
    new_id,
)

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


def record_v1(path: str, exchange: Exchange) -> None:
    """Add the exchange to its conversation's row in the database at ``path``.

    A database with other tables than these belongs to a real Kiro and is not changed. Raises
    StoreError, OSError and ValueError.
    """
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = sqlite3.connect(path, timeout=_BUSY_TIMEOUT, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        _require_own(connection, path)
        for statement in _SCHEMA.split(";")[:-1]:
            connection.execute(statement)
        now = time.time_ns() // 1_000_000
        by_id = exchange.session not in ("", NEWEST)
        query, value = (_NAMED, exchange.session) if by_id else (_NEWEST, exchange.directory)
        found = connection.execute(query, (value,)).fetchone() if exchange.session else None
        key, identity, text, created = found or (exchange.directory, new_id(), None, now)
        text = _with_exchange(text, identity, exchange, now)
        connection.execute(_WRITE, (key, identity, text, created, now))
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise SimulatedStoreError(str(error)) from error
    finally:
        connection.close()


def _require_own(connection: sqlite3.Connection, path: str) -> None:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    names = {row[0] for row in rows}
    if foreign := {n for n in names if not n.startswith("sqlite_")} - set(_TABLES):
        raise SimulatedStoreError(
            f"{path} belongs to a real Kiro (it has {', '.join(sorted(foreign))});"
            " the simulator leaves it alone"
        )


def _with_exchange(text: str | None, identity: str, exchange: Exchange, now: int) -> str:
    """Return the row's document with an entry for each tool use, and one for the answer."""
    empty = {
        "conversation_id": identity,
        MADE_BY: PROGRAM,
        "history": [],
        "transcript": [],
        "user_turn_metadata": {"usage_info": [], "requests": []},
    }
    document = json.loads(text or json.dumps(empty))
    user: dict[str, object] = {"Prompt": {"prompt": exchange.prompt}}
    for use in exchange.tools:
        names = {"name": use.name, "orig_name": use.name}
        call = {"id": use.id, **names, "args": use.args, "orig_args": use.args}
        assistant = {"ToolUse": {"message_id": new_id(), "content": "", "tool_uses": [call]}}
        document["history"].append(_entry(user, assistant, exchange, now))
        status = "Error" if use.failed else "Success"
        result = {"tool_use_id": use.id, "content": [{"Text": use.said}], "status": status}
        user = {"ToolUseResults": {"tool_use_results": [result]}}
    message = new_id()
    response = {"Response": {"message_id": message, "content": exchange.answer}}
    document["history"].append(_entry(user, response, exchange, now))
    document["transcript"] += [f"> {exchange.prompt}", exchange.answer]
    document["model_info"] = {"model_id": exchange.model}
    metadata = document["user_turn_metadata"]
    metadata["usage_info"].append({"value": exchange.spent, "unit": "credit"})
    metadata["requests"].append({"message_id": message})
    return json.dumps(document, ensure_ascii=False)


def _entry(user: object, assistant: object, exchange: Exchange, now: int) -> dict[str, object]:
    return {
        "user": {"content": user},
        "assistant": assistant,
        "request_metadata": {
            "request_start_timestamp_ms": now,
            "stream_end_timestamp_ms": now,
            "response_size": len(exchange.answer.encode(errors="replace")),
            "model_id": exchange.model,
            "context_usage_percentage": 1.0,
        },
    }
