"""No message of Codex's breaks its reader, whatever stands in it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sortie.agents.codex.reader import CodexContext, CodexReader
from sortie.agents.codex.settings import CodexSettings
from sortie.agents.permissions import PermissionRules
from sortie.codex.approvals import APPROVALS
from sortie.codex.events import ApprovalAsked, ServerTold, TurnFinished
from sortie.json_rpc.events import RequestFailed
from sortie.model.turns import AgentEvent, Notification, ToolEnded, ToolStarted

SECRET = "sk-hidden-secret"

_METHODS = (
    "item/started",
    "item/completed",
    "item/agentMessage/delta",
    "item/reasoning/textDelta",
    "thread/tokenUsage/updated",
    "account/rateLimits/updated",
    "thread/started",
    "turn/plan/updated",
    "error",
    "warning",
    "model/rerouted",
    "x",
)
_KEYS = (
    "item", "type", "id", "itemId", "delta", "text", "summary", "command", "commandActions", "path",
    "changes", "kind", "move_path", "status", "exitCode", "aggregatedOutput", "durationMs", "error",
    "message", "additionalDetails", "codexErrorInfo", "httpStatusCode", "tokenUsage", "total",
    "last", "inputTokens", "outputTokens", "cachedInputTokens", "totalTokens", "threadId", "plan",
    "modelContextWindow", "rateLimits", "primary", "usedPercent", "resetsAt", "step", "toModel",
    "thread", "server", "tool", "result", "content", "permissions", "fileSystem", "write",
    "entries", "network", "cwd", "reason", "questions", "question", "_meta", "grantRoot",
    "networkApprovalContext", "host", "codex_approval_kind", "arguments", "query", "prompt",
)  # fmt: skip
_TYPES = ("commandExecution", "fileChange", "mcpToolCall", "agentMessage", "reasoning", "webSearch")
_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["i", "j", "", "completed", "failed", "/w/a", "\ud800", SECRET, *_TYPES])
    | st.text(max_size=10)
)
_values = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=6)
    ),
    max_leaves=20,
)
_items = st.builds(
    lambda kind, id_, rest: {**rest, "type": kind, "id": id_},
    st.sampled_from(_TYPES),
    st.sampled_from(["i", "j", ""]),
    st.dictionaries(st.sampled_from(_KEYS), _values, max_size=5),
)
_params = st.dictionaries(st.sampled_from(_KEYS), _values, max_size=6) | st.builds(
    lambda item: {"item": item}, _items
)
_told = st.builds(ServerTold, st.sampled_from(_METHODS), _params, st.booleans(), st.booleans())
_asked = st.builds(ApprovalAsked, st.just(0), st.sampled_from(sorted(APPROVALS)), _params)
_ends = st.builds(TurnFinished, st.sampled_from(["completed", "failed", "x", ""]), _params)
_failed = st.builds(RequestFailed, st.just("turn/start"), st.integers(), st.text(max_size=20))


@given(st.lists(_told | _asked | _ends | _failed, max_size=30))
def test_what_comes_never_breaks_it(events: list[Any]) -> None:
    """Tools begin and end once, no secret leaves, and nothing outside of a turn is said."""
    rules = PermissionRules(inside={"default": "allow"})
    reader = CodexReader(
        CodexContext(
            workspace="/w",
            settings=CodexSettings(permissions=rules),
            redacted=lambda text: text.replace(SECRET, "***"),
        )
    )
    reader.begin()
    told: list[AgentEvent] = []
    for event in events:
        told += reader.approve(event)[1] if isinstance(event, ApprovalAsked) else reader.take(event)
    told += reader.end()

    begun = Counter(event.id for event in told if isinstance(event, ToolStarted))
    ended = Counter(event.id for event in told if isinstance(event, ToolEnded))
    assert begun == ended
    assert set(begun.values()) <= {1}
    assert SECRET not in f"{told} {reader.over}"
    assert all(event.message for event in told if isinstance(event, Notification))
