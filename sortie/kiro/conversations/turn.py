"""What one turn has added to a conversation."""

from __future__ import annotations

from msgspec import Struct

from sortie.kiro.conversations.records import (
    Conversation,
    KiroUsage,
    ModelAnswer,
    Record,
    ToolResult,
    ToolUse,
    ToolUsesCancelled,
    UserPrompt,
)

_Mark = tuple[object, ...]


class Position(Struct, frozen=True, kw_only=True):
    """The end of a conversation at some time: number of entries, the last entry, the usages."""

    id: str
    entries: int
    last: _Mark
    usages: tuple[KiroUsage, ...]

    @classmethod
    def after(cls, conversation: Conversation) -> Position:
        """Return the end of a conversation."""
        return cls(
            id=conversation.summary.id,
            entries=conversation.entries,
            last=_mark(conversation, conversation.entries),
            usages=conversation.usages,
        )


class Addition(Struct, frozen=True, kw_only=True):
    """The records that a turn has added, and its usages where they are known."""

    records: tuple[Record, ...]
    usages: tuple[KiroUsage, ...]


def added_since(conversation: Conversation, before: Position | None) -> Addition:
    """Return what was added since a position.

    Where the history has shrunk meanwhile, or is another one, the turn begins at the last prompt.
    """
    if before is None or before.id != conversation.summary.id:
        alone = sum(isinstance(record, UserPrompt) for record in conversation.records) <= 1
        usages = conversation.usages if alone else ()  # they may belong to earlier turns
        return Addition(records=_last_turn(conversation), usages=usages)
    goes_on = before.entries < conversation.entries and (
        _mark(conversation, before.entries) == before.last
    )
    records = conversation.since(before.entries) if goes_on else _last_turn(conversation)
    return Addition(records=records, usages=_more(conversation.usages, before.usages))


def _last_turn(conversation: Conversation) -> tuple[Record, ...]:
    records = conversation.records
    prompts = [at for at, record in enumerate(records) if isinstance(record, UserPrompt)]
    return records[prompts[-1] :] if prompts else records


def _more(usages: tuple[KiroUsage, ...], before: tuple[KiroUsage, ...]) -> tuple[KiroUsage, ...]:
    """Return the usages behind those known before; all of them, where the list began anew."""
    overlaps = (len(before) - gone for gone in range(len(before)))
    known = next((n for n in overlaps if usages[:n] == before[len(before) - n :]), 0)
    return usages[known:]


def _mark(conversation: Conversation, entries: int) -> _Mark:
    """Return what the last of the first entries says, without what is filled in later."""
    pairs = zip(conversation.entry_of, conversation.records, strict=True)
    return tuple(_name(record) for entry, record in pairs if entry == entries - 1)


def _name(record: Record) -> object:
    match record:
        case ModelAnswer(text=text, message_id=identity):
            return identity or text
        case ToolUse(id=identity) | ToolResult(tool_use_id=identity):
            return identity
        case UserPrompt(text=text):
            return text
        case ToolUsesCancelled(tool_use_ids=ids):
            return ids
        case _:
            return type(record).__name__
