"""A client for kiro-cli: put prompts to Kiro from a Python program, under asyncio or trio.

It has no event loop, task or thread of its own. Everything is at hand as ``sortie.kiro``.
"""

from sortie.kiro.client.client import (
    KiroSDKClient,
)
from sortie.kiro.client.errors import (
    AuthenticationError,
    CLIConnectionError,
    CLIJSONDecodeError,
    CLINotFoundError,
    KiroSDKError,
    OptionError,
    ProcessError,
    SessionNotFoundError,
    ToolPermissionError,
    TurnTimeoutError,
)
from sortie.kiro.client.messages import (
    AssistantMessage,
    ContentBlock,
    ErrorBlock,
    Message,
    ResultMessage,
    SessionInfo,
    TextBlock,
    ToolResultBlock,
    ToolResultMessage,
    ToolUseBlock,
    UserMessage,
)
from sortie.kiro.client.options import (
    KiroAgentOptions,
)
from sortie.kiro.client.queries import (
    query,
    query_sync,
)

__all__ = [
    "AssistantMessage",
    "AuthenticationError",
    "CLIConnectionError",
    "CLIJSONDecodeError",
    "CLINotFoundError",
    "ContentBlock",
    "ErrorBlock",
    "KiroAgentOptions",
    "KiroSDKClient",
    "KiroSDKError",
    "Message",
    "OptionError",
    "ProcessError",
    "ResultMessage",
    "SessionInfo",
    "SessionNotFoundError",
    "TextBlock",
    "ToolPermissionError",
    "ToolResultBlock",
    "ToolResultMessage",
    "ToolUseBlock",
    "TurnTimeoutError",
    "UserMessage",
    "query",
    "query_sync",
]
