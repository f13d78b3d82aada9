"""An agent that speaks ACP and calls tools of the server that its session is told of.

Each line ``call NAME ARGUMENTS`` of its prompt is a call, ``shell COMMAND`` a command of its
workspace, ``stop`` waits until it is killed. What came of them it writes to ``calls.json``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any


class Tools:
    """A client of the server."""

    def __init__(self, server: dict[str, Any]) -> None:
        self.process = subprocess.Popen(
            [server["command"], *server["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.count = 0
        info = {"name": "tool-user", "version": "1"}
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
        self.ask("initialize", params)
        self.put({"method": "notifications/initialized"})

    def put(self, message: dict[str, Any]) -> None:
        """Send a message."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        """Return the answer to a request."""
        self.count += 1
        self.put({"id": self.count, "method": method, "params": params})
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Return what a tool answers: its text, and whether that is an error."""
        result = self.ask("tools/call", {"name": name, "arguments": arguments})["result"]
        return [result["content"][0]["text"], result["isError"]]

    def close(self) -> int:
        """End it, and return its exit status."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait()


def work(prompt: str, servers: list[dict[str, Any]]) -> None:
    """Do what a prompt says."""
    tools, came = Tools(servers[0]), []
    for line in prompt.splitlines():
        word, _, rest = line.partition(" ")
        if word == "call":
            name, _, arguments = rest.partition(" ")
            came.append(tools.call(name, json.loads(arguments or "{}")))
        elif word == "shell":
            ran = subprocess.run(rest, shell=True, capture_output=True, text=True, check=False)
            came.append(ran.stdout + ran.stderr)
        elif word == "stop":
            time.sleep(3600)
    came.append(tools.close())
    with open("calls.json", "w", encoding="utf-8") as file:
        json.dump(came, file)


def answer(message: dict[str, Any], **result: Any) -> None:
    """Answer a request."""
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


def main() -> None:
    """Serve one session."""
    servers: list[dict[str, Any]] = []
    for line in sys.stdin:
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                info = {"name": "tool-user", "version": "1"}
                answer(message, protocolVersion=1, agentCapabilities={}, agentInfo=info)
            case "session/new":
                servers = message["params"]["mcpServers"]
                answer(message, sessionId=f"s{os.getpid()}")
            case "session/prompt":
                work(message["params"]["prompt"][0]["text"], servers)
                text = {"type": "text", "text": "All is done."}
                update = {"sessionUpdate": "agent_message_chunk", "content": text}
                told = {"sessionId": f"s{os.getpid()}", "update": update}
                print(
                    json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": told}),
                    flush=True,
                )
                answer(message, stopReason="end_turn")


if __name__ == "__main__":
    main()
