"""What Kiro's store holds of the turn that has ended; the printed transcript holds less."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from msgspec import Struct

from sortie.kiro.client.messages import (
    AssistantMessage,
    ErrorBlock,
    Message,
    TextBlock,
    ToolResultMessage,
    ToolUseBlock,
    UserMessage,
)
from sortie.kiro.client.sessions import KeptConversations
from sortie.kiro.client.waits import Waits
from sortie.kiro.conversations import (
    Conversation,
    ConversationError,
    ConversationSummary,
    ModelAnswer,
    Record,
    ToolResult,
    ToolUse,
    ToolUsesCancelled,
    UserPrompt,
)

_log = logging.getLogger("sortie.kiro")

_Key = tuple[str, str, str]


class Evidence(Struct, frozen=True, kw_only=True):
    """The records of one turn, behind its prompt, and the conversation that has them."""

    session_id: str
    records: tuple[Record, ...]

    @property
    def model(self) -> str | None:
        """The model that answered last, where it is told."""
        told = [r.model for r in self.records if isinstance(r, ModelAnswer) and r.model is not None]
        return told[-1] if told else None


class Bookmark:
    """The state of a directory's conversations before a turn.

    Kiro resumes the newest one. Its length is kept too, because some stores have times in whole
    seconds only.
    """

    def __init__(self, summaries: Sequence[ConversationSummary], newest_entries: int) -> None:
        self._updated = {_key(summary): summary.updated for summary in summaries}
        self._newest = _key(summaries[0]) if summaries else None
        self._entries = newest_entries

    def has_changed(self, conversation: Conversation) -> bool:
        """Tell whether a conversation is new or has been written to."""
        key = _key(conversation.summary)
        if self._updated.get(key) != conversation.summary.updated:
            return True
        return key == self._newest and conversation.entries != self._entries

    def may_have_changed(self, summary: ConversationSummary) -> bool:
        """Tell whether a conversation is worth a closer look."""
        key = _key(summary)
        return key == self._newest or self._updated.get(key) != summary.updated


def bookmark(kept: KeptConversations) -> Waits[Bookmark]:
    """Note how the conversations stand."""
    summaries = yield from kept.summaries()
    entries = 0
    if summaries:
        try:
            entries = (yield from kept.load(summaries[0])).entries
        except ConversationError as exc:
            _log.debug("%s", exc)
    return Bookmark(summaries, entries)


def find_evidence(kept: KeptConversations, before: Bookmark, prompt: str) -> Waits[Evidence | None]:
    """Return what the turn has added; None where the store does not tell.

    It follows the last prompt of a conversation that has changed. Other programs may work in the
    same directory: of several changed conversations, the one whose last prompt is ours counts.
    """
    found: list[tuple[bool, Evidence]] = []
    for summary in (yield from kept.summaries()):
        if before.may_have_changed(summary):
            try:
                conversation = yield from kept.load(summary)
            except ConversationError as exc:
                _log.debug("%s", exc)
                continue
            if before.has_changed(conversation):
                found += _last_turn(conversation, prompt)
    ours = [evidence for is_ours, evidence in found if is_ours]
    if not ours and len(found) == 1:  # Kiro has put the prompt in other words
        ours = [found[0][1]]
    return ours[0] if ours else None


def messages_of(records: Sequence[Record]) -> Iterator[Message]:
    """Return records as messages: uses of tools stand in the message of the answer before them."""
    content: list[TextBlock | ToolUseBlock] = []
    model: str | None = None
    for record in records:
        if content and not isinstance(record, ToolUse):
            yield AssistantMessage(content=content, model=model)
            content = []
        match record:
            case ModelAnswer():
                model = record.model
                content = [TextBlock(text=record.text)] if record.text else []
            case ToolUse():
                content.append(ToolUseBlock(id=record.id, name=record.name, input=record.input))
            case ToolResult():
                yield _result(record)
            case ToolUsesCancelled():
                yield from _cancelled(record)
            case _:
                pass
    if content:
        yield AssistantMessage(content=content, model=model)


def _result(record: ToolResult) -> ToolResultMessage:
    failed = record.succeeded is False
    block = ErrorBlock(text=record.text) if failed else TextBlock(text=record.text)
    return ToolResultMessage(tool_use_id=record.tool_use_id, content=[block])


def _cancelled(record: ToolUsesCancelled) -> Iterator[Message]:
    for use in record.tool_use_ids:
        yield ToolResultMessage(tool_use_id=use, content=[ErrorBlock(text="cancelled")])
    if record.prompt is not None:
        yield UserMessage(content=[TextBlock(text=record.prompt)])


def _last_turn(conversation: Conversation, prompt: str) -> Iterator[tuple[bool, Evidence]]:
    records = conversation.records
    at = max((n for n, r in enumerate(records) if isinstance(r, UserPrompt)), default=None)
    if at is None:
        return
    last = records[at]
    is_ours = isinstance(last, UserPrompt) and last.text.split() == prompt.split()
    evidence = Evidence(session_id=conversation.summary.id, records=records[at + 1 :])
    yield is_ours, evidence


def _key(summary: ConversationSummary) -> _Key:
    return summary.engine, summary.id, summary.place
