"""The items of a turn that are uses of tools; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from sortie.json_rpc import values
from sortie.model.texts import cut, start_of
from sortie.model.turns import AgentEvent, ToolEnded, ToolStarted

ITEMS_AT_ONCE = 1000
_PATHS_SHOWN = 20
_ID_LIMIT = 200
_ABOUT_LIMIT = 500
_SAID_LIMIT = 64 * 1024
"""Characters of a tool's output that are kept; later steps redact and cut it further."""

_ACTIONS = {"read": "read", "listFiles": "search", "search": "search"}


class ToolItem(Struct, frozen=True, kw_only=True):
    """What an item says of a tool. ``paths`` are those that it names."""

    id: str
    name: str
    kind: str
    about: str = ""
    paths: tuple[str, ...] = ()


class ToolItems:
    """The tools of one turn.

    Rule 1: each gives one ToolStarted and one ToolEnded. Rule 2: those beyond ITEMS_AT_ONCE are
    ignored.
    """

    def __init__(self) -> None:
        self._open: dict[str, ToolItem] = {}
        self._ended: set[str] = set()

    def named(self, item_id: str | None) -> ToolItem | None:
        """Return the tool with an id that is under way."""
        return self._open.get((item_id or "")[:_ID_LIMIT])

    def started(self, item: Mapping[str, Any]) -> list[AgentEvent]:
        """Take the beginning of an item and return its events; none for what is no tool."""
        tool = tool_of(item)
        full = len(self._open) + len(self._ended) >= ITEMS_AT_ONCE
        if tool is None or not tool.id or full or tool.id in self._open or tool.id in self._ended:
            return []
        self._open[tool.id] = tool
        return [
            ToolStarted(
                id=tool.id,
                name=tool.name,
                kind=tool.kind,
                locations=tool.paths,
                about=tool.about or None,
            )
        ]

    def completed(self, item: Mapping[str, Any]) -> list[AgentEvent]:
        """Take the end of an item; one whose beginning was not told begins here."""
        begun = self.started(item)
        tool = self.named(values.text(item, "id"))
        if tool is None:
            return begun
        del self._open[tool.id]
        self._ended.add(tool.id)
        latest = tool_of(item) or tool
        return [*begun, _ended(latest, item)]

    def close(self, *, failed: bool) -> list[AgentEvent]:
        """End what is open at the end of a turn; how it went is not known."""
        left = [
            ToolEnded(id=tool.id, failed=failed, locations=tool.paths)
            for tool in self._open.values()
        ]
        self._open.clear()
        self._ended.clear()
        return [*left]


def tool_of(item: Mapping[str, Any]) -> ToolItem | None:
    """Return the tool that an item is a use of; None for messages and the like."""
    id_ = (values.text(item, "id") or "")[:_ID_LIMIT]
    match item.get("type"):
        case "commandExecution":
            return ToolItem(
                id=id_,
                name="exec_command",
                kind=_kind_of_command(item),
                about=_about(values.text(item, "command")),
                paths=tuple(command_paths(item))[:_PATHS_SHOWN],
            )
        case "fileChange":
            changes = values.items(item, "changes")
            kinds = {change_kind(change) for change in changes}
            return ToolItem(
                id=id_,
                name="apply_patch",
                kind=kinds.pop() if len(kinds) == 1 else "edit",
                paths=tuple(changed_paths(item))[:_PATHS_SHOWN],
            )
        case "mcpToolCall":
            server, tool = values.text(item, "server") or "", values.text(item, "tool") or ""
            return ToolItem(id=id_, name=f"mcp__{server}__{tool}", kind="other")
        case "dynamicToolCall" | "collabAgentToolCall":
            name = values.text(item, "tool") or "tool"
            about = _about(values.text(item, "prompt"))
            return ToolItem(id=id_, name=name, kind="other", about=about)
        case "webSearch":
            about = _about(values.text(item, "query"))
            return ToolItem(id=id_, name="web_search", kind="fetch", about=about)
        case "imageView":
            path = values.text(item, "path")
            return ToolItem(
                id=id_, name="view_image", kind="read", paths=(path,) if path is not None else ()
            )
        case _:
            return None


def command_paths(command: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths that Codex has found in a command, as an item or a request has it."""
    for action in values.items(command, "commandActions"):
        if path := values.text(action, "path"):
            yield path


def changed_paths(item: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths that a change of files is about, both of what is moved."""
    for change in values.items(item, "changes"):
        for path in (values.text(change, "path"), values.text(change, "kind", "move_path")):
            if path is not None:
                yield path


def change_kind(change: Mapping[str, Any]) -> str:
    """Return the kind of tool that a change of one file is."""
    if values.text(change, "kind", "move_path") is not None:
        return "move"
    return "delete" if values.text(change, "kind", "type") == "delete" else "edit"


def _kind_of_command(item: Mapping[str, Any]) -> str:
    kinds = {
        _ACTIONS.get(str(action.get("type"))) for action in values.items(item, "commandActions")
    }
    kind = kinds.pop() if len(kinds) == 1 else None
    return kind or "execute"


def _ended(tool: ToolItem, item: Mapping[str, Any]) -> ToolEnded:
    exit_code = item.get("exitCode")
    failed = item.get("status") in ("failed", "declined") or exit_code not in (None, 0)
    said = _said(item)
    took = values.count(item, "durationMs")
    return ToolEnded(
        id=tool.id,
        failed=failed,
        duration=None if took is None else took / 1000,
        locations=tool.paths,
        error=(said or _why(item)) if failed else None,
        output=None if failed else said,
        about=tool.about or None,
    )


def _said(item: Mapping[str, Any]) -> str | None:
    said = values.text(item, "aggregatedOutput") or values.text(item, "error", "message")
    if said is None:
        content = (*values.items(item, "result", "content"), *values.items(item, "contentItems"))
        said = "\n".join(filter(None, map(values.block_text, content)))
    return cut(said, _SAID_LIMIT) if said else None


def _why(item: Mapping[str, Any]) -> str | None:
    if item.get("status") == "declined":
        return "it was declined"
    exit_code = item.get("exitCode")
    return None if exit_code is None else f"it exited with status {exit_code}"


def _about(text: str | None) -> str:
    return start_of(text or "", _ABOUT_LIMIT)
