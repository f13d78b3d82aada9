"""What Codex asks its client, and how that is granted or denied.

An approval that is denied is declined: Codex tells its model so, and the turn goes on. The word
``cancel`` would end the turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sortie.json_rpc import values

COMMAND = "item/commandExecution/requestApproval"
FILE_CHANGE = "item/fileChange/requestApproval"
PERMISSIONS = "item/permissions/requestApproval"
MCP = "mcpServer/elicitation/request"
QUESTIONS = "item/tool/requestUserInput"

APPROVALS = frozenset({COMMAND, FILE_CHANGE, PERMISSIONS, MCP, QUESTIONS})
"""Requests of Codex's that have an answer which denies; all others are errors."""


def denial(method: str) -> Mapping[str, Any]:
    """Return the answer that denies a request of APPROVALS."""
    match method:
        case "item/permissions/requestApproval":
            return {"permissions": {}, "scope": "turn"}
        case "mcpServer/elicitation/request":
            return {"action": "decline", "content": None, "_meta": None}
        case "item/tool/requestUserInput":
            return {"answers": {}}
        case _:
            return {"decision": "decline"}


def grant(method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the answer that grants a request of APPROVALS, once and no more than was asked for."""
    match method:
        case "item/permissions/requestApproval":
            asked = values.mapping(params, "permissions")
            given = {name: part for name, part in asked.items() if part is not None}
            return {"permissions": given, "scope": "turn"}
        case "mcpServer/elicitation/request":
            return {"action": "accept", "content": {}, "_meta": None}
        case "item/tool/requestUserInput":
            return {"answers": {}}
        case _:
            return {"decision": "accept"}
