"""How an agent is told of an MCP server: in its session, or on its command line; pure."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from sortie.agents import McpServer

COPILOT = "Copilot"
"""What Copilot CLI calls itself."""

_PROGRAMS_OF_COPILOT = frozenset({"copilot", "copilot.exe"})


def session_servers(server: McpServer | None) -> list[Mapping[str, Any]]:
    """Return the servers of a session as the protocol describes them."""
    if server is None:
        return []
    env = [{"name": name, "value": value} for name, value in server.env.items()]
    command, *arguments = server.argv
    return [{"name": server.name, "command": command, "args": arguments, "env": env}]


def server_arguments(argv: Sequence[str], server: McpServer | None) -> tuple[str, ...]:
    """Return what names a server behind a command.

    It is empty but for Copilot CLI, which leaves out servers of a session that are programs. It
    takes the option several times, and of two servers with one name the last.
    """
    if server is None or not argv or os.path.basename(argv[0]) not in _PROGRAMS_OF_COPILOT:
        return ()
    command, *arguments = server.argv
    told = {"type": "local", "command": command, "args": arguments, "env": dict(server.env)}
    config = {"mcpServers": {server.name: told | {"tools": ["*"]}}}
    return ("--additional-mcp-config", json.dumps(config))
