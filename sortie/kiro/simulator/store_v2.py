"""Store a conversation where Kiro's engine v2 does: two files for each session."""

from __future__ import annotations

import json
import os
import time

from sortie.kiro.simulator.exchange import (
    MADE_BY,
    NEWEST,
    PROGRAM,
    Exchange,
    SimulatedStoreError,
    new_id,
)


def record_v2(sessions: str, exchange: Exchange) -> None:
    """Add the exchange to its session's files below ``sessions``.

    Sessions without the field MADE_BY belong to a real Kiro and are not changed. Raises
    StoreError, OSError and ValueError.
    """
    folder = os.path.join(sessions, "cli")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    now = time.time_ns()
    identity = _session_id(folder, exchange)
    path = os.path.join(folder, f"{identity or new_id()}.json")
    if identity is not None:
        with open(path, "rb") as file:
            session = json.load(file)
    else:
        session = {
            "session_id": os.path.basename(path).removesuffix(".json"),
            MADE_BY: PROGRAM,
            "cwd": exchange.directory,
            "created_at": _timestamp(now),
            "title": " ".join(exchange.prompt.split())[:60],
            "session_state": {"conversation_metadata": {"user_turn_metadatas": []}},
        }
    session["updated_at"] = _timestamp(now)
    session["session_state"]["conversation_metadata"]["user_turn_metadatas"].append(
        {
            "input_token_count": 0,
            "output_token_count": 0,
            "model": exchange.model,
            "context_usage_percentage": 1.0,
            "metering_usage": [{"value": exchange.spent, "unit": "credit"}],
        }
    )
    with open(f"{path}l", "a", encoding="utf-8") as lines:
        lines.write("".join(_lines(exchange, now // 1_000_000_000)))
    with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as whole:
        json.dump(session, whole)
    os.replace(whole.name, path)


def _session_id(folder: str, exchange: Exchange) -> str | None:
    """Return the id of the session that the exchange continues, None for a new one."""
    newest = ("", None)
    for name in os.listdir(folder) if exchange.session else ():
        if not name.endswith(".json"):
            continue
        with open(os.path.join(folder, name), "rb") as file:
            found = json.load(file)
        if MADE_BY not in found:
            continue
        if found["session_id"] == exchange.session:
            return exchange.session
        if exchange.session == NEWEST and found["cwd"] == exchange.directory:
            newest = max(newest, (found["updated_at"], found["session_id"]))
    if exchange.session not in ("", NEWEST):
        raise SimulatedStoreError(f"the session {exchange.session} is not one of the simulator's")
    return newest[1]


def _timestamp(nanoseconds: int) -> str:
    """Return RFC 3339 with milliseconds."""
    seconds, fraction = divmod(nanoseconds, 1_000_000_000)
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{fraction // 1_000_000:03}Z"


def _lines(exchange: Exchange, now: int) -> list[str]:
    def line(kind: str, content_kind: str, data: object) -> str:
        content = [{"kind": content_kind, "data": data}]
        body = {"message_id": new_id(), "content": content, "meta": {"timestamp": now}}
        return json.dumps({"version": "v1", "kind": kind, "data": body}) + "\n"

    lines = [line("Prompt", "text", exchange.prompt)]
    for use in exchange.tools:
        call = {"toolUseId": use.id, "name": use.name, "input": use.args}
        text = [{"kind": "text", "data": use.said}]
        status = "error" if use.failed else "success"
        done = {"toolUseId": use.id, "content": text, "status": status}
        lines.append(line("AssistantMessage", "toolUse", call))
        lines.append(line("ToolResults", "toolResult", done))
    lines.append(line("AssistantMessage", "text", exchange.answer))
    return lines
