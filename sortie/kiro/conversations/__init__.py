"""The conversations that kiro-cli keeps, whichever of its three engines kept them.

``ConversationStores`` finds, lists, loads and deletes them; ``records`` says what they hold. What
Kiro writes is not documented by its vendor: unknown fields and records are passed over, and what
is missing is None. The tables of the database that hold credentials are never read.
"""

from sortie.kiro.conversations.records import (
    Conversation,
    ConversationError,
    ConversationSummary,
    HistoryCleared,
    HistoryCompacted,
    KiroUsage,
    ModelAnswer,
    Record,
    ToolResult,
    ToolUse,
    ToolUsesCancelled,
    UserPrompt,
)
from sortie.kiro.conversations.stores import ConversationStores
from sortie.kiro.places import KiroPlaces

__all__ = [
    "ModelAnswer",
    "Conversation",
    "ConversationError",
    "ConversationStores",
    "ConversationSummary",
    "HistoryCleared",
    "HistoryCompacted",
    "KiroPlaces",
    "UserPrompt",
    "Record",
    "ToolResult",
    "ToolUse",
    "ToolUsesCancelled",
    "KiroUsage",
]
