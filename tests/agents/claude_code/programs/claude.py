#!/usr/bin/env python3
"""Stands in for Claude Code: prints streams as the prompt's line ``claude: name=value ...`` says.

Like the real one it refuses to begin a conversation whose id was ever used, and to go on with one
that does not exist; conversations are files in ``$HOME/conversations``, those of somebody else
links to nowhere. What it was started with is added to ``$HOME/log.jsonl``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MODEL = "claude-test-1"
VALUED = {
    "--output-format",
    "--session-id",
    "--resume",
    "--permission-mode",
    "--model",
    "--fallback-model",
    "--max-turns",
    "--max-budget-usd",
    "--effort",
    "--allowedTools",
    "--disallowedTools",
    "--append-system-prompt",
    "--mcp-config",
}
USAGE = {"input_tokens": 100, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 10}


def tell(kind: str, end: str = "\n", **values: Any) -> None:
    sys.stdout.write(json.dumps({"type": kind} | values, ensure_ascii=False) + end)
    sys.stdout.flush()


def say(text: str, end: str = "\n") -> None:
    message: Any = {"id": f"msg_{time.monotonic_ns()}", "model": MODEL, "role": "assistant"}
    message |= {"content": [{"type": "text", "text": text}], "usage": USAGE | {"output_tokens": 1}}
    tell("assistant", end, message=message, parent_tool_use_id=None)


def use_tool(command: str) -> None:
    block = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": command}}
    message = {"id": "msg_tool", "model": MODEL, "content": [block]}
    tell("assistant", message=message | {"usage": USAGE | {"output_tokens": 1}})
    ran = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    result: Any = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": ran.stdout + ran.stderr,
    }
    result |= {"is_error": ran.returncode != 0}
    tell("user", message={"role": "user", "content": [result]}, parent_tool_use_id=None)


def result(session: str, **values: object) -> None:
    counts = {"inputTokens": 100, "outputTokens": 30, "cacheReadInputTokens": 40}
    model = counts | {"cacheCreationInputTokens": 10, "costUSD": 0.25, "contextWindow": 1000}
    told: Any = {"subtype": "success", "is_error": False, "result": "done", "session_id": session}
    told |= {"num_turns": 1, "duration_api_ms": 500, "total_cost_usd": 9.0, "usage": {}}
    told |= {"permission_denials": [], "model_usage_since_last_result": {MODEL: model}}
    tell("result", **told | {"modelUsage": {MODEL: model}} | values)


def options(arguments: list[str]) -> tuple[dict[str, str], str | None]:
    """Return the options by their names, and the prompt."""
    given: dict[str, str] = {}
    waiting = list(arguments)
    while waiting:
        word = waiting.pop(0)
        if word == "--":
            return given, " ".join(waiting)
        given[word] = waiting.pop(0) if word in VALUED else ""
    return given, None


def conversation(given: dict[str, str], prompt: str) -> str:
    """Begin a conversation, or go on with one, and return its id."""
    folder = Path.home() / "conversations"
    folder.mkdir(exist_ok=True)
    session = given.get("--resume") or given["--session-id"]
    file = folder / session
    if "--resume" in given and not file.exists():
        message = f"No conversation found with session ID: {session}"
        sys.stderr.write(f"{message}\n")
        errors: Any = {"is_error": True, "errors": [message], "num_turns": 0}
        tell("result", subtype="error_during_execution", session_id=session, **errors)
        sys.exit(1)
    if "--session-id" in given and (file.exists() or file.is_symlink()):
        sys.stderr.write(f"Error: Session ID {session} is already in use.\n")
        sys.exit(1)
    if "--no-session-persistence" not in given:
        with file.open("a") as kept:
            kept.write(f"{prompt}\n")
    return session


def obey(session: str, wish: dict[str, str]) -> None:
    if "rename" in wish:
        (Path.home() / "conversations" / wish["rename"]).touch()
        tell("system", subtype="init", session_id=wish["rename"])
    if "noise" in wish:
        sys.stderr.write("x" * int(wish["noise"]) + "\n")
        sys.stderr.flush()
    if "tool" in wish:
        use_tool(wish["tool"].replace("~", " "))
    if "again" in wish:
        use_tool("true")
        tell("user", message={"content": [{"type": "tool_result", "tool_use_id": "toolu_1"}]})
    if "unasked" in wish:
        tell("user", message={"content": [{"type": "tool_result", "tool_use_id": "nobody's"}]})
        tell("control_response", response={"request_id": "1", "subtype": "success"})
    if "unknown" in wish:
        tell("system", subtype="new_in_version_9", anything={"deep": [1, None]})
        tell("new_in_version_9", new=True)
        tell("assistant", new=1, message={"content": [{"type": "new"}], "new": {}})
    if "junk" in wish:
        sys.stdout.buffer.write(
            b'\xff\xfe\x00\n\n{\n[]\nnull\n{"type": 3}\n{}\nDebugger attached.\n'
        )
        tell("assistant", message=[], parent_tool_use_id=5)
        tell("assistant", message={"content": "text", "usage": [], "model": 3, "id": {}})
        tell("result", is_error=None, usage=7, permission_denials={}, modelUsage=[])
    if "recall" in wish:
        say((Path.home() / "conversations" / session).read_text())
    if "talk" in wish:
        while True:
            tell("stream_event", event={"type": "content_block_delta"})
            time.sleep(0.05)
    if "hold" in wish:
        subprocess.Popen(["sleep", "600"], start_new_session=True)
        time.sleep(1)
    if "deaf" in wish:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(600)
    if "long_line" in wish:
        say("x" * int(wish["long_line"]))
    if "too_long" in wish:
        sys.stdout.write("x" * int(wish["too_long"]))
        sys.stdout.flush()
        time.sleep(600)
    if "hang" in wish:
        time.sleep(600)
    if "signal" in wish:
        os.kill(os.getpid(), getattr(signal, f"SIG{wish['signal']}"))
        time.sleep(600)
    if "exit" in wish:
        sys.exit(int(wish["exit"]))
    if "last" in wish:
        say("last words", end="")
        sys.exit(0)
    say("I am done.")
    if "unproven" in wish:
        result(session, is_error=True, result="API Error: Repeated 529 Overloaded errors.")
    elif "limit" in wish:
        limit(int(wish["limit"]))
    elif "fail" in wish:
        result(session, is_error=True, subtype="error_during_execution", errors=["it went wrong"])
        sys.exit(1)
    else:
        result(session)


def limit(resets_at: int) -> None:
    info = {"status": "rejected", "resetsAt": resets_at, "rateLimitType": "five_hour"}
    text = "You've hit your 5-hour limit \u00b7 resets 11:22pm (UTC)"
    tell("rate_limit_event", rate_limit_info=info)
    message = {"id": "e", "model": "<synthetic>", "content": [{"type": "text", "text": text}]}
    told: Any = {
        "error": "rate_limit",
        "is_api_error_message": True,
        "api_error": "usage_limit_reached",
    }
    tell("assistant", message=message, api_error_params={"rate_limit_info": info}, **told)
    tell("result", subtype="success", is_error=True, result=text, api_error="usage_limit_reached")
    sys.exit(1)


def main() -> None:
    given, prompt = options(sys.argv[1:])
    if prompt is None:
        prompt = sys.stdin.read()
    with (Path.home() / "log.jsonl").open("a") as log:
        told = {"arguments": sys.argv[1:], "cwd": os.getcwd(), "length": len(prompt)}
        told |= {"environ": sorted(os.environ)}
        log.write(json.dumps(told) + "\n")
    session = conversation(given, prompt)
    version = {"claude_code_version": "2.1.328", "permissionMode": "bypassPermissions"}
    tell("system", subtype="init", session_id=session, model=MODEL, cwd=os.getcwd(), **version)
    wishes = [line for line in prompt.splitlines() if line.startswith("claude: ")]
    words = " ".join(line.removeprefix("claude: ") for line in wishes).split()
    obey(session, dict(word.split("=", 1) for word in words))


if __name__ == "__main__":
    main()
