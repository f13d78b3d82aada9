"""Keep a conversation where Kiro keeps it; engine v1 has a table in SQLite."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from collections.abc import Mapping

from sortie.kiro.simulator.exchange import Exchange, new_id
from sortie.kiro.simulator.store_v2 import record_v2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HISTORY_LIMIT = 10_000
_BUSY_TIMEOUT = 30.0
_TABLES = ("conversations", "conversations_v2")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS conversations (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS conversations_v2 (key TEXT NOT NULL, conversation_id TEXT NOT NULL,
  value TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  PRIMARY KEY (key, conversation_id));
"""
_NEWEST = """
SELECT conversation_id, value, created_at FROM conversations_v2
WHERE key = ? ORDER BY updated_at DESC, rowid DESC LIMIT 1
"""
_WRITE = """
INSERT OR REPLACE INTO conversations_v2 (key, conversation_id, value, created_at, updated_at)
VALUES (?, ?, ?, ?, ?)
"""


class StoreTrouble(Exception):
    """The conversation could not be kept."""


def record(
    engine: str, exchange: Exchange, environment: Mapping[str, str], *, resume: bool
) -> None:
    """Keep the exchange for the current directory. Raises StoreTrouble."""
    try:
        if engine == "v1":
            _record_v1(exchange, v1_path(environment), resume=resume)
        elif engine == "v2":
            record_v2(exchange, v2_folder(environment), resume=resume)
    except (OSError, sqlite3.Error, ValueError) as error:
        raise StoreTrouble(f"the conversation could not be kept: {error}") from error


def v1_path(environment: Mapping[str, str]) -> str:
    """Return where the v1 database is."""
    home = environment.get("HOME") or os.path.expanduser("~")
    default = os.path.join(home, ".local", "share")
    if sys.platform == "darwin":
        default = os.path.join(home, "Library", "Application Support")
    data = environment.get("XDG_DATA_HOME") or default
    return os.path.join(data, "kiro-cli", "data.sqlite3")


def v2_folder(environment: Mapping[str, str]) -> str:
    """Return the folder of the v2 sessions."""
    home = environment.get("HOME") or os.path.expanduser("~")
    kiro = environment.get("KIRO_HOME") or os.path.join(home, ".kiro")
    return os.path.join(kiro, "sessions", "cli")


def _record_v1(exchange: Exchange, path: str, *, resume: bool) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = sqlite3.connect(path, timeout=_BUSY_TIMEOUT, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        names = {
            row[0]
            for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        if foreign := {n for n in names if not n.startswith("sqlite_")} - set(_TABLES):
            raise StoreTrouble(
                f"{path} belongs to a real Kiro (it has {', '.join(sorted(foreign))});"
                " the simulator leaves it alone"
            )
        for statement in _SCHEMA.split(";")[:-1]:
            connection.execute(statement)
        key, now = os.getcwd(), time.time_ns() // 1_000_000
        row = connection.execute(_NEWEST, (key,)).fetchone() if resume else None
        identity, value, created = row or (new_id(), None, now)
        document = json.loads(value) if value else _empty(identity)
        _append(document, exchange, now)
        text = json.dumps(document, ensure_ascii=False)
        connection.execute(_WRITE, (key, identity, text, created, now))
        connection.execute("COMMIT")
    finally:
        connection.close()


def _empty(identity: str) -> dict[str, Any]:
    return {
        "conversation_id": identity,
        "history": [],
        "transcript": [],
        "model_info": {},
        "user_turn_metadata": {"usage_info": [], "requests": []},
    }


def _append(document: dict[str, Any], exchange: Exchange, now: int) -> None:
    """Add the turn's messages to a v1 document: with a tool, two entries, else one."""
    user: dict[str, Any] = {"Prompt": {"prompt": exchange.prompt}}
    tools: list[list[str]] = []
    if exchange.file is not None:
        use = new_id()
        tools = [[use, "fs_write"]]
        args = {"command": "append", "path": exchange.file, "new_str": exchange.prompt[:80]}
        names = {"name": "fs_write", "orig_name": "fs_write"}
        call = {"id": use, **names, "args": args, "orig_args": args}
        assistant = {"ToolUse": {"message_id": new_id(), "content": "", "tool_uses": [call]}}
        document["history"].append(_entry(user, assistant, exchange, tools, now))
        result = {"tool_use_id": use, "content": [{"Text": ""}], "status": "Success"}
        user = {"ToolUseResults": {"tool_use_results": [result]}}
    message = new_id()
    response = {"Response": {"message_id": message, "content": exchange.answer}}
    document["history"].append(_entry(user, response, exchange, [], now))
    document["history"] = document["history"][-_HISTORY_LIMIT:]
    document["transcript"] += [f"> {exchange.prompt}", exchange.answer]
    document["model_info"] = {"model_id": exchange.model}
    metadata = document["user_turn_metadata"]
    metadata["usage_info"].append({"value": exchange.spent, "unit": "credit"})
    metadata["requests"].append({"message_id": message})


def _entry(
    user: object, assistant: object, exchange: Exchange, tools: list[list[str]], now: int
) -> dict[str, object]:
    return {
        "user": {"content": user},
        "assistant": assistant,
        "request_metadata": {
            "request_start_timestamp_ms": now,
            "stream_end_timestamp_ms": now,
            "response_size": len(exchange.answer.encode(errors="replace")),
            "tool_use_ids_and_names": tools,
            "model_id": exchange.model,
            "context_usage_percentage": 1.0,
        },
    }
