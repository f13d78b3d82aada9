"""What an agent could write that means no good, and what a driver does meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from sortie.acp.client import ClientConnection
from sortie.json_rpc.connection import ConnectionState

_words = st.sampled_from(
    ["s", "t1", "", "end_turn", "cancelled", "edit", "execute", "completed", "failed", "/w/a", "x"]
)
_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | _words
    | st.text(max_size=20)
    | st.just("\ud800")
)
_keys = st.sampled_from(
    [
        "sessionUpdate", "update", "toolCall", "toolCallId", "options", "optionId", "kind", "title",
        "name", "status", "content", "locations", "path", "line", "type", "text", "_meta", "usage",
        "inputTokens", "outputTokens", "totalTokens", "cost", "amount", "currency", "used", "size",
        "entries", "stopReason", "sessionId", "quota", "token_count", "input_tokens", "rawInput",
        "codex", "threadStatus", "meteringUsage", "value", "unit", "contextUsagePercentage", "kiro",
        "protocolVersion", "agentInfo", "agentCapabilities", "messageId", "requestId",
        "claudeCode", "toolName", "promptTurnSummaries", "message", "diff", "filePath",
    ]
)  # fmt: skip
values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_keys, inner, max_size=6),
    max_leaves=20,
)
_ids: list[Any] = [0, 1, 2, 3, 4, 5, "0", None, 1.0, True, {}, "\ud800", -1]
ids = st.sampled_from(_ids)
_kinds = st.sampled_from(
    [
        "agent_message_chunk", "agent_thought_chunk", "user_message_chunk", "tool_call",
        "tool_call_update", "plan", "usage_update", "session_info_update", "current_mode_update",
        "available_commands_update", "new_thing",
    ]
)  # fmt: skip
_methods = st.sampled_from(
    [
        "session/request_permission", "session/request_permission", "fs/read_text_file",
        "terminal/create", "session/update", "$/cancel_request", "_kiro.dev/metadata", "_x", "",
    ]
)  # fmt: skip


def _update(kind: str, body: Any, session: Any) -> dict[str, Any]:
    update = {**body, "sessionUpdate": kind} if isinstance(body, dict) else body
    return {"method": "session/update", "params": {"sessionId": session, "update": update}}


messages = st.one_of(
    st.builds(_update, _kinds, values, st.just("s") | values),
    st.builds(lambda i, m, p: {"id": i, "method": m, "params": p}, ids, _methods, values),
    st.builds(lambda m, p: {"method": m, "params": p}, _methods, values),
    st.builds(lambda i, r: {"id": i, "result": r}, ids, values),
    st.builds(lambda i, e: {"id": i, "error": e}, ids, values),
    values,
)
lines = st.one_of(
    messages.map(lambda message: json.dumps(message).encode() + b"\n"),
    messages.map(lambda message: json.dumps(message).encode() + b"\n"),
    st.binary(max_size=60),
    st.just(b"\n"),
)

_DEEDS: dict[ConnectionState, Callable[[ClientConnection], None]] = {
    ConnectionState.NEW: lambda client: client.initialize("n", "N", "1"),
    ConnectionState.READY: lambda client: client.open("/w"),
    ConnectionState.IDLE: lambda client: client.prompt("go"),
    ConnectionState.TURN: ClientConnection.cancel,
}
ANSWERS: dict[ConnectionState, dict[str, Any]] = {
    ConnectionState.INITIALIZING: {"protocolVersion": 1},
    ConnectionState.OPENING: {"sessionId": "s"},
    ConnectionState.TURN: {"stopReason": "end_turn"},
    ConnectionState.CANCELLING: {"stopReason": "cancelled"},
}
"""What an agent answers that means well."""


def proceed(client: ClientConnection) -> None:
    """Do what a driver may do in this state."""
    if deed := _DEEDS.get(client.state):
        deed(client)
