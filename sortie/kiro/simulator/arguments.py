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
    "--agent-engine": "agent_engine",
    "--auth-method": "auth_method",
}
_CHOICES = {
    "wrap": ("always", "never", "auto"),
    "format": ("plain", "json"),
    "session_source": ("v1", "v2"),
    "agent_engine": ("v2", "v3"),
    "auth_method": ("cli",),
}
_VERBOSE = re.compile(r"-v+|--verbose")
_ID = re.compile(r"[A-Za-z0-9_-]{1,200}")


def is_session_id(text: str) -> bool:
    """Tell whether a text can be a session's id, and so the name of its file."""
    return _ID.fullmatch(text) is not None


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


class Acp:
    """The arguments of ``acp``; what was not given is False or None."""

    def __init__(self) -> None:
        self.trust_all_tools = False
        self.help = False
        self.verbose = 0
        self.model: str | None = None
        self.agent: str | None = None
        self.trust_tools: str | None = None
        self.auth_method: str | None = None
        self.agent_engine = "v2"


def parse_chat(arguments: Sequence[str]) -> Chat:
    """Return what follows ``chat``. Raises UsageError."""
    chat = Chat()
    for prompt in _parse(arguments, chat):
        _take_prompt(chat, prompt)
    _require_sense(chat)
    return chat


def parse_acp(arguments: Sequence[str]) -> Acp:
    """Return what follows ``acp``. Raises UsageError."""
    acp = Acp()
    if extra := _parse(arguments, acp):
        raise UsageError(f"unexpected argument '{extra[0]}' found")
    if acp.agent_engine == "v3":
        for name in ("agent", "model", "trust_tools", "trust_all_tools"):
            if getattr(acp, name):
                option = name.replace("_", "-")
                raise UsageError(f"'--{option}' cannot be used with '--agent-engine v3'")
    return acp


def _parse(arguments: Sequence[str], into: Chat | Acp) -> list[str]:
    """Set what is given, of what there is to set; return what is no option."""
    others: list[str] = []
    seen: set[str] = set()
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument == "--":
            return others + rest
        if not argument.startswith("-") or argument == "-":
            others.append(argument)
            continue
        if _VERBOSE.fullmatch(argument):
            into.verbose += argument.count("v") if argument[1] == "v" else 1
            continue
        name, has_value, value = argument.partition("=")
        attribute = _attribute(name, into, seen)
        if name in _SWITCHES:
            if has_value:
                raise UsageError(f"unexpected value '{value}' for '{name}' found")
            setattr(into, attribute, True)
            continue
        if not has_value:
            if not rest or rest[0].startswith("-"):
                raise UsageError(f"a value is required for '{name}' but none was supplied")
            value = rest.pop(0)
        setattr(into, attribute, _checked(name, attribute, value))
    return others


def _require_sense(chat: Chat) -> None:
    """Raise UsageError where options contradict each other."""
    if chat.resume and chat.resume_id is not None:
        raise UsageError("the argument '--resume' cannot be used with '--resume-id <ID>'")
    if chat.session_source is not None and chat.delete_session is None:
        raise UsageError("'--session-source <SOURCE>' requires '--delete-session <ID>'")


def _attribute(name: str, into: Chat | Acp, seen: set[str]) -> str:
    attribute = _SWITCHES.get(name) or _VALUES.get(name)
    if attribute is None or not hasattr(into, attribute):
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
    if attribute in ("resume_id", "delete_session") and not is_session_id(value):
        raise UsageError(f"invalid value '{value}' for '{name}': it is no session id")
    return value


def _take_prompt(chat: Chat, prompt: str) -> None:
    if chat.prompt is not None:
        raise UsageError(f"unexpected argument '{prompt}' found")
    chat.prompt = prompt
