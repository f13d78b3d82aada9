"""Conversations as Kiro writes them, in each of its stores."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SCHEMA = """
CREATE TABLE conversations (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE conversations_v2 (key TEXT NOT NULL, conversation_id TEXT NOT NULL,
  value TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  PRIMARY KEY (key, conversation_id));
CREATE TABLE auth_kv (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE state (key TEXT PRIMARY KEY, value BLOB);
"""


def entry(user: Any, assistant: Any, began: int = 1_000, ended: int = 2_000) -> dict[str, Any]:
    """Return an entry of a history."""
    return {
        "user": {"content": user, "timestamp": None},
        "assistant": assistant,
        "request_metadata": {
            "request_start_timestamp_ms": began,
            "stream_end_timestamp_ms": ended,
            "response_size": 12,
            "model_id": "claude-sonnet-4.5",
            "context_usage_percentage": 12.5,
        },
    }


def said(text: str, identity: str = "m-1") -> dict[str, Any]:
    """Return an answer in words."""
    return {"Response": {"message_id": identity, "content": text}}


def uses(*calls: tuple[str, str, dict[str, Any]], text: str = "") -> dict[str, Any]:
    """Return an answer that has tools used: id, name and arguments of each."""
    tool_uses = [
        {"id": i, "name": name, "orig_name": name, "args": args, "orig_args": args}
        for i, name, args in calls
    ]
    return {"ToolUse": {"message_id": "m-0", "content": text, "tool_uses": tool_uses}}


def results(*each: tuple[str, Any, str]) -> dict[str, Any]:
    """Return what came of tools: id, content block and status of each."""
    return {
        "ToolUseResults": {
            "tool_use_results": [
                {"tool_use_id": i, "content": [block], "status": status}
                for i, block, status in each
            ]
        }
    }


def document(*history: Any, identity: str = "c-1", spent: Sequence[float] = ()) -> dict[str, Any]:
    """Return what a row of engine v1 holds."""
    return {
        "conversation_id": identity,
        "history": list(history),
        "transcript": ["> hello"],
        "model_info": {"model_id": "claude-sonnet-4.5", "context_window_tokens": 200_000},
        "user_turn_metadata": {
            "usage_info": [{"value": value, "unit": "credit"} for value in spent],
            "requests": [],
        },
    }


def write_v1(path: Path, *rows: tuple[str, dict[str, Any], int], older: bool = False) -> None:
    """Write rows (directory, document, time of change) into a database, made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    database = sqlite3.connect(path)
    if new:
        database.executescript(SCHEMA)
        database.execute("INSERT INTO auth_kv VALUES ('token', 'a credential')")
    for directory, value, updated in rows:
        if older:
            database.execute(
                "INSERT INTO conversations VALUES (?, ?)", (directory, json.dumps(value))
            )
        else:
            row = (directory, value["conversation_id"], json.dumps(value), 1, updated)
            database.execute("INSERT INTO conversations_v2 VALUES (?, ?, ?, ?, ?)", row)
    database.commit()
    database.close()


def write_v2(
    sessions: Path, directory: str, updated: str, *lines: Any, identity: str = "s-2"
) -> None:
    """Write the two files of a session of engine v2; a line is (kind, content blocks)."""
    folder = sessions / "cli"
    folder.mkdir(parents=True, exist_ok=True)
    turn = {
        "input_token_count": 0,
        "output_token_count": 7,
        "model": "auto",
        "metering_usage": [{"value": 0.25, "unit": "credit"}, {"value": 1, "unit": "request"}],
    }
    session = {
        "session_id": identity,
        "cwd": directory,
        "created_at": "2026-11-01T10:00:00Z",
        "updated_at": updated,
        "title": "a title",
        "session_state": {"conversation_metadata": {"user_turn_metadatas": [turn]}},
    }
    (folder / f"{identity}.json").write_text(json.dumps(session))
    with (folder / f"{identity}.jsonl").open("w") as file:
        for number, (kind, content) in enumerate(lines):
            meta = {"timestamp": 1_793_000_000 + number}
            data = {"message_id": f"m-{number}", "content": content, "meta": meta}
            file.write(json.dumps({"version": "v1", "kind": kind, "data": data}) + "\n")


def write_v3(sessions: Path, directory: str, updated: Any, *payloads: dict[str, Any]) -> None:
    """Write the folder of a session of engine v3."""
    folder = sessions / "0123abcd" / "sess_s-3"
    folder.mkdir(parents=True, exist_ok=True)
    session = {
        "id": "s-3",
        "title": "another",
        "createdAt": "2026-11-01T09:00:00.000Z",
        "lastModifiedAt": updated,
        "workspacePaths": [directory],
        "modelId": "claude-haiku",
    }
    (folder / "session.json").write_text(json.dumps(session))
    with (folder / "messages.jsonl").open("w") as file:
        for payload in payloads:
            line = {"timestamp": "2026-11-01T09:00:01.500Z", "payload": payload}
            file.write(json.dumps(line) + "\n")
