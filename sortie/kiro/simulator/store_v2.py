"""Keep a conversation where Kiro's engine v2 does: two files for each session."""

from __future__ import annotations

import json
import os
import time

from sortie.kiro.simulator.exchange import Exchange, new_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass


def record_v2(exchange: Exchange, folder: str, *, resume: bool) -> None:
    """Add the exchange to a session's two files. Raises OSError and ValueError."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    now = time.time()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    session = (_newest(folder) if resume else None) or {
        "session_id": new_id(),
        "cwd": os.getcwd(),
        "created_at": stamp,
        "title": exchange.prompt.strip()[:60],
        "session_state": {"conversation_metadata": {"user_turn_metadatas": []}},
    }
    session["updated_at"] = stamp
    metering = {"value": exchange.spent, "unit": "credit"}
    session["session_state"]["conversation_metadata"]["user_turn_metadatas"].append(
        {
            "input_token_count": 0,
            "output_token_count": 0,
            "model": exchange.model,
            "metering_usage": [metering],
        }
    )
    base = os.path.join(folder, session["session_id"])
    with open(f"{base}.jsonl", "a", encoding="utf-8") as messages:
        messages.writelines(json.dumps(line) + "\n" for line in _messages(exchange, int(now)))
    temporary = f"{base}.json.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as summary:
        json.dump(session, summary)
    os.replace(temporary, f"{base}.json")


def _messages(exchange: Exchange, now: int) -> list[dict[str, object]]:
    def line(kind: str, *content: dict[str, object]) -> dict[str, object]:
        data = {"message_id": new_id(), "content": list(content), "meta": {"timestamp": now}}
        return {"version": "v1", "kind": kind, "data": data}

    lines = [line("Prompt", {"kind": "text", "data": exchange.prompt})]
    if exchange.file is not None:
        use = new_id()
        call = {"toolUseId": use, "name": "fs_write", "input": {"path": exchange.file}}
        done = {"toolUseId": use, "content": [], "status": "success"}
        lines.append(line("AssistantMessage", {"kind": "toolUse", "data": call}))
        lines.append(line("ToolResults", {"kind": "toolResult", "data": done}))
    lines.append(line("AssistantMessage", {"kind": "text", "data": exchange.answer}))
    return lines


def _newest(folder: str):  # type: ignore[no-untyped-def]
    """Return the newest session of the current directory, or None."""
    newest = None
    for name in os.listdir(folder):
        if name.endswith(".json"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                session = json.load(file)
            if session["cwd"] == os.getcwd() and (
                newest is None or session["updated_at"] > newest["updated_at"]
            ):
                newest = session
    return newest
