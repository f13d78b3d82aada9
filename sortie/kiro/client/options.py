"""What a turn is run with, and what of it Kiro cannot be told."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sortie.kiro.client.errors import OptionError
from sortie.kiro.headless.arguments import ChatOptions

TOOL_NAMES = {
    "Bash": "shell",
    "Edit": "write",
    "Glob": "glob",
    "Grep": "grep",
    "Read": "read",
    "Write": "write",
}
"""What Kiro calls tools that are known by other names as well."""

_MOST_VERBOSE = 3
_REFUSED = {
    "temperature": "kiro-cli has no such setting, neither on its command line nor in an agent's"
    " file; leave it out",
    "max_turns": "kiro-cli knows no limit of turns, neither on its command line nor in an agent's"
    " file; set a timeout instead, which ends a turn for certain",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KiroAgentOptions:
    """What turns are run with. All of it is optional.

    ``system_prompt`` and ``mcp_servers`` are told to Kiro in an agent's file that lasts as long as
    the turn. ``allowed_tools`` are trusted, by Kiro's names or as ``Bash``, ``Read`` and ``Write``;
    without them, and without ``trust_all_tools``, no tool is. ``temperature`` and ``max_turns`` are
    refused with an ``OptionError``, since Kiro cannot be told them.

    ``cwd`` is the directory in which Kiro works, and by which it keeps its conversations; this
    process's own by default. ``cli_path`` is the program, or its name on PATH; ``kiro-cli`` by
    default. ``verbose``, 0 to 3, makes Kiro write more to its log. ``resume_session`` is the id of
    a conversation of that directory to go on with.

    ``env`` is added to this process's environment, for Kiro and all that it starts. A turn that
    takes more than ``timeout`` seconds is ended. ``stop_grace`` is how many seconds processes have
    between SIGTERM and SIGKILL.
    """

    system_prompt: str | None = None
    model: str | None = None
    max_turns: int | None = None
    temperature: float | None = None
    allowed_tools: Sequence[str] | None = None
    trust_all_tools: bool = False
    mcp_servers: Mapping[str, Mapping[str, Any]] | None = field(default=None, repr=False)
    cwd: str | os.PathLike[str] | None = None
    cli_path: str | os.PathLike[str] | None = None
    verbose: int = 0
    resume_session: str | None = None
    env: Mapping[str, str] | None = field(default=None, repr=False)
    timeout: float | None = None
    stop_grace: float = 5.0


def check_options(options: KiroAgentOptions) -> None:
    """Raise OptionError for what Kiro cannot be told, and for what contradicts itself."""
    for name, reason in _REFUSED.items():
        if getattr(options, name) is not None:
            raise OptionError(f"{name}: {reason}", name)
    if not 0 <= options.verbose <= _MOST_VERBOSE:
        raise OptionError(f"verbose: {options.verbose} is not one of 0 to 3", "verbose")
    for name in ("timeout", "stop_grace"):
        seconds = getattr(options, name)
        if seconds is not None and not 0 <= seconds < float("inf"):
            raise OptionError(f"{name}: {seconds} is no time in seconds", name)
    for name in ("model", "resume_session"):
        _check_word(getattr(options, name), name)
    _check_tools(options)
    _check_servers(options.mcp_servers or {})
    for name, value in (options.env or {}).items():
        if not name or "=" in name or "\0" in name + value:
            raise OptionError(f"env: {name!r} cannot be the name of a variable, or has NUL", "env")


def directory_of(options: KiroAgentOptions) -> str:
    """Return the absolute directory in which Kiro works. Raises OptionError where it is none."""
    if options.cwd is None:
        return os.getcwd()
    directory = os.path.abspath(os.fspath(options.cwd))
    if "\0" in directory or not os.path.isdir(directory):
        raise OptionError(f"cwd: {directory!r} is no directory", "cwd")
    return directory


def environment_of(options: KiroAgentOptions) -> dict[str, str]:
    """Return the environment that Kiro is given."""
    return {**os.environ, **(options.env or {})}


def chat_options(options: KiroAgentOptions, agent: str | None) -> ChatOptions:
    """Return the options as the command line has them, with the name of the agent's file."""
    tools = dict.fromkeys(TOOL_NAMES.get(tool, tool) for tool in options.allowed_tools or ())
    return ChatOptions(
        model=options.model,
        agent=agent,
        trust_all_tools=options.trust_all_tools,
        trust_tools=tuple(tools),
        verbose=options.verbose,
        require_mcp=bool(options.mcp_servers),
    )


def _check_word(value: str | None, name: str) -> None:
    if value is not None and (not value.strip() or value.startswith("-") or "\0" in value):
        raise OptionError(f"{name}: {value!r} cannot be told to kiro-cli", name)


def _check_tools(options: KiroAgentOptions) -> None:
    tools = options.allowed_tools or ()
    if isinstance(tools, str):
        raise OptionError(f"allowed_tools: {tools!r} is no list of names", "allowed_tools")
    if tools and options.trust_all_tools:
        raise OptionError(
            "allowed_tools and trust_all_tools contradict each other; name the tools, or trust all",
            "allowed_tools",
        )
    for tool in tools:
        if not tool.strip() or "," in tool or not tool.isprintable():
            raise OptionError(f"allowed_tools: {tool!r} is no tool's name", "allowed_tools")


def _check_servers(servers: Mapping[str, Mapping[str, Any]]) -> None:
    for name, server in servers.items():
        known = isinstance(server, Mapping) and any(
            isinstance(server.get(key), str) and server[key] for key in ("command", "url")
        )
        if not name.strip() or not known:
            raise OptionError(
                f"mcp_servers: {name!r} needs a command, or a url where it is remote", "mcp_servers"
            )
        for key in ("env", "headers"):
            if not isinstance(server.get(key, {}), Mapping):
                raise OptionError(
                    f"mcp_servers: {key} of {name!r} is no mapping of names to values",
                    "mcp_servers",
                )
    try:
        json.dumps(servers, default=_no_json)
    except (TypeError, ValueError) as exc:
        raise OptionError(f"mcp_servers: cannot be written as JSON: {exc}", "mcp_servers") from None


def _no_json(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON")
