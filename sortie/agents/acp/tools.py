"""The tool calls of a turn, put together from the messages about each; pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from sortie.agents.acp.permissions import paths_of
from sortie.agents.permissions import TOOL_KINDS, is_inside
from sortie.json_rpc import values
from sortie.model import cut
from sortie.model.asked_permissions import permission_name
from sortie.model.texts import start_of
from sortie.model.turns import AgentEvent, ToolEnded, ToolStarted

CALLS_AT_ONCE = 1000
_PATHS_SHOWN = 20
_ID_LIMIT = 200
_TITLE_LIMIT = 500
_ENDED = ("completed", "failed")
_SAID_LIMIT = 64 * 1024
"""Characters of a tool's output that are kept; later steps redact and cut it further."""

_INPUT_LIMIT = 3000
"""Characters of what a tool is given that people see before they allow it."""

_OF_FILES = frozenset({"read", "edit", "delete", "move", "search"})
_WHERE = ("cwd", "workdir", "directory")
_RAW_KEYS = ("message", "output", "formatted_output", "aggregated_output", "content")


class ToolCall(Struct, kw_only=True):
    """What is known of one call; ``outside``: it names a path outside of the workspace.

    ``announced`` is the title that it had first. ``asked``: the agent has asked whether it may.
    ``input`` is what the tool is given, in words, and ``input_name`` tells it from any other input.
    """

    id: str
    name: str
    kind: str
    title: str = ""
    announced: str = ""
    command: str = ""
    paths: dict[str, None] = field(default_factory=dict)
    outside: bool = False
    denied: bool = False
    asked: bool = False
    said: str | None = None
    said_all: bool = True
    input: str = ""
    input_name: str = ""

    @property
    def permission(self) -> str:
        """What identifies what it asks for: the same command, files or input are the same."""
        place = "outside" if self.outside else "inside"
        if self.kind in _OF_FILES and 0 < len(self.paths) < _PATHS_SHOWN:
            return permission_name(self.kind, place, *sorted(self.paths))
        tool = self.name if self.kind == "other" else ""
        return permission_name(self.kind, place, tool, self.input_name or self.title)

    def add(self, piece: str) -> None:
        """Keep the beginning of an output that comes in pieces; none is put behind a cut."""
        if self.said_all:
            said = f"{self.said or ''}{piece}"
            self.said_all = len(said) <= _SAID_LIMIT
            self.said = start_of(said, _SAID_LIMIT)

    @property
    def question(self) -> str:
        """What is asked about it, in words: the kind of tool, what it says of itself, its files."""
        title = self.title or self.name
        command = "" if self.command in title else self.command
        places = ", ".join(path for path in self.paths if path not in title)
        return ": ".join(filter(None, (self.kind, title, command, places)))

    @property
    def whole_question(self) -> str:
        """What is asked about it, with all that the tool is given."""
        if self.input in self.question:
            return self.question
        return f"{self.kind}: {self.title or self.name}\n\n{self.input}"


class EarlierCalls:
    """Calls that a replayed conversation left open: an earlier run began and reported them."""

    def __init__(self) -> None:
        self._ids: dict[str, None] = {}

    def replayed(self, call: Mapping[str, Any]) -> None:
        """Take a replayed message about a call."""
        id_ = _id(call)
        self._ids.pop(id_, None)
        if id_ and call.get("status") not in _ENDED and len(self._ids) < CALLS_AT_ONCE:
            self._ids[id_] = None

    def has(self, call: Mapping[str, Any]) -> bool:
        """Tell whether a call is one of them."""
        return _id(call) in self._ids


class AcpToolCalls:
    """The calls of one turn of an agent.

    Rule 1: each call gives one ToolStarted and one ToolEnded. Rule 2: calls beyond CALLS_AT_ONCE
    are ignored.
    """

    def __init__(self, agent: str, workspace: str) -> None:
        self._agent = agent
        self._workspace = workspace
        self._open: dict[str, ToolCall] = {}
        self._ended: set[str] = set()

    def take(self, call: Mapping[str, Any]) -> tuple[ToolCall, list[AgentEvent]]:
        """Take any message about a call; return the call and its events."""
        known, events = self._known(call)
        self._merge(known, call)
        if events:
            events = [self._started(known)]
        status = call.get("status")
        if status in _ENDED and self._open.pop(known.id, None) is not None:
            self._ended.add(known.id)
            events.append(self._over(known, failed=status == "failed"))
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
        id_ = _id(call)
        if id_ in self._open:
            return self._open[id_], []
        name = _name(self._agent, id_, call) or _kind(call) or "tool"
        announced = start_of(values.text(call, "title") or "", _TITLE_LIMIT)
        known = ToolCall(id=id_, name=name, kind=_kind(call) or "other", announced=announced)
        full = len(self._open) + len(self._ended) >= CALLS_AT_ONCE
        if not id_ or id_ in self._ended or full:
            return known, []
        self._open[id_] = known
        return known, [self._started(known)]

    def _merge(self, known: ToolCall, call: Mapping[str, Any]) -> None:
        known.kind = _kind(call) or known.kind
        known.title = start_of(values.text(call, "title") or known.title, _TITLE_LIMIT)
        command = values.text(call, "rawInput", "command") or known.command
        known.command = start_of(command, _TITLE_LIMIT)
        if given := values.mapping(call, "rawInput"):
            known.input, known.input_name = _input_of(given)
        if call.get("status") != "pending":  # until then it is a preview
            known.said = _said(call) or known.said
        if piece := values.text(call, "_meta", "terminal_output_delta", "data"):
            known.add(piece)
        for path in paths_of(call):
            known.outside = known.outside or not is_inside(path, self._workspace)
            if len(known.paths) < _PATHS_SHOWN:
                known.paths[path] = None

    def _started(self, call: ToolCall) -> ToolStarted:
        return ToolStarted(id=call.id, name=call.name, kind=call.kind, locations=tuple(call.paths))

    def _over(self, call: ToolCall, *, failed: bool) -> ToolEnded:
        return ToolEnded(
            id=call.id,
            failed=failed,
            locations=tuple(call.paths),
            error=call.said if failed else None,
            output=None if failed else call.said,
            about=call.command or (call.title if call.title != call.name else "") or None,
        )


def _id(call: Mapping[str, Any]) -> str:
    return (values.text(call, "toolCallId") or "")[:_ID_LIMIT]


def _kind(call: Mapping[str, Any]) -> str | None:
    kind = values.text(call, "kind")
    return kind if kind is None or kind in TOOL_KINDS else "other"


def _input_of(given: Mapping[str, Any]) -> tuple[str, str]:
    """Return what a tool is given in words, and the name of that: of a command it is the command
    and where it runs, as the words with which agents describe it differ from time to time."""
    command = values.text(given, "command")
    if command is None:
        whole = json.dumps(given, sort_keys=True)
        return cut(whole, _INPUT_LIMIT), permission_name(whole)
    where = (values.text(given, key) or "" for key in _WHERE)
    return cut(command, _INPUT_LIMIT), permission_name("command", command, *where)


def _name(agent: str, id_: str, call: Mapping[str, Any]) -> str | None:
    """Return a tool's name, None where it is unknown; each agent has its own place for it."""
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
    """Return what a tool has said; each agent has its own place for it."""
    texts = (values.block_text(part.get("content")) for part in values.items(call, "content"))
    shown = "\n".join(filter(None, texts))
    raw = (values.text(call, "rawOutput", key) for key in _RAW_KEYS)
    said = values.text(call, "rawOutput") or shown or next(filter(None, raw), None)
    return cut(said, _SAID_LIMIT) if said else None
