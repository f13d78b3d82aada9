"""What a conversation with Kiro holds, the same for each of its stores.

Times are whole milliseconds since 1970, None where the store does not tell them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

from sortie.model.hiding import repr_without

Engine = Literal["v1", "v2", "v3"]

_EDITORS = frozenset({"fs_write", "write", "fs_edit", "fs_append", "str_replace"})
_READ_ONLY = frozenset({"read", "view"})  # commands of an editor that change nothing


class ConversationError(Exception):
    """A conversation could not be read or deleted; the message says which, where, and why."""


class UserPrompt(Struct, frozen=True, kw_only=True):
    """What the user said."""

    text: str
    at: int | None = None


class ModelAnswer(Struct, frozen=True, kw_only=True):
    """What the model said; ``text`` may be "" beside tool uses. ``context_share`` is percent."""

    text: str
    message_id: str | None = None
    model: str | None = None
    context_share: float | None = None
    at: int | None = None


class ToolUse(Struct, frozen=True, kw_only=True):
    """The model has a tool used."""

    id: str
    name: str
    input: Mapping[str, Any]
    at: int | None = None

    __repr__ = repr_without("input")

    @property
    def modified_file(self) -> str | None:
        """The file that this use writes, as the model named it; None where it writes none."""
        command = self.input.get("command")
        if self.name not in _EDITORS or (isinstance(command, str) and command in _READ_ONLY):
            return None
        path = self.input.get("path") or self.input.get("file_path")
        return path if isinstance(path, str) and path else None


class ToolResult(Struct, frozen=True, kw_only=True):
    """What came of a tool use; ``succeeded`` is None where it is unknown."""

    tool_use_id: str
    text: str
    succeeded: bool | None = None
    at: int | None = None

    __repr__ = repr_without("text")


class ToolUsesCancelled(Struct, frozen=True, kw_only=True):
    """The user stopped tool uses, and may have said something in place of them."""

    tool_use_ids: tuple[str, ...]
    prompt: str | None = None
    at: int | None = None


class HistoryCleared(Struct, frozen=True):
    """The user began anew; what was said before is forgotten."""


class HistoryCompacted(Struct, frozen=True):
    """What was said before is replaced by a summary."""


Record = (
    UserPrompt
    | ModelAnswer
    | ToolUse
    | ToolResult
    | ToolUsesCancelled
    | HistoryCleared
    | HistoryCompacted
)


class KiroUsage(Struct, frozen=True, kw_only=True):
    """What a turn, or a conversation, has used; None where it is unknown."""

    credits: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    model: str | None = None


class ConversationSummary(Struct, frozen=True, kw_only=True):
    """Which conversation it is. ``place`` is the file that holds it."""

    engine: Engine
    id: str
    directory: str
    place: str
    title: str | None = None
    created: int | None = None
    updated: int = 0


class Conversation(Struct, frozen=True, kw_only=True):
    """All that is kept of a conversation. ``usages`` has a turn each, the oldest first.

    ``entries`` is how many entries the store's own history has, and ``entry_of`` tells for each
    record which of them it is from: Kiro's positions count entries.
    """

    summary: ConversationSummary
    records: tuple[Record, ...] = ()
    entry_of: tuple[int, ...] = ()
    entries: int = 0
    usages: tuple[KiroUsage, ...] = ()

    def since(self, position: int) -> tuple[Record, ...]:
        """Return the records of the entries from a position on; none for one past the end."""
        pairs = zip(self.entry_of, self.records, strict=True)
        return tuple(record for entry, record in pairs if entry >= position)


def credits_of(usages: Iterable[KiroUsage]) -> float | None:
    """Return the sum of the known credits; None where none are known."""
    told = [usage.credits for usage in usages if usage.credits is not None]
    return sum(told) if told else None


def modified_files(records: Iterable[Record]) -> tuple[str, ...]:
    """Return the files that tool uses have written, each once, in the order of the first time.

    A use that was cancelled or has failed wrote none.
    """
    seen = tuple(records)
    undone = {r.tool_use_id for r in seen if isinstance(r, ToolResult) and r.succeeded is False}
    undone |= {i for r in seen if isinstance(r, ToolUsesCancelled) for i in r.tool_use_ids}
    uses = (r for r in seen if isinstance(r, ToolUse) and r.id not in undone)
    return tuple(dict.fromkeys(use.modified_file for use in uses if use.modified_file is not None))


def prompts(records: Iterable[Record]) -> tuple[str, ...]:
    """Return what the user said, also in place of tool uses that were stopped."""
    found: list[str] = []
    for record in records:
        match record:
            case UserPrompt(text=text) | ToolUsesCancelled(prompt=str(text)):
                found.append(text)
            case _:
                pass
    return tuple(found)


def final_answer(records: Iterable[Record]) -> str | None:
    """Return the last that the model said in words."""
    texts = [record.text for record in records if isinstance(record, ModelAnswer) and record.text]
    return texts[-1] if texts else None
