"""The messages of a conversation with Kiro, as the client returns them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, field


class TextBlock(Struct, frozen=True, kw_only=True):
    """Text, in Markdown where the model wrote it."""

    text: str
    type: Literal["text"] = "text"


class ErrorBlock(Struct, frozen=True, kw_only=True):
    """What went wrong with the use of a tool, or that it was cancelled."""

    text: str
    type: Literal["error"] = "error"


class ToolUseBlock(Struct, frozen=True, kw_only=True):
    """The model has a tool used; ``name`` and ``input`` are Kiro's own, such as ``fs_write``."""

    id: str
    name: str
    input: Mapping[str, Any]
    type: Literal["tool_use"] = "tool_use"


class ToolResultBlock(Struct, frozen=True, kw_only=True):
    """What came of the use of a tool, as one text."""

    tool_use_id: str
    content: str
    is_error: bool = False
    type: Literal["tool_result"] = "tool_result"


class UserMessage(Struct, frozen=True, kw_only=True):
    """What was said in the user's name while the turn went on; the prompt itself is not told."""

    content: list[TextBlock]
    role: Literal["user"] = "user"

    @property
    def text(self) -> str:
        """All text of the message."""
        return _text(self.content)


class AssistantMessage(Struct, frozen=True, kw_only=True):
    """What the model said: text, uses of tools, or both. ``model`` is None where it is not told."""

    content: list[TextBlock | ToolUseBlock]
    model: str | None = None
    role: Literal["assistant"] = "assistant"

    @property
    def text(self) -> str:
        """All text of the message; "" where it has uses of tools only."""
        return _text(self.content)


class ToolResultMessage(Struct, frozen=True, kw_only=True):
    """What came of one use of a tool; an ``ErrorBlock`` where it failed or was cancelled."""

    tool_use_id: str
    content: list[TextBlock | ErrorBlock]
    role: Literal["tool_result"] = "tool_result"

    @property
    def block(self) -> ToolResultBlock:
        """The same as one block."""
        return ToolResultBlock(
            tool_use_id=self.tool_use_id,
            content="\n".join(block.text for block in self.content),
            is_error=any(isinstance(block, ErrorBlock) for block in self.content),
        )


class ResultMessage(Struct, frozen=True, kw_only=True):
    """The end of a turn that ran: the last message of every one.

    ``credits`` and ``seconds`` are from the trailer. ``session_id``, ``model`` and
    ``files_modified`` are from Kiro's store: None, or empty, where it does not tell of the turn.
    ``content`` is always empty, so that loops over the content of all messages hold.
    """

    credits: float | None = None
    seconds: float | None = None
    session_id: str | None = None
    model: str | None = None
    files_modified: tuple[str, ...] = ()
    content: list[TextBlock] = field(default_factory=list)
    role: Literal["result"] = "result"


ContentBlock = TextBlock | ToolUseBlock | ToolResultBlock | ErrorBlock
"""Any block."""

Message = UserMessage | AssistantMessage | ToolResultMessage | ResultMessage
"""Any message."""


class SessionInfo(Struct, frozen=True, kw_only=True):
    """A conversation that Kiro has kept for a directory.

    The times are ISO 8601 in UTC, "" where the store does not tell them. ``message_count`` counts
    prompts and answers; it is 0 where the conversation is damaged, or has more than 16 MiB.
    """

    id: str
    created_at: str
    last_active: str
    message_count: int
    title: str | None = None


def _text(content: Sequence[TextBlock | ToolUseBlock]) -> str:
    return "\n".join(block.text for block in content if isinstance(block, TextBlock))
