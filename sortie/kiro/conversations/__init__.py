"""The conversations that kiro-cli keeps, whichever of its three engines kept them.

``ConversationStores`` finds, lists, loads and deletes them; ``records`` says what they hold. What
Kiro writes is not documented by its vendor: unknown fields and records are passed over, and what
is missing is None. The tables of the database that hold credentials are never read.
"""

from sortie.kiro.conversations.records import (
    Answer,
    Conversation,
    ConversationError,
    ConversationSummary,
    HistoryCleared,
    HistoryCompacted,
    Prompt,
    Record,
    ToolResult,
    ToolUse,
    ToolUsesCancelled,
    Usage,
)
from sortie.kiro.conversations.stores import ConversationStores
from sortie.kiro.places import KiroPlaces

__all__ = [
    "Answer",
    "Conversation",
    "ConversationError",
    "ConversationStores",
    "ConversationSummary",
    "HistoryCleared",
    "HistoryCompacted",
    "KiroPlaces",
    "Prompt",
    "Record",
    "ToolResult",
    "ToolUse",
    "ToolUsesCancelled",
    "Usage",
]
