"""The tool calls of a turn, put together from what is told of each; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sortie.acp import values
from sortie.agents.acp.permissions import is_inside, paths_of
from sortie.agents.acp.settings import KINDS
from sortie.model.turns import AgentEvent, ToolEnded, ToolStarted

CALLS_AT_ONCE = 1000
_PATHS_SHOWN = 20
_ID_LIMIT = 200
_TITLE_LIMIT = 500
_ERROR_LIMIT = 2000


@dataclass(slots=True, kw_only=True)
class ToolCall:
    """What is known of one call; ``outside``: it names a path outside of the workspace.

    ``asked``: the agent has asked whether it may.
    """

    id: str
    name: str
    kind: str
    title: str = ""
    command: str = ""
    paths: dict[str, None] = field(default_factory=dict)
    outside: bool = False
    denied: bool = False
    asked: bool = False


class ToolCalls:
    """The calls of one turn of an agent.

    Rule 1: each call is told once as begun and once as ended. Rule 2: no more than CALLS_AT_ONCE
    are known; what goes beyond is not told.
    """

    __slots__ = ("_agent", "_ended", "_open", "_workspace")

    def __init__(self, agent: str, workspace: str) -> None:
        self._agent = agent
        self._workspace = workspace
        self._open: dict[str, ToolCall] = {}
        self._ended: set[str] = set()

    def take(self, call: Mapping[str, Any]) -> tuple[ToolCall, list[AgentEvent]]:
        """Take what is told of a call, in whichever message; return it and what that tells."""
        known, events = self._known(call)
        self._merge(known, call)
        if events:
            events = [self._started(known)]
        status = call.get("status")
        if status in ("completed", "failed") and self._open.pop(known.id, None) is not None:
            self._ended.add(known.id)
            error = _said(call) if status == "failed" else None
            events.append(self._over(known, failed=status == "failed", error=error))
        return known, events

    def close(self, *, failed: bool) -> list[AgentEvent]:
        """End what is open at the end of a turn; how it went is not known but for denials."""
        events: list[AgentEvent] = [
            self._over(call, failed=failed or call.denied) for call in self._open.values()
        ]
        self._open.clear()
        self._ended.clear()
        return events

    def _known(self, call: Mapping[str, Any]) -> tuple[ToolCall, list[AgentEvent]]:
        id_ = (values.text(call, "toolCallId") or "")[:_ID_LIMIT]
        if id_ in self._open:
            return self._open[id_], []
        name = _name(self._agent, id_, call) or _kind(call) or "tool"
        known = ToolCall(id=id_, name=name, kind=_kind(call) or "other")
        full = len(self._open) + len(self._ended) >= CALLS_AT_ONCE
        if not id_ or id_ in self._ended or full:
            return known, []
        self._open[id_] = known
        return known, [self._started(known)]

    def _merge(self, known: ToolCall, call: Mapping[str, Any]) -> None:
        known.kind = _kind(call) or known.kind
        known.title = (values.text(call, "title") or known.title)[:_TITLE_LIMIT]
        command = values.text(call, "rawInput", "command") or known.command
        known.command = command[:_TITLE_LIMIT]
        for path in paths_of(call):
            known.outside = known.outside or not is_inside(path, self._workspace)
            if len(known.paths) < _PATHS_SHOWN:
                known.paths[path] = None

    def _started(self, call: ToolCall) -> ToolStarted:
        return ToolStarted(id=call.id, name=call.name, kind=call.kind, locations=tuple(call.paths))

    def _over(self, call: ToolCall, *, failed: bool, error: str | None = None) -> ToolEnded:
        return ToolEnded(id=call.id, failed=failed, locations=tuple(call.paths), error=error)


def _kind(call: Mapping[str, Any]) -> str | None:
    kind = values.text(call, "kind")
    return kind if kind is None or kind in KINDS else "other"


def _name(agent: str, id_: str, call: Mapping[str, Any]) -> str | None:
    """Return a tool's name where it is told; each agent has its own place for it."""
    if name := values.text(call, "name"):
        return name
    for maker in values.mapping(call, "_meta").values():
        if name := values.text(maker, "toolName"):
            return name
    if agent == "OpenCode":  # the title of the first message; later ones are other texts
        return values.text(call, "title")
    if agent == "gemini-cli":
        return id_.partition("__")[0] if "__" in id_ else None
    return None


def _said(call: Mapping[str, Any]) -> str | None:
    """Return what a failed tool has said."""
    texts = (values.block_text(part.get("content")) for part in values.items(call, "content"))
    shown = "\n".join(filter(None, texts))
    said = shown or values.text(call, "rawOutput") or values.text(call, "rawOutput", "message")
    return said[:_ERROR_LIMIT] if said else None
