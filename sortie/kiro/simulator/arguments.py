"""Read a command line as kiro-cli does."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SWITCHES = {
    "--no-interactive": "no_interactive",
    "--resume": "resume",
    "-r": "resume",
    "--trust-all-tools": "trust_all_tools",
    "-a": "trust_all_tools",
    "--require-mcp-startup": "require_mcp_startup",
    "--list-sessions": "list_sessions",
    "--help": "help",
    "-h": "help",
}
_VALUES = {
    "--wrap": "wrap",
    "--model": "model",
    "--agent": "agent",
    "--trust-tools": "trust_tools",
    "--format": "format",
    "-f": "format",
    "--resume-id": "resume_id",
    "--delete-session": "delete_session",
    "--session-source": "session_source",
}
_CHOICES = {
    "wrap": ("always", "never", "auto"),
    "format": ("plain", "json"),
    "session_source": ("v1", "v2"),
}
_VERBOSE = re.compile(r"-v+|--verbose")
_ID = re.compile(r"[A-Za-z0-9_-]{1,200}")


class UsageError(Exception):
    """The command line is not one that kiro-cli accepts."""


class Chat:
    """The arguments of ``chat``; what was not given is False or None."""

    def __init__(self) -> None:
        self.no_interactive = False
        self.resume = False
        self.trust_all_tools = False
        self.require_mcp_startup = False
        self.list_sessions = False
        self.verbose = 0
        self.help = False
        self.wrap: str | None = None
        self.model: str | None = None
        self.agent: str | None = None
        self.trust_tools: str | None = None
        self.format: str | None = None
        self.resume_id: str | None = None
        self.delete_session: str | None = None
        self.session_source: str | None = None
        self.prompt: str | None = None


def parse_chat(arguments: Sequence[str]) -> Chat:
    """Return what follows ``chat``. Raises UsageError."""
    chat = Chat()
    seen: set[str] = set()
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument == "--":
            for prompt in rest:
                _take_prompt(chat, prompt)
            break
        if not argument.startswith("-") or argument == "-":
            _take_prompt(chat, argument)
            continue
        if _VERBOSE.fullmatch(argument):
            chat.verbose += argument.count("v") if argument[1] == "v" else 1
            continue
        name, has_value, value = argument.partition("=")
        attribute = _attribute(name, seen)
        if name in _SWITCHES:
            if has_value:
                raise UsageError(f"unexpected value '{value}' for '{name}' found")
            setattr(chat, attribute, True)
            continue
        if not has_value:
            if not rest or rest[0].startswith("-"):
                raise UsageError(f"a value is required for '{name}' but none was supplied")
            value = rest.pop(0)
        setattr(chat, attribute, _checked(name, attribute, value))
    _require_sense(chat)
    return chat


def _require_sense(chat: Chat) -> None:
    """Raise UsageError where options contradict each other."""
    if chat.resume and chat.resume_id is not None:
        raise UsageError("the argument '--resume' cannot be used with '--resume-id <ID>'")
    if chat.session_source is not None and chat.delete_session is None:
        raise UsageError("'--session-source <SOURCE>' requires '--delete-session <ID>'")


def _attribute(name: str, seen: set[str]) -> str:
    attribute = _SWITCHES.get(name) or _VALUES.get(name)
    if attribute is None:
        raise UsageError(f"unexpected argument '{name}' found")
    if attribute in seen:
        raise UsageError(f"the argument '{name}' cannot be used multiple times")
    seen.add(attribute)
    return attribute


def _checked(name: str, attribute: str, value: str) -> str:
    choices = _CHOICES.get(attribute)
    if choices and value not in choices:
        raise UsageError(
            f"invalid value '{value}' for '{name}' [possible values: {', '.join(choices)}]"
        )
    if attribute in ("resume_id", "delete_session") and not _ID.fullmatch(value):
        raise UsageError(f"invalid value '{value}' for '{name}': it is no session id")
    return value


def _take_prompt(chat: Chat, prompt: str) -> None:
    if chat.prompt is not None:
        raise UsageError(f"unexpected argument '{prompt}' found")
    chat.prompt = prompt
