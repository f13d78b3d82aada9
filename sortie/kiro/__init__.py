"""Kiro CLI for programs: a client, the conversations it keeps, and a stand-in for it.

``query``, ``query_sync`` and ``KiroSDKClient`` put prompts to Kiro under asyncio, trio or neither;
docs/kiro-client.md shows how. They are imported when they are asked for, so that the stand-in
starts fast.
"""

TYPE_CHECKING = False  # importing typing for it would cost the stand-in a third of its start-up
if TYPE_CHECKING:
    from sortie.kiro.client import (
        AssistantMessage,
        AuthenticationError,
        CLIConnectionError,
        CLIJSONDecodeError,
        CLINotFoundError,
        ContentBlock,
        ErrorBlock,
        KiroAgentOptions,
        KiroSDKClient,
        KiroSDKError,
        Message,
        OptionError,
        ProcessError,
        ResultMessage,
        SessionInfo,
        SessionNotFoundError,
        TextBlock,
        ToolPermissionError,
        ToolResultBlock,
        ToolResultMessage,
        ToolUseBlock,
        TurnTimeoutError,
        UserMessage,
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

if not TYPE_CHECKING:  # with it, a type checker would believe in any name

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from sortie.kiro import client

        return getattr(client, name)
