"""The agent's file by which Kiro is told a system prompt and MCP servers, for one turn.

It lies beside the user's own agents, since Kiro finds agents there by their names, and not in the
workspace, where the agent would see it and version control too. It may hold keys of MCP servers:
only the user can read it, and it is removed with the turn. A program holds a lock on its file; an
unlocked file was left by a program that was killed, and is removed.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from sortie.kiro.client.errors import CLIConnectionError

_PREFIX, _SUFFIX = "sortie-client-", ".json"


class AgentFile:
    """An agent's file that is there until ``remove``. ``name`` is the agent's.

    The constructor raises CLIConnectionError where it cannot be written.
    """

    def __init__(self, environment: Mapping[str, str], content: Mapping[str, Any]) -> None:
        self.name = f"{_PREFIX}{secrets.token_hex(8)}"
        folder = agents_folder(environment)
        self._path = os.path.join(folder, f"{self.name}{_SUFFIX}")
        text = json.dumps({"name": self.name, **content}, default=dict, indent=2)
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            _remove_abandoned(folder)
            self._file = _create(self._path, text.encode(errors="replace"))
        except OSError as exc:
            raise CLIConnectionError(
                f"the agent's file that tells Kiro the options cannot be written: {exc}"
            ) from exc

    def remove(self) -> None:
        """Remove the file. Idempotent."""
        with suppress(FileNotFoundError):
            os.unlink(self._path)
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def agents_folder(environment: Mapping[str, str]) -> str:
    """Return where the agents of the user are."""
    home = environment.get("HOME") or os.path.expanduser("~")
    return os.path.join(environment.get("KIRO_HOME") or os.path.join(home, ".kiro"), "agents")


def agent_content(
    system_prompt: str | None, servers: Mapping[str, Mapping[str, Any]] | None
) -> dict[str, Any]:
    """Return what the file says; all of Kiro's tools are there, and which are trusted is told on
    the command line."""
    content: dict[str, Any] = {
        "description": "Options of one turn that a program asked for; goes away with it.",
        "tools": ["*"],
    }
    if system_prompt is not None:
        # Kiro would read the file that an URI names.
        is_uri = system_prompt.startswith("file://")
        content["prompt"] = f"\n{system_prompt}" if is_uri else system_prompt
    if servers:
        content["mcpServers"] = {name: dict(server) for name, server in servers.items()}
    return content


def _create(path: str, text: bytes) -> int:
    """Write a new file that is locked from its first moment under its name; return it open."""
    hidden = f"{path}.new"
    number = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        while text:
            text = text[os.write(number, text) :]
        os.rename(hidden, path)
    except OSError:
        os.close(number)
        with suppress(OSError):
            os.unlink(hidden)
        raise
    return number


def _remove_abandoned(folder: str) -> None:
    for name in os.listdir(folder):
        if name.startswith(_PREFIX) and name.endswith(_SUFFIX):
            with suppress(OSError):
                path = os.path.join(folder, name)
                number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(path)
                finally:
                    os.close(number)
