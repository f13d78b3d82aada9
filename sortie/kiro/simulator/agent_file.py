"""The agents of Kiro: JSON files that say what a named one may use, and what runs around it.

A file that Kiro could not read means no agent, and says why. A field that nobody knows is one of
these faults: a test with a typing error in it must not pass.
"""

from __future__ import annotations

import json
import os
from fnmatch import fnmatchcase

from sortie.kiro.simulator.hooks import EVENTS, Hook
from sortie.kiro.simulator.keeping import kiro_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

ALIASES = {"fs_write": "write", "fs_read": "read", "execute_bash": "shell"}
"""Kiro's tools by their names in its stores, and as people call them."""

BUILT_IN = ("default", "kiro_default")
_TEXTS = frozenset(
    ["$schema", "name", "description", "prompt", "model", "keyboardShortcut", "welcomeMessage"]
)
_OBJECTS = frozenset(["mcpServers", "toolAliases", "toolsSettings", "hooks"])
_SWITCHES = frozenset(["includeMcpJson", "useLegacyMcpJson"])
_LISTS = frozenset(["tools", "allowedTools", "resources"])
FIELDS = _TEXTS | _OBJECTS | _SWITCHES | _LISTS
"""What may stand in an agent's file."""


class AgentFileError(Exception):
    """There is no such agent, or its file is no good; the message says which and why."""


class Agent:
    """A named agent; the defaults are those of the built-in one."""

    def __init__(self, name: str = BUILT_IN[1]) -> None:
        self.name = name
        self.prompt: str | None = None
        self.model: str | None = None
        self.tools: Sequence[str] = ("*",)
        self.mcp_servers: Mapping[str, Mapping[str, Any]] = {}
        self.hooks: Mapping[str, Sequence[Hook]] = {}

    def has_tool(self, name: str) -> bool:
        """Tell whether it may use one of Kiro's own tools."""
        return any(matches(pattern, name) for pattern in self.tools)

    def summary(self) -> dict[str, object]:
        """Return what tests may want to know of it; the servers by name, as they hold secrets."""
        return {
            "name": self.name,
            "prompt": self.prompt,
            "model": self.model,
            "tools": list(self.tools),
            "mcp_servers": sorted(self.mcp_servers),
            "hooks": sorted(self.hooks),
        }


def matches(pattern: str, tool: str) -> bool:
    """Tell whether one of Kiro's own tools is meant: ``*``, ``@builtin``, a name or a pattern."""
    if pattern == "@builtin":
        return True
    return any(fnmatchcase(name, pattern) for name in (tool, ALIASES.get(tool, tool)))


def load_agent(name: str | None, directory: str, environment: Mapping[str, str]) -> Agent:
    """Return the agent of a name, None for the built-in one. Raises AgentFileError.

    One in the directory is found before one in the user's folder.
    """
    if name is None or name in BUILT_IN:
        return Agent(name or BUILT_IN[1])
    for folder in (os.path.join(directory, ".kiro"), kiro_home(environment)):
        path = _path_of(name, os.path.join(folder, "agents"))
        if path is not None:
            return _read(path, name)
    raise AgentFileError(f"no agent with name {name} found")


def _path_of(name: str, folder: str) -> str | None:
    """Return the file of an agent: the one called so, or one that says that it is."""
    if "/" not in name and os.path.isfile(path := os.path.join(folder, f"{name}.json")):
        return path
    try:
        names = sorted(n for n in os.listdir(folder) if n.endswith(".json"))
    except OSError:
        return None
    for each in names:
        path = os.path.join(folder, each)
        try:
            with open(path, "rb") as file:
                found = json.load(file)
        except (OSError, ValueError):
            continue
        if isinstance(found, dict) and found.get("name") == name:
            return path
    return None


def _read(path: str, name: str) -> Agent:
    try:
        with open(path, "rb") as file:
            told = json.load(file)
    except (OSError, ValueError) as error:
        raise AgentFileError(f"{path} cannot be read: {error}") from error
    if not isinstance(told, dict):
        raise AgentFileError(f"{path} holds no JSON object")
    for key, value in told.items():
        if reason := _fault(key, value):
            raise AgentFileError(f"{path}: {key}: {reason}")
    agent = Agent(name)
    agent.prompt = _prompt(told.get("prompt"), path)
    agent.model = told.get("model")
    agent.tools = told.get("tools") or ()
    agent.mcp_servers = told.get("mcpServers") or {}
    agent.hooks = {
        event: [Hook(hook) for hook in hooks] for event, hooks in (told.get("hooks") or {}).items()
    }
    return agent


def _prompt(told: str | None, path: str) -> str | None:
    """Return an agent's prompt, which may stand in a file beside its own."""
    if told is None or not told.startswith("file://"):
        return told
    place = os.path.join(os.path.dirname(path), told.removeprefix("file://"))
    try:
        with open(place, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError) as error:
        raise AgentFileError(f"{path}: prompt: {place} cannot be read: {error}") from error


def _fault(key: str, value: object) -> str | None:
    """Return what is wrong with a field, None where nothing is; null is as not given."""
    if key not in FIELDS:
        return "there is no such field"
    if value is None:
        return None
    if key in _TEXTS:
        return None if isinstance(value, str) else "is no text"
    if key in _SWITCHES:
        return None if isinstance(value, bool) else "is neither true nor false"
    if key in _LISTS:
        kinds = (str, dict) if key == "resources" else str
        good = isinstance(value, list) and all(isinstance(each, kinds) for each in value)
        return None if good else "is no list of texts"
    if not isinstance(value, dict):
        return "is no object"
    if key == "mcpServers":
        return _first(f"{name}: {reason}" for name, s in value.items() if (reason := _of_server(s)))
    if key == "hooks":
        return _first(
            f"{event}: {reason}" for event, h in value.items() if (reason := _of_hooks(event, h))
        )
    return None


def _first(faults: Any) -> str | None:
    found: str | None = next(iter(faults), None)
    return found


def _of_server(server: object) -> str | None:
    if not isinstance(server, dict):
        return "is no object"
    if isinstance(server.get("url"), str):
        return None
    if not isinstance(server.get("command"), str) or not server["command"]:
        return "has neither a command nor a url"
    args, env = server.get("args", []), server.get("env", {})
    if not isinstance(args, list) or not all(isinstance(each, str) for each in args):
        return "args is no list of texts"
    if not isinstance(env, dict) or not all(isinstance(each, str) for each in env.values()):
        return "env is no object of texts"
    return None


def _of_hooks(event: str, hooks: object) -> str | None:
    if event not in EVENTS:
        return f"there is no such event; there are {', '.join(EVENTS)}"
    if not isinstance(hooks, list):
        return "is no list"
    for hook in hooks:
        if not isinstance(hook, dict) or not isinstance(hook.get("command"), str):
            return "a hook has no command"
        for name, unit in (("timeout_ms", "milliseconds"), ("max_output_size", "bytes")):
            count = hook.get(name, 1)
            if not isinstance(count, int) or isinstance(count, bool) or count <= 0:
                return f"{name} is no number of {unit}"
        if not isinstance(hook.get("matcher", ""), str):
            return "matcher is no text"
    return None
